"""What a document is to search, to people and to models: sections of blocks, below a path of headings."""

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
    """What stands below one heading, up to the next one of any level.

    Attributes:
        headings: plain text, the title of the document first; empty where it has none.
        anchor: what follows `#` in the address of this section on the published page; empty for the top of the page.
        blocks: in order; none is empty.
    """

    headings: tuple[str, ...]
    anchor: str
    blocks: tuple[Block, ...]

    @property
    def text(self) -> str:
        return "\n\n".join(block.text for block in self.blocks)


class Article(NamedTuple):
    """A document.

    Attributes:
        title: plain text: of the front matter, else the first heading of the highest level; empty where there is none.
        sections: in order. Those without a block are left out, unless they are all there is of a heading.
        permalink: where the document says that it is published: an address or a path; empty where it does not.
    """

    title: str
    sections: tuple[Section, ...]
    permalink: str = ""
