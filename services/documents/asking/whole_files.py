"""Counts in files that are no logs: lines, keys of configurations, rows of tables."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import replace

from services.documents.asking import conditions
from services.documents.asking.passages import CitedPassage, Retrieved, Scope, files_listed, ids_of, logs_of
from services.documents.asking.plan import Aggregate, Plan, Position
from services.documents.store.protocol import Document, LineWhere, StoredChunk
from services.documents.units import ChunkType, DocumentKind
from services.search import parts

_AT_ONCE = 500  # so many chunks are read in one go
_MOST_LISTED = 50
_INDEX = re.compile(r"(?:\[\d+\])+$")
_UNITS = frozenset({"data", "lines", "entries", "rows", "records", "samples", "columns", "keys", "settings", "values"})


async def find(scope: Scope, plan: Plan, documents: Sequence[Document], k: int) -> Retrieved | None:
    """None: the question asks for nothing of the kind."""
    if plan.period or plan.mentions or plan.level_counts or plan.grouped_by or plan.counted_by:
        return None
    words = tuple(word for word in plan.words if word.casefold() not in _UNITS)
    others = not logs_of(documents)
    if plan.aggregate is None:
        return await _end(scope, plan, documents[:k]) if plan.asks_for_end and not words and others else None
    configs = [doc for doc in documents if doc.kind is DocumentKind.CONFIG]
    if configs and (plan.unit == "keys" or not (plan.unit or plan.counts_lines)):
        return await _keys(scope, plan, words, configs, k)
    return None if words or plan.aggregate is not Aggregate.COUNT else await _sizes(scope, plan.unit, documents)


async def _sizes(scope: Scope, unit: str | None, documents: Sequence[Document]) -> Retrieved | None:
    tables = [doc for doc in documents if doc.kind is DocumentKind.METRICS]
    others = not logs_of(documents)
    numbers: dict[str, int] = {}
    if tables and (unit == "columns" or (unit == "rows" and others)):
        documents = tables
        for table in tables:
            columns = await columns_of(scope, table)
            number = len(columns) if unit == "columns" else await _rows(scope, table)
            names = f": {', '.join(columns)}" if unit == "columns" else ""
            numbers[f"{unit} in {table.filename}: {number}{names}"] = number
    elif unit == "lines" and others:
        numbers = {f"lines in {doc.filename}: {doc.n_lines}": doc.n_lines for doc in documents}
    if not numbers:
        return None
    total, facts = sum(numbers.values()), list(numbers)
    if len(documents) > 1:
        facts.insert(0, f"in {files_listed(documents)} altogether: {total}")
    first = [await scope.around(doc.doc_id, [1], context=0) for doc in documents[:1] if doc.n_lines]
    return Retrieved(tuple(first), facts="\n".join(facts), count=total, exact=True)


async def rows_at(scope: Scope, plan: Plan, documents: Sequence[Document], k: int) -> Retrieved | None:
    """The rows of tables at the time that is asked for; None where there are none."""
    tables = [doc for doc in documents if doc.kind is DocumentKind.METRICS]
    if plan.period is None or not tables:
        return None
    where = conditions.at(plan.period, ids_of(tables))
    limit = plan.wanted if plan.asks_for_end else k
    lines = await scope.lines(where, limit, last=plan.position is Position.LAST, by_time=True)
    if not lines.total:
        return None
    names = {doc.doc_id: await columns_of(scope, doc) for doc in tables}
    passages = [
        replace(await scope.around(line.doc_id, [line.line_no]), held=_cells(names[line.doc_id], line.text))
        for line in lines.lines
    ]
    counted = plan.aggregate is Aggregate.COUNT
    fact = f"rows {plan.period.text} in {files_listed(tables)}: {lines.total}"
    facts = fact if counted or lines.total > limit else ""
    return Retrieved(tuple(passages), facts=facts, count=lines.total if counted else None, exact=True)


async def columns_of(scope: Scope, table: Document) -> tuple[str, ...]:
    chunks = await scope.store.chunks(scope.name, table.doc_id, [0])
    listed = chunks[0].extra.get("columns", "") if chunks else ""
    return tuple(name.strip() for name in listed.split(",") if name.strip())


async def _keys(
    scope: Scope, plan: Plan, words: tuple[str, ...], configs: Sequence[Document], k: int
) -> Retrieved | None:
    """How many values there are, or how many of one name; None where that is the name of none."""
    if len(words) > 1 or (plan.unit is None and (not words or plan.aggregate is not Aggregate.COUNT)):
        return None
    of_each: dict[str, list[StoredChunk]] = {}
    for doc in configs:
        leaves = [chunk for chunk in await _chunks(scope, doc) if chunk.type is ChunkType.LEAF and chunk.key_path]
        of_each[doc.filename] = [leaf for leaf in leaves if not words or _is_called(leaf, words[0])]
    leaves = [leaf for found in of_each.values() for leaf in found]
    if not leaves:
        return None
    what = f'keys called "{words[0]}"' if words else "keys with a value"
    facts = [f"{what} in {files_listed(configs)}: {len(leaves)}"] if len(configs) > 1 else []
    facts += [f"{what} in {name}: {len(found)}" for name, found in of_each.items()]
    if plan.aggregate is not Aggregate.COUNT:
        facts += [str(leaf.key_path) for leaf in leaves[:_MOST_LISTED]]
        facts += [f"(and {len(leaves) - _MOST_LISTED} more)"] if len(leaves) > _MOST_LISTED else []
    passages = [
        replace(
            await scope.around(leaf.doc_id, range(leaf.line_start, leaf.line_end + 1)),
            chunk_id=leaf.chunk_id,
            held=(leaf.text,),
        )
        for leaf in leaves[:k]
    ]
    return Retrieved(tuple(passages), facts="\n".join(facts), count=len(leaves), exact=True)


async def _rows(scope: Scope, table: Document) -> int:
    """Without the header."""
    chunks = [chunk for chunk in await _chunks(scope, table) if chunk.type is ChunkType.ROWS]
    return sum(int(chunk.extra.get("rows", "0")) for chunk in chunks)


async def _end(scope: Scope, plan: Plan, documents: Sequence[Document]) -> Retrieved | None:
    """The first or the last lines of files that are not empty."""
    passages: list[CitedPassage] = []
    for doc in documents:
        last = plan.position is Position.LAST
        some = await scope.lines(LineWhere((doc.doc_id,)), 2 * plan.wanted + 2, last=last)
        numbers = [line.line_no for line in some.lines if line.text.strip()][: plan.wanted]
        if numbers:
            passages.append(await scope.around(doc.doc_id, sorted(numbers)))
    return Retrieved(tuple(passages), exact=True) if passages else None


async def _chunks(scope: Scope, doc: Document) -> list[StoredChunk]:
    found: list[StoredChunk] = []
    for first in range(0, doc.n_chunks, _AT_ONCE):
        indices = range(first, min(first + _AT_ONCE, doc.n_chunks))
        found += await scope.store.chunks(scope.name, doc.doc_id, indices)
    return found


def _is_called(leaf: StoredChunk, name: str) -> bool:
    """By its own name, or as an item of a list of that name: `ports[0]`, and also `admin_port`, of "ports"."""
    last = _INDEX.sub("", leaf.key_path or "").rsplit(".", 1)[-1]
    return set(parts(name)) <= set(parts(last))


def _cells(columns: tuple[str, ...], row: str) -> tuple[str, ...]:
    """`cpu = 0.3, mem = 1030`; nothing where cells and columns do not fit."""
    for mark in ",\t;|":
        cells = [cell for line in csv.reader([row], delimiter=mark) for cell in line]
        if len(cells) == len(columns):
            pairs = zip(columns, cells, strict=True)
            return (", ".join(f"{name} = {cell.strip()}" for name, cell in pairs),)
    return ()
