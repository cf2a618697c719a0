"""Builds an article from headings and blocks in order: paths of headings, title and anchors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from services.search.text.sections import Article, Block, Section
from services.search.text.slugs import Slugs

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
