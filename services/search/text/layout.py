"""Lays out lists, tables and code as the Markdown that Discord shows: aligned text where it fits, else a list."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import NamedTuple

from services.search.text.article import Block, BlockKind


def listed(items: Iterable[tuple[str, Sequence[Block]]]) -> list[Block]:
    """Lay out a list, in as few blocks as possible. `items`: the mark of each item and its blocks.

    A listing or a table in an item stands on its own, at the margin; so does what comes behind it in the same item.
    """
    found: list[Block] = []
    lines: list[str] = []
    for mark, blocks in items:
        for number, block in enumerate(blocks):
            if block.kind in (BlockKind.CODE, BlockKind.TABLE) or (number and not lines):
                found += [*_joined(lines), block]
                lines.clear()
            else:
                lines.append(_indented(block.text, "  " if number else mark))
    return found + _joined(lines)


def _joined(lines: Sequence[str]) -> list[Block]:
    return [Block(BlockKind.LIST, "\n".join(lines))] if lines else []


def _indented(text: str, mark: str) -> str:
    """With a mark before its first line and the lines below it indented by two spaces, as Discord wants it."""
    return mark + text.replace("\n", "\n  ")


_MAX_WIDTH = 90
"""Columns. Discord shows about a hundred on a wide screen; a line that it breaks makes a table unreadable."""


class Cell(NamedTuple):
    """The same words twice. `plain`: one line, for aligned text; `blocks`: as Discord's Markdown, for a list."""

    plain: str
    blocks: tuple[Block, ...]


Row = Sequence[Cell]


def table(header: Sequence[str], rows: Sequence[Row], *, rich: bool = False) -> list[Block]:
    """A table as aligned text; as a list where that is too wide, or where its cells are `rich`: more than plain text.

    `header` may be empty. A table without a word gives no block. Rows and columns without one are left out.
    """
    rows = [row for row in rows if any(cell.plain for cell in row)]
    lines = [header, *([cell.plain for cell in row] for row in rows)]
    columns = [column for column in zip_longest(*lines, fillvalue="") if any(column)]
    widths = [max(map(_width, column)) for column in columns]
    if not columns:
        return []
    if rows and (rich or sum(width + 3 for width in widths) > _MAX_WIDTH):
        return listed(("- ", _item(header, row)) for row in rows)
    text = [" | ".join(map(_padded, line, widths)).rstrip() for line in zip(*columns, strict=True)]
    if any(header):
        text.insert(1, "-+-".join("-" * width for width in widths))
    else:
        del text[0]
    return [Block(BlockKind.TABLE, fenced("\n".join(text)))]


def fenced(text: str, language: str = "") -> str:
    """Code in a fence, which a fence within it does not end: Discord knows no longer ones."""
    inner = text.replace("```", "`\u200b`\u200b`")
    return f"```{language}\n{inner}\n```"


def _item(header: Sequence[str], row: Row) -> list[Block]:
    """The first cell in bold, then the others, each behind its header: short ones share a line.

    A header that stands above every line of a table is said once for each line of the list. What is more than text
    follows the name of its column.
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
            found += [*_line(first, named), *rest]
            first, named = "", []
    return found + _line(first, named)


def _line(first: str, named: Sequence[str]) -> list[Block]:
    text = " – ".join(filter(None, [first, "; ".join(filter(None, named))]))
    return [Block(BlockKind.PROSE, text)] if text else []


def _width(text: str) -> int:
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _width(text))
