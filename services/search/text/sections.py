"""The structure of a document that search, people and models share: sections of blocks below a path of headings."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class BlockKind(StrEnum):
    PROSE = "prose"
    LIST = "list"
    CODE = "code"
    TABLE = "table"


class Block(NamedTuple):
    """A paragraph, a list, a table or a listing, in the Markdown that Discord shows: what people read.

    Nothing of the source's own markup is left in it: no directive, no tab marker, no HTML, no role. Code is fenced,
    with its language where that is known; a table is aligned text in a fence. Links are `[text](target)`, targets as
    written.
    """

    kind: BlockKind
    text: str


class Section(NamedTuple):
    """The text below one heading, up to the next heading of any level.

    Attributes:
        headings: plain text, the title of the document first; empty where it has none.
        anchor: what follows `#` in the address of this section on the published page; empty for the top of the page.
        blocks: in order; none is empty.
        day: on which it was said, as `2026-02-01`; empty where that is not known.
        quotable: whether it may be shown as an answer; else it is found, and named at most.
        helped: whether somebody said that it did.
    """

    headings: tuple[str, ...]
    anchor: str
    blocks: tuple[Block, ...]
    day: str = ""
    quotable: bool = True
    helped: bool = False

    @property
    def text(self) -> str:
        """The text of the blocks, without the heading."""
        return "\n\n".join(block.text for block in self.blocks)

    @property
    def heading(self) -> str:
        """The heading as a line of Markdown; empty if there is none."""
        return f"{'#' * min(len(self.headings), 6)} {self.headings[-1]}" if self.headings else ""

    @property
    def markdown(self) -> str:
        """The heading and the text below it."""
        return "\n\n".join(part for part in (self.heading, self.text) if part)


class Article(NamedTuple):
    """A parsed document.

    Attributes:
        title: plain text: of the front matter, else the first heading of the highest level; empty where there is none.
        sections: in order. Those without a block are left out, unless they are all there is of a heading.
        permalink: where the document says that it is published: an address or a path; empty where it does not.
    """

    title: str
    sections: tuple[Section, ...]
    permalink: str = ""

    @property
    def markdown(self) -> str:
        return "\n\n".join(section.markdown for section in self.sections)

    def contents(self, max_chars: int) -> str:
        """Return the headings as a nested list of at most `max_chars` characters. If there are too many, the deepest
        are left out first, then the last. Headings above a section are listed even if they have no section of their
        own.
        """
        paths = dict.fromkeys(each.headings[: end + 1] for each in self.sections for end in range(len(each.headings)))
        text = ""
        for depth in range(max(map(len, paths), default=0), 0, -1):
            text = "\n".join(f"{'  ' * (len(path) - 1)}- {path[-1]}" for path in paths if len(path) <= depth)
            if len(text) <= max_chars:
                return text
        return text[: max(max_chars, 0)].rpartition("\n")[0]
