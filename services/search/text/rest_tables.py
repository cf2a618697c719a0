"""Tables of docutils into aligned text, or into a list where they are too wide for that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import NamedTuple

from docutils import nodes
from docutils.utils import column_width

from services.search.text.sections import Block, BlockKind

_MAX_WIDTH = 90
"""Columns. A wider line is broken by the window of a chat, and then nobody can read the table."""
_GAP = "  "


class Cell(NamedTuple):
    """`plain`: its text in one line, for aligned text; `blocks`: the same as Markdown."""

    plain: str
    blocks: tuple[Block, ...]


_EMPTY = Cell("", ())


class Table(NamedTuple):
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


def read_table(node: nodes.table, read_cell: Callable[[nodes.Element], Cell]) -> Table:
    """The rows of a table; a cell that spans several places stands in the first of them."""
    heads = [row for head in node.findall(nodes.thead) for row in _filled(head, read_cell)]
    rows = [row for body in node.findall(nodes.tbody) for row in _filled(body, read_cell)]
    header = tuple(
        " ".join(filter(None, (cell.plain for cell in column))) for column in zip_longest(*heads, fillvalue=_EMPTY)
    )
    return Table(header, tuple(tuple(row) for row in rows if any(cell.plain for cell in row)))


def _filled(part: nodes.Element, read_cell: Callable[[nodes.Element], Cell]) -> list[list[Cell]]:
    rows: list[list[Cell]] = []
    below: dict[int, int] = {}
    for row in part.children:
        cells: list[Cell] = []
        for entry in row.children:
            while below.get(len(cells), 0):
                below[len(cells)] -= 1
                cells.append(_EMPTY)
            if isinstance(entry, nodes.Element):
                width = 1 + int(entry.get("morecols", 0))
                below.update(dict.fromkeys(range(len(cells), len(cells) + width), int(entry.get("morerows", 0))))
                cells += [read_cell(entry), *[_EMPTY] * (width - 1)]
        rows.append(cells)
    return rows


def aligned(table: Table) -> str | None:
    """The table as text in columns, None where it is too wide or its cells hold more than a line of text."""
    if any(len(cell.blocks) > 1 or _is_rich(cell) for row in table.rows for cell in row):
        return None
    lines = [[cell.plain for cell in row] for row in table.rows]
    everything = [list(table.header), *lines] if any(table.header) else lines
    widths = [max(map(column_width, column)) for column in zip_longest(*everything, fillvalue="")]
    if sum(widths) + len(_GAP) * (len(widths) - 1) > _MAX_WIDTH:
        return None
    if any(table.header):
        everything.insert(1, ["-" * width for width in widths])
    return "\n".join(_line(line, widths) for line in everything)


def _is_rich(cell: Cell) -> bool:
    return any(block.kind is not BlockKind.PROSE or "](" in block.text or "\n" in block.text for block in cell.blocks)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell + " " * (width - column_width(cell)) for cell, width in zip(cells, widths, strict=False))
    return _GAP.join(padded).rstrip()


def as_items(table: Table) -> list[list[Block]]:
    """A list item a row: the first cell in bold, then the others, each behind its header."""
    return [_item(table.header, row) for row in table.rows]


def _item(header: Sequence[str], row: Sequence[Cell]) -> list[Block]:
    """Short cells share a line; what is more than text follows the name of its column."""
    found: list[Block] = []
    line = ""
    for number, cell in enumerate(row):
        text = " ".join(block.text for block in cell.blocks if block.kind is BlockKind.PROSE)
        rest = [block for block in cell.blocks if block.kind is not BlockKind.PROSE]
        if not text and not rest:
            continue
        if number == 0 and text:
            line = f"**{text.replace('**', '')}**"
        else:
            name = f"{header[number]}: " if number < len(header) and header[number] else ""
            joint = ("; " if number > 1 else " – ") if line else ""
            line = f"{line}{joint}{name}{text}".strip()
        if rest:
            found += [*_prose(line), *rest]
            line = ""
    return found + _prose(line)


def _prose(text: str) -> list[Block]:
    return [Block(BlockKind.PROSE, text)] if text else []
