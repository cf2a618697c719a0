"""Finds the lines that fit a `LineQuery`, counts them, and groups them."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from services.documents.asking import conditions, grouping, linear
from services.documents.asking.line_query import LineQuery, QueryRefused
from services.documents.asking.passages import Scope, ids_of
from services.documents.asking.times import without_year
from services.documents.store.protocol import LineWhere, StoredLine
from services.storage import in_thread

_SECONDS = 5.0  # for all lines that a regex is tried on
_YEARLESS = ("0000", "0001")


@dataclass(frozen=True, slots=True)
class Matches:
    """What fits: how many lines, in each file, and those that are to be shown."""

    lines: int
    repeats: tuple[StoredLine, ...]
    per_document: dict[str, int]
    chosen: tuple[StoredLine, ...]  # from `offset`, at most `limit`
    notes: tuple[str, ...] = ()

    @property
    def messages(self) -> int:
        return self.lines + sum(grouping.times_said(line.text) - 1 for line in self.repeats)


async def find(scope: Scope, query: LineQuery, where: LineWhere) -> Matches:
    """The lines that fit. Raises QueryRefused: the regex takes too long on these files."""
    return await (_scanned(scope, query, where) if query.regex else _stored(scope, query, where))


async def where_of(scope: Scope, query: LineQuery) -> LineWhere:
    """What the store is asked for; the regex is tried on what fits that."""
    doc_ids = ids_of(query.documents)
    period = query.period
    if period is not None:
        timed = await scope.lines(LineWhere(doc_ids), 1, by_time=True)
        if timed.lines and (timed.lines[0].ts_utc or "").startswith(_YEARLESS):
            period = without_year(period)
    where = conditions.at(period, doc_ids) if period else LineWhere(doc_ids)
    return replace(
        where,
        first=query.line,
        last=query.line,
        severities=await _levels(scope, query),
        components=(query.component,) if query.component else (),
        holding=query.all_of,
        holding_any=query.any_of,
        lacking=query.none_of,
    )


async def _levels(scope: Scope, query: LineQuery) -> tuple[str, ...]:
    """FATAL and CRITICAL mean the same only in files that have but one of them."""
    if not query.levels:
        return ()
    there = {
        level for level, _ in await scope.store.distinct(scope.name, LineWhere(ids_of(query.documents)), "severity")
    }
    named = [meant[:1] if meant[0] in there else meant for meant in query.levels]
    return tuple(dict.fromkeys(level for meant in named for level in meant))


async def _stored(scope: Scope, query: LineQuery, where: LineWhere) -> Matches:
    """By conditions that the store knows."""
    wanted, notes = query.offset + query.limit, ()
    last = query.mode == "last"
    if query.mode in {"first", "last"} and query.order == "time":
        found, _, notes = await scope.end(where, wanted, last=last)
    else:
        by_time = query.order == "time" and query.mode != "context"
        found = await scope.lines(where, max(wanted, 1), last=last, by_time=by_time)
    chosen = found.lines[query.offset : wanted]
    repeats = await grouping.repetitions(scope, where)
    return Matches(found.total, repeats, dict(found.per_document), chosen, notes)


async def _scanned(scope: Scope, query: LineQuery, where: LineWhere) -> Matches:
    """By a regular expression, tried on every line that fits all else."""
    fit = await _fitting(scope, query, where)
    in_file_order = query.order == "file" or query.mode == "context"
    ordered = fit if in_file_order else sorted(fit, key=lambda line: (line.ts_utc is None, line.ts_utc or ""))
    if query.mode == "last":
        timeless = [line for line in ordered if line.ts_utc is None and not in_file_order]
        ordered = [line for line in reversed(ordered) if line not in timeless] + timeless
    chosen = tuple(ordered[query.offset : query.offset + query.limit])
    repeats = tuple(line for line in fit if grouping.times_said(line.text) > 1)
    return Matches(len(fit), repeats, dict(Counter(line.doc_id for line in fit)), chosen)


async def _fitting(scope: Scope, query: LineQuery, where: LineWhere) -> list[StoredLine]:
    fit: list[StoredLine] = []
    left = _SECONDS
    async for lines in grouping.pages(scope, where):
        begun = time.perf_counter()  # real time: a pattern that is too slow is refused, whatever it has found
        fit += await in_thread(_searched, query.regex, lines, begun + left)
        left -= time.perf_counter() - begun
    return fit


def _searched(pattern: re.Pattern[str] | None, lines: Sequence[StoredLine], until: float) -> list[StoredLine]:
    fit: list[StoredLine] = []
    for line in lines:
        if pattern is not None and pattern.search(line.text[: linear.LONGEST_LINE]):
            fit.append(line)
        if time.perf_counter() > until:
            raise QueryRefused(
                "The regex takes too long on these files; use all_of or any_of, or narrow by since and until."
            )
    return fit


async def group_counts(scope: Scope, query: LineQuery, where: LineWhere) -> tuple[dict[str, int], int]:
    """How many messages each value has, and how many have none."""
    column = grouping.STORED.get(query.group_by or "")
    if column and not query.regex:
        values = await scope.store.distinct(scope.name, where, column, limit=10_000)
        counts = dict(values)
        for line in await grouping.repetitions(scope, where):
            own = replace(where, doc_ids=(line.doc_id,), first=line.line_no, last=line.line_no)
            for value, _ in await scope.store.distinct(scope.name, own, column):
                counts[value] += grouping.times_said(line.text) - 1
        total = (await scope.total(where)) - sum(number for _, number in values)
        return counts, total
    fit = await _fitting(scope, query, where) if query.regex else None
    values_of = _reader(query)
    if fit is None:
        return await grouping.counted_by(scope, where, values_of)
    counts = Counter[str]()
    without = 0
    if column:
        for line in fit:
            value = _stored_value(line, column)
            counts[value] += grouping.times_said(line.text) if value else 0
            without += 0 if value else grouping.times_said(line.text)
        del counts[""]
        return counts, without
    return counts, grouping.add(counts, fit, values_of)


def _stored_value(line: StoredLine, column: str) -> str:
    moment = line.ts_utc or ""
    values = {
        "severity": line.severity,
        "component": line.component,
        "day": moment[:10],
        "hour": f"{moment[:10]} {moment[11:13]}h" if moment else "",
    }
    return values[column] or ""


def _reader(query: LineQuery) -> grouping.Values:
    if query.group_by == "key" and query.key:
        return grouping.values_of(query.key)
    if query.group_by == "capture" and query.regex:
        return grouping.captured(query.regex, linear.LONGEST_LINE)
    return grouping.READ.get(query.group_by or "", grouping.threads)
