"""Cuts program code into chunks: Python by functions and classes, other languages in blocks of lines."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from services.documents.prepared import Chunk, ChunkType

LONGEST_SYMBOL = 120
BLOCK_LINES = 60
MAX_PARSED_CHARS = 1024 * 1024  # larger Python is cut like any other language: its tree takes too much memory

_ESCAPE = re.compile(r"\\[^\n]")
_DEFINITION = re.compile(
    r"^\s{0,12}(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|pub(?:\(\w+\))?|override"
    r"|open|data|sealed|unsafe|inline|virtual|const)\s+){0,5}"
    r"(?:function\*?|func(?:\s*\([^)\n]{0,80}\))?|fn|def|class|interface|struct|enum|trait|impl|object|module|protocol"
    r"|namespace|create\s+(?:or\s+replace\s+)?(?:table|view|index|function|procedure))\s+"
    r"[\"`]?([A-Za-z_$][\w$.:]{0,99})",
    re.MULTILINE | re.IGNORECASE,
)

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class _Piece(NamedTuple):
    first: int
    last: int
    symbol: str | None = None


def code_chunks(lines: Sequence[str], python: str | None = None) -> list[Chunk]:
    """Return chunks; every line that is not blank is in exactly one.

    `python`: for Python, the source before redaction, which can be parsed.
    """
    tree = _parsed(python) if python else None
    pieces = _inside(lines, tree.body, 1, len(lines), "") if tree else _plain(lines, 1, len(lines))
    texts = (("\n".join(lines[piece.first - 1 : piece.last]), piece) for piece in pieces)
    return [
        Chunk(index, ChunkType.CODE, text, piece.first, piece.last, symbol=piece.symbol)
        for index, (text, piece) in enumerate((text, piece) for text, piece in texts if text.strip())
    ]


def _parsed(source: str) -> ast.Module | None:
    # Escapes do not matter here, and wrong ones would be warned of.
    source = _ESCAPE.sub("xx", source)
    if len(source) > MAX_PARSED_CHARS or "\f" in source:
        return None
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _inside(lines: Sequence[str], body: Sequence[ast.stmt], first: int, last: int, outer: str) -> Iterator[_Piece]:
    """Yield the definitions of one level, and the code between them."""
    for node in body:
        if not isinstance(node, _Definition):
            continue
        start = _start(lines, node, first)
        end = node.end_lineno or start
        if start < first or end > last:  # several statements in one line
            continue
        yield from _plain(lines, first, start - 1, outer or None)
        name = f"{outer}{node.name}"
        if end - start < LONGEST_SYMBOL:
            yield _Piece(start, end, name)
        elif isinstance(node, ast.ClassDef):
            yield from _inside(lines, node.body, start, end, f"{name}.")
        else:
            yield from (_Piece(*block, name) for block in blocks(lines, start, end, LONGEST_SYMBOL))
        first = end + 1
    yield from _plain(lines, first, last, outer.removesuffix(".") or None)


def _start(lines: Sequence[str], node: _Definition, earliest: int) -> int:
    """Return the line at which decorators and comments directly above a definition begin."""
    start = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    while start - 1 >= earliest and lines[start - 2].lstrip().startswith("#"):
        start -= 1
    return start


def _plain(lines: Sequence[str], first: int, last: int, outer: str | None = None) -> Iterator[_Piece]:
    for start, end in blocks(lines, first, last, BLOCK_LINES):
        found = _DEFINITION.search("\n".join(lines[start - 1 : end])) if outer is None else None
        yield _Piece(start, end, outer.removesuffix(".") if outer else found[1] if found else None)


def blocks(lines: Sequence[str], first: int, last: int, most: int) -> Iterator[tuple[int, int]]:
    """Yield first and last lines of blocks of at most `most` lines; all line numbers count from 1.

    A cut is made before a line in column 0 that follows a blank one, else behind a blank line, else where the block is
    full; never in its first half.
    """
    while last - first + 1 > most:
        cut = _cut(lines, first + most // 2, first + most)
        yield first, cut - 1
        first = cut
    if first <= last:
        yield first, last


def _cut(lines: Sequence[str], earliest: int, latest: int) -> int:
    blank = 0
    for number in range(latest, earliest, -1):
        if not lines[number - 2].strip() and lines[number - 1].strip():
            if not lines[number - 1][:1].isspace():
                return number
            blank = blank or number
    return blank or latest
