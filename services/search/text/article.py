"""The structure that every reader of documents produces: an article of sections below a path of headings, made of
blocks (prose, list, code, table). `article` builds it from headings and blocks in order.
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


_CHANGELOG = "Changelog"
"""The title of what only lists versions: the newest one is not what the others are about."""
_VERSION = re.compile(r"(?:version |release )?[\[(]?v?\d+\.\d+", re.IGNORECASE)


class Heading(NamedTuple):
    """`level`: 1 is the highest; `title`: plain text; `anchor`: the author's own, empty where there is none."""

    level: int
    title: str
    anchor: str = ""


Piece = Heading | Block


def article(pieces: Sequence[Piece], slugs: Slugs, title: str = "", permalink: str = "") -> Article:
    """Sections below their headings. `title` and `permalink`: from the front matter; the title opens every path.

    Without a title the first heading of the highest level is it, but for a list of versions. A heading that says the
    same as the title is not repeated below it, and one that opens the page has the page's address: no anchor.
    """
    top = _top(pieces)
    if top is not None and _is_version(top) and _versions(pieces, top.level) > 1:
        top, title = None, title or _CHANGELOG
    title = title or (top.title if top else "")
    sections: list[Section] = []
    path: dict[int, str] = {0: title} if title else {}
    anchor = ""
    blocks: list[Block] = []
    for at, piece in enumerate(pieces):
        if isinstance(piece, Block):
            blocks.append(piece)
            continue
        sections.append(Section(tuple(path.values()), anchor, tuple(blocks)))
        slug = piece.anchor or slugs(piece.title)
        anchor = "" if at == 0 and piece is top else slug
        path = {level: name for level, name in path.items() if level < piece.level}
        if not (piece is top and _says_the_same(piece.title, title)):
            path[piece.level] = piece.title
        blocks = []
    sections.append(Section(tuple(path.values()), anchor, tuple(blocks)))
    return Article(title, tuple(_without_empty(sections, bool(top))), permalink)


def _top(pieces: Iterable[Piece]) -> Heading | None:
    headings = [piece for piece in pieces if isinstance(piece, Heading) and piece.title]
    return min(headings, key=lambda heading: heading.level, default=None)


def _is_version(heading: Heading) -> bool:
    return bool(_VERSION.match(heading.title))


def _versions(pieces: Iterable[Piece], level: int) -> int:
    return sum(isinstance(piece, Heading) and piece.level == level and _is_version(piece) for piece in pieces)


def _says_the_same(heading: str, title: str) -> bool:
    return set(re.findall(r"\w+", heading.casefold())) <= set(re.findall(r"\w+", title.casefold()))


def _without_empty(sections: list[Section], has_headings: bool) -> Iterable[Section]:
    for at, section in enumerate(sections):
        below = sections[at + 1].headings if at + 1 < len(sections) else ()
        leads_on = len(below) > len(section.headings) and below[: len(section.headings)] == section.headings
        repeated = at + 1 < len(sections) and below == section.headings
        if section.blocks or (has_headings and section.headings and not leads_on and not repeated):
            yield section
