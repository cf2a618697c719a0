"""Tables for people who read a chat: aligned text, or a list where the lines would wrap."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from services.search.text.sections import Block, BlockKind

MAX_WIDTH = 90
"""Columns. Discord shows about a hundred on a wide screen."""


class TableCell(NamedTuple):
    """The same words twice: as Discord's Markdown and as plain text."""

    marked: str
    plain: str


Row = Sequence[TableCell]


def table(header: Row, rows: Sequence[Row]) -> Block | None:
    """A table as a block; None where it holds no word. `header` may be empty."""
    rows = [row for row in rows if any(cell.plain for cell in row)]
    if not rows and not any(cell.plain for cell in header):
        return None
    columns = max(map(len, [header, *rows]))
    lines = [[*(cell.plain for cell in row), *[""] * (columns - len(row))] for row in [header, *rows]]
    widths = [max(map(_width, column)) for column in zip(*lines, strict=True)]
    used = [at for at, width in enumerate(widths) if width]
    if rows and sum(widths[at] + 3 for at in used) > MAX_WIDTH:
        return Block(BlockKind.LIST, _as_list(header, rows))
    text = [" | ".join(_padded(line[at], widths[at]) for at in used).rstrip() for line in lines]
    if any(lines[0]):
        text.insert(1, "-+-".join("-" * widths[at] for at in used))
    else:
        del text[0]
    return Block(BlockKind.TABLE, fenced("\n".join(text)))


def fenced(text: str, language: str = "") -> str:
    """Code in a fence that its own backticks do not close."""
    longest = run = 0
    for character in text if "```" in text else "":
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _as_list(header: Row, rows: Sequence[Row]) -> str:
    titles = [cell.plain for cell in header]
    # Headers that stand above every line of a table are said once for each line of the list.
    return "\n".join(_item(titles, [" ".join(cell.marked.split()) for cell in row]) for row in rows)


def _item(titles: Sequence[str], cells: Sequence[str]) -> str:
    named = [
        f"{titles[at]}: {cell}" if at < len(titles) and titles[at] else cell
        for at, cell in enumerate(cells)
        if at and cell
    ]
    first = f"**{cells[0].replace('**', '')}**" if cells and cells[0] else ""
    return "- " + " – ".join(filter(None, [first, "; ".join(named)]))


def _width(text: str) -> int:
    return len(text) if text.isascii() else sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _width(text))
