"""Reads plain text, and text extracted from web pages that has lost the marks of its headings."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

from services.search.text.markdown import clean, markdown_pieces
from services.search.text.outline import Heading, Piece, article
from services.search.text.sections import Article, Block, BlockKind
from services.search.text.slugs import MkDocsSlugs
from services.search.text.tables import fenced

_MAX_TITLE_CHARS = 120
_BARE_TITLE = re.compile(r"[^\W_][^\n.:;!?`|<>={}\[\]]{2,70}\??")
_UNDERLINES = {"=": 1, "-": 2, "~": 3, "*": 3, "^": 3}
_ITEM = re.compile(r"\s{0,8}(?:[-*+•]|\d{1,3}[.)])\s+\S.*")
_WORD = re.compile(r"\w")


def read_plain(text: str) -> Article:
    """Paragraphs, lists and indented listings, word for word. Underlined lines are headings; without any, so are short
    lines on their own that end like no sentence. Never raises.
    """
    lines = clean(text).replace("\f", "\n\n").split("\n")
    return article(with_bare_titles([*_pieces(lines)]), MkDocsSlugs())


def read_web_text(text: str, title: str = "") -> Article:
    """The text that was extracted from a web page: Markdown, often without the marks of headings and listings. Its
    lines are those of the page.
    """
    return article(with_bare_titles(markdown_pieces(text, keep_lines=True)), MkDocsSlugs(), title)


def with_bare_titles(pieces: Sequence[Piece]) -> list[Piece]:
    """If there is no heading, turn short lines that end like no sentence into headings; the first becomes the title."""
    if any(isinstance(piece, Heading) for piece in pieces):
        return list(pieces)
    return [
        Heading(2 if at else 1, piece.text)
        if isinstance(piece, Block) and at < len(pieces) - 1 and _is_bare_title(piece)
        else piece
        for at, piece in enumerate(pieces)
    ]


def _is_bare_title(block: Block) -> bool:
    return block.kind is BlockKind.PROSE and bool(_BARE_TITLE.fullmatch(block.text))


def _pieces(lines: Sequence[str]) -> Iterator[Piece]:
    """Paragraphs stand between empty lines, and underlined titles anywhere."""
    paragraph: list[str] = []
    for line in lines:
        level = _underlines(line, paragraph[-1] if paragraph else "")
        if level:
            title = paragraph.pop().strip()
            yield from _blocks(paragraph)
            yield Heading(level, title)
            paragraph = []
        elif line.strip():
            paragraph.append(line.rstrip())
        elif paragraph and paragraph[0].startswith(("    ", "\t")):
            paragraph.append("")  # a listing goes on after an empty line
        else:
            yield from _blocks(paragraph)
            paragraph = []
        if len(paragraph) > 1 and not paragraph[-2] and not _is_indented(paragraph[-1:]):
            yield from _blocks(paragraph[:-1])
            paragraph = paragraph[-1:]
    yield from _blocks(paragraph)


def _underlines(line: str, title: str) -> int:
    line, width = line.strip(), len(title.strip())
    if not 0 < width <= _MAX_TITLE_CHARS or len(line) < max(3, width - 2) or len(line) > 2 * _MAX_TITLE_CHARS:
        return 0
    return _UNDERLINES.get(line[0], 0) if line == line[0] * len(line) and _WORD.search(title) else 0


def _is_indented(lines: Sequence[str]) -> bool:
    return all(line.startswith(("    ", "\t")) or not line for line in lines)


def _blocks(lines: Sequence[str]) -> Iterator[Block]:
    text = "\n".join(lines).strip("\n").rstrip()
    if not _WORD.search(text):
        return
    if _ITEM.fullmatch(lines[0]):
        yield Block(BlockKind.LIST, textwrap.dedent(text))
    elif _is_indented(lines):
        yield Block(BlockKind.CODE, fenced(textwrap.dedent(text)))
    else:
        yield Block(BlockKind.PROSE, textwrap.dedent(text))
