"""Lays out lists, tables and code as the Markdown that Discord shows: aligned text where it fits, else a list."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import NamedTuple

from services.search.text.article import Block, BlockKind


def list_blocks(items: Iterable[tuple[str, Sequence[Block]]]) -> list[Block]:
    """Lay out a list, in as few blocks as possible. `items`: the mark of each item and its blocks.

    A listing or a table in an item stands on its own, at the margin; so does the rest of the item behind it.
    """
    found: list[Block] = []
    lines: list[str] = []
    for mark, blocks in items:
        for number, block in enumerate(blocks):
            if block.kind in (BlockKind.CODE, BlockKind.TABLE) or (number and not lines):
                found += [*_list_block(lines), block]
                lines.clear()
            else:
                lines.append(_hang(block.text, "  " if number else mark))
    return found + _list_block(lines)


def _list_block(lines: Sequence[str]) -> list[Block]:
    return [Block(BlockKind.LIST, "\n".join(lines))] if lines else []


def _hang(text: str, mark: str) -> str:
    """Put the mark in front of the first line and indent the others by two spaces, as Discord wants it."""
    return mark + text.replace("\n", "\n  ")


_MAX_WIDTH = 90
"""In columns. Discord shows about a hundred on a wide screen; a table with broken lines is unreadable."""


class Cell(NamedTuple):
    """The same words twice. `plain`: one line, for aligned text; `blocks`: as Discord's Markdown, for a list."""

    plain: str
    blocks: tuple[Block, ...]


Row = Sequence[Cell]


def table_blocks(header: Sequence[str], rows: Sequence[Row], *, rich: bool = False) -> list[Block]:
    """Lay out a table as aligned text; as a list if that is too wide, or if its cells are `rich`: more than plain text.

    `header` may be empty. Empty rows and columns are left out; an empty table gives no block.
    """
    rows = [row for row in rows if any(cell.plain for cell in row)]
    lines = [header, *([cell.plain for cell in row] for row in rows)]
    columns = [column for column in zip_longest(*lines, fillvalue="") if any(column)]
    widths = [max(map(_display_width, column)) for column in columns]
    if not columns:
        return []
    if rows and (rich or sum(width + 3 for width in widths) > _MAX_WIDTH):
        return list_blocks(("- ", _row_blocks(header, row)) for row in rows)
    text = [" | ".join(map(_padded, line, widths)).rstrip() for line in zip(*columns, strict=True)]
    if any(header):
        text.insert(1, "-+-".join("-" * width for width in widths))
    else:
        del text[0]
    return [Block(BlockKind.TABLE, fenced("\n".join(text)))]


def fenced(text: str, language: str = "") -> str:
    """Fence code. Fences within it are broken up, as Discord knows no longer ones."""
    inner = text.replace("```", "`\u200b`\u200b`")
    return f"```{language}\n{inner}\n```"


def _row_blocks(header: Sequence[str], row: Row) -> list[Block]:
    """Lay out a row: the first cell in bold, then the others on the same line, each behind its header. A cell that is
    more than text follows on lines of its own.
    """
    found: list[Block] = []
    first, named = "", list[str]()
    for at, cell in enumerate(row):
        text = " ".join(block.text for block in cell.blocks if block.kind is BlockKind.PROSE)
        rest = [block for block in cell.blocks if block.kind is not BlockKind.PROSE]
        if at == 0 and text:
            first = f"**{text.replace('**', '')}**"
        elif text or rest:
            name = f"{header[at]}: " if at < len(header) and header[at] else ""
            named.append(f"{name}{text}".strip())
        if rest:
            found += [*_row_line(first, named), *rest]
            first, named = "", []
    return found + _row_line(first, named)


def _row_line(first: str, named: Sequence[str]) -> list[Block]:
    text = " – ".join(filter(None, [first, "; ".join(filter(None, named))]))
    return [Block(BlockKind.PROSE, text)] if text else []


def _display_width(text: str) -> int:
    return len(text) if text.isascii() else sum(map(_char_columns, text))


def _char_columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _display_width(text))
