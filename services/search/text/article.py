"""The structure that every reader of documents produces: an article of sections below a path of headings, made of
blocks (prose, list, code, table).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from services.search.text.anchors import Slugs


class BlockKind(StrEnum):
    PROSE = "prose"
    LIST = "list"
    CODE = "code"
    TABLE = "table"


class Block(NamedTuple):
    """A paragraph, a list, a table or a listing, in the Markdown that Discord shows.

    It has no markup of the source's own language: no directive, tab marker, HTML or role. Code is fenced, with its
    language where that is known; a table is aligned text in a fence. Links are `[text](target)`, targets as written.
    """

    kind: BlockKind
    text: str


class Section(NamedTuple):
    """The text below one heading, up to the next heading of any level.

    Attributes:
        headings: plain text, the title of the document first; empty where it has none.
        anchor: what follows `#` in the address of this section on the published page; empty for the top of the page.
        blocks: in order; none is empty.
        day: of an answer of the team, as `2026-02-01`; empty where it is not known.
        quotable: False: it can be found and named, but not shown as an answer.
        helped: whether somebody said that this answer helped.
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
        sections: in order. A section without blocks is left out, unless its heading has no other section.
        permalink: the address or path at which the document says it is published; empty where it does not.
    """

    title: str
    sections: tuple[Section, ...]
    permalink: str = ""

    @property
    def markdown(self) -> str:
        return "\n\n".join(section.markdown for section in self.sections)

    def contents(self, max_chars: int) -> str:
        """Return the headings, also those without a section of their own, as a nested list of at most `max_chars`
        characters. If there are too many, the deepest are left out first, then the last.
        """
        paths = dict.fromkeys(each.headings[: end + 1] for each in self.sections for end in range(len(each.headings)))
        text = ""
        for depth in range(max(map(len, paths), default=0), 0, -1):
            text = "\n".join(f"{'  ' * (len(path) - 1)}- {path[-1]}" for path in paths if len(path) <= depth)
            if len(text) <= max_chars:
                return text
        return text[: max(max_chars, 0)].rpartition("\n")[0]


_CHANGELOG_TITLE = "Changelog"
"""Of a document whose highest headings are versions: the first version is not the title of the others."""
_VERSION = re.compile(r"(?:version |release )?[\[(]?v?\d+\.\d+", re.IGNORECASE)


class Heading(NamedTuple):
    """`level`: 1 is the highest; `title`: plain text; `anchor`: the author's own, empty where there is none."""

    level: int
    title: str
    anchor: str = ""


Piece = Heading | Block


def make_article(pieces: Sequence[Piece], slugs: Slugs, title: str = "", permalink: str = "") -> Article:
    """Build an article of headings and blocks in order. `title` and `permalink`: from the front matter.

    Without a title, the first heading of the highest level becomes the title, except in a list of versions. The title
    opens every path of headings. A heading that repeats it is left out, and one that opens the page has no anchor.
    """
    top = _first_highest(pieces)
    if top is not None and _is_version(top) and _count_versions(pieces, top.level) > 1:
        top, title = None, title or _CHANGELOG_TITLE
    title = title or (top.title if top else "")
    sections: list[Section] = []
    path: dict[int, str] = {0: title} if title else {}
    anchor = ""
    blocks: list[Block] = []
    for number, piece in enumerate(pieces):
        if isinstance(piece, Block):
            blocks.append(piece)
            continue
        sections.append(Section(tuple(path.values()), anchor, tuple(blocks)))
        slug = piece.anchor or slugs(piece.title)
        anchor = "" if number == 0 and piece is top else slug
        path = {level: name for level, name in path.items() if level < piece.level}
        if not (piece is top and _repeats(piece.title, title)):
            path[piece.level] = piece.title
        blocks = []
    sections.append(Section(tuple(path.values()), anchor, tuple(blocks)))
    return Article(title, tuple(_drop_empty(sections, bool(top))), permalink)


def _first_highest(pieces: Iterable[Piece]) -> Heading | None:
    headings = [piece for piece in pieces if isinstance(piece, Heading) and piece.title]
    return min(headings, key=lambda heading: heading.level, default=None)


def _is_version(heading: Heading) -> bool:
    return bool(_VERSION.match(heading.title))


def _count_versions(pieces: Iterable[Piece], level: int) -> int:
    return sum(isinstance(piece, Heading) and piece.level == level and _is_version(piece) for piece in pieces)


def _repeats(heading: str, title: str) -> bool:
    return set(re.findall(r"\w+", heading.casefold())) <= set(re.findall(r"\w+", title.casefold()))


def _drop_empty(sections: list[Section], has_headings: bool) -> Iterable[Section]:
    for at, section in enumerate(sections):
        below = sections[at + 1].headings if at + 1 < len(sections) else ()
        has_subsections = len(below) > len(section.headings) and below[: len(section.headings)] == section.headings
        is_continued = at + 1 < len(sections) and below == section.headings
        if section.blocks or (has_headings and section.headings and not has_subsections and not is_continued):
            yield section
