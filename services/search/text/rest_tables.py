"""The rows and columns of docutils' tables."""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from typing import NamedTuple

from docutils import nodes

from services.search.text.tables import Cell

_EMPTY = Cell("", ())


class Table(NamedTuple):
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


def read_table(node: nodes.table, read_cell: Callable[[nodes.Element], Cell]) -> Table:
    """Return the header and rows of a table; a cell that spans several places stands in the first of them."""
    heads = [row for head in node.findall(nodes.thead) for row in _filled(head, read_cell)]
    rows = [row for body in node.findall(nodes.tbody) for row in _filled(body, read_cell)]
    header = tuple(
        " ".join(filter(None, (cell.plain for cell in column))) for column in zip_longest(*heads, fillvalue=_EMPTY)
    )
    return Table(header, tuple(map(tuple, rows)))


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
