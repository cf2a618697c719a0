"""Runs a structured query over lines: which match, how they are grouped and ordered, and what is shown of them."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from services.documents.asking import conditions, line_query
from services.documents.asking.line_query import LineQuery, QueryRefused
from services.documents.asking.passages import Scope, files_listed, ids_of, said
from services.documents.asking.times import without_year
from services.documents.results import Citation
from services.documents.store.protocol import LineWhere, StoredLine
from services.storage import in_thread
from services.telemetry import number_of

_SECONDS = 5.0  # for all lines that a regex is tried on
_YEARLESS = ("0000", "0001")


@dataclass(frozen=True, slots=True)
class Matches:
    """The lines that fit: how many, in which file, and those to be shown."""

    lines: int
    repeats: tuple[StoredLine, ...]
    per_document: dict[str, int]
    chosen: tuple[StoredLine, ...]  # from `offset`, at most `limit`
    notes: tuple[str, ...] = ()

    @property
    def messages(self) -> int:
        return self.lines + sum(conditions.times_said(line.text) - 1 for line in self.repeats)


async def find(scope: Scope, query: LineQuery, where: LineWhere) -> Matches:
    """Return the lines that fit. Raises QueryRefused: the regex takes too long on these files."""
    return await (_scanned(scope, query, where) if query.regex else _stored(scope, query, where))


async def where_of(scope: Scope, query: LineQuery) -> LineWhere:
    """Return the store's filter for a query; the regex is tried on the lines that fit it."""
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
    """Return the severities that a query means. FATAL and CRITICAL mean the same only in files that have but one of
    them.
    """
    if not query.levels:
        return ()
    there = {
        level for level, _ in await scope.store.distinct(scope.name, LineWhere(ids_of(query.documents)), "severity")
    }
    named = [meant[:1] if meant[0] in there else meant for meant in query.levels]
    return tuple(dict.fromkeys(level for meant in named for level in meant))


async def _stored(scope: Scope, query: LineQuery, where: LineWhere) -> Matches:
    """Find lines by conditions that the store knows."""
    wanted, notes = query.offset + query.limit, ()
    last = query.mode == "last"
    if query.mode in {"first", "last"} and query.order == "time":
        found, _, notes = await scope.end(where, wanted, last=last)
    else:
        by_time = query.order == "time" and query.mode != "context"
        found = await scope.lines(where, max(wanted, 1), last=last, by_time=by_time)
    chosen = found.lines[query.offset : wanted]
    repeats = await conditions.repetitions(scope, where)
    return Matches(found.total, repeats, dict(found.per_document), chosen, notes)


async def _scanned(scope: Scope, query: LineQuery, where: LineWhere) -> Matches:
    """Find lines by a regular expression, tried on every line that fits the other conditions."""
    fit = await _fitting(scope, query, where)
    in_file_order = query.order == "file" or query.mode == "context"
    ordered = fit if in_file_order else sorted(fit, key=lambda line: (line.ts_utc is None, line.ts_utc or ""))
    if query.mode == "last":
        timeless = [line for line in ordered if line.ts_utc is None and not in_file_order]
        ordered = [line for line in reversed(ordered) if line not in timeless] + timeless
    chosen = tuple(ordered[query.offset : query.offset + query.limit])
    repeats = tuple(line for line in fit if conditions.times_said(line.text) > 1)
    return Matches(len(fit), repeats, dict(Counter(line.doc_id for line in fit)), chosen)


async def _fitting(scope: Scope, query: LineQuery, where: LineWhere) -> list[StoredLine]:
    fit: list[StoredLine] = []
    left = _SECONDS
    async for lines in conditions.pages(scope, where):
        begun = time.perf_counter()  # real time: a pattern that is too slow is refused, whatever it has found
        fit += await in_thread(_searched, query.regex, lines, begun + left)
        left -= time.perf_counter() - begun
    return fit


def _searched(pattern: re.Pattern[str] | None, lines: Sequence[StoredLine], until: float) -> list[StoredLine]:
    fit: list[StoredLine] = []
    for line in lines:
        if pattern is not None and pattern.search(line.text[: line_query.LONGEST_LINE]):
            fit.append(line)
        if time.perf_counter() > until:
            raise QueryRefused(
                "The regex takes too long on these files; use all_of or any_of, or narrow by since and until."
            )
    return fit


async def group_counts(scope: Scope, query: LineQuery, where: LineWhere) -> tuple[dict[str, int], int]:
    """Count the messages of each value, and those that have none."""
    column = conditions.STORED.get(query.group_by or "")
    if column and not query.regex:
        values = await scope.store.distinct(scope.name, where, column, limit=10_000)
        counts = dict(values)
        for line in await conditions.repetitions(scope, where):
            own = replace(where, doc_ids=(line.doc_id,), first=line.line_no, last=line.line_no)
            for value, _ in await scope.store.distinct(scope.name, own, column):
                counts[value] += conditions.times_said(line.text) - 1
        total = (await scope.total(where)) - sum(number for _, number in values)
        return counts, total
    fit = await _fitting(scope, query, where) if query.regex else None
    values_of = _reader(query)
    if fit is None:
        return await conditions.counted_by(scope, where, values_of)
    counts = Counter[str]()
    without = 0
    if column:
        for line in fit:
            value = _stored_value(line, column)
            counts[value] += conditions.times_said(line.text) if value else 0
            without += 0 if value else conditions.times_said(line.text)
        del counts[""]
        return counts, without
    return counts, conditions.add(counts, fit, values_of)


def _stored_value(line: StoredLine, column: str) -> str:
    moment = line.ts_utc or ""
    values = {
        "severity": line.severity,
        "component": line.component,
        "day": moment[:10],
        "hour": f"{moment[:10]} {moment[11:13]}h" if moment else "",
    }
    return values[column] or ""


def _reader(query: LineQuery) -> conditions.Values:
    if query.group_by == "key" and query.key:
        return conditions.values_of(query.key)
    if query.group_by == "capture" and query.regex:
        return conditions.captured(query.regex, line_query.LONGEST_LINE)
    return conditions.READ.get(query.group_by or "", conditions.threads)


LONGEST_SHOWN = 400  # characters of a line
ROOM = 6000  # characters of all lines and groups that are shown
_MOST_ALONE = 8  # conditions whose own counts are told


@dataclass(frozen=True, slots=True)
class FoundLines:
    """The answer to a line query. `total`: how many messages fit; a line may stand for several."""

    text: str
    total: int
    citations: tuple[Citation, ...] = ()


async def answer(scope: Scope, query: LineQuery) -> FoundLines:
    """Return the lines that fit, or why none does. Raises QueryRefused: the regex takes too long on these files."""
    where = await where_of(scope, query)
    matches = await find(scope, query, where)
    if not matches.lines:
        return FoundLines(await _nothing(scope, query, where), 0)
    counted = _counted(query, matches)
    groups = await _groups(scope, query, where, matches) if query.group_by else []
    room = ROOM - sum(map(len, groups))
    shown, lines = await _shown(scope, query, matches.chosen, room)
    kept = list(shown)
    notes = [f"Note: {note}." for note in matches.notes]
    text = "\n".join([counted, *notes, *groups, *_left(query, matches, len(kept)), *lines])
    return FoundLines(text, matches.messages, tuple(_citation(scope, line) for line in kept))


def _counted(query: LineQuery, matches: Matches) -> str:
    files = query.documents
    said_so = f"{number_of(matches.lines, 'line fits', 'lines fit')} in {files_listed(files)}."
    if extra := matches.messages - matches.lines:
        stand = number_of(len(matches.repeats), "line says", "lines say")
        said_so += (
            f' {stand} "message repeated n times" and counts n times: {matches.messages} messages'
            f" ({extra} more than lines)."
        )
    if len(files) > 1:
        said_so += " " + ", ".join(f"{doc.filename}: {matches.per_document.get(doc.doc_id, 0)}" for doc in files) + "."
    return said_so


async def _groups(scope: Scope, query: LineQuery, where: LineWhere, matches: Matches) -> list[str]:
    """Return the `top` groups with their numbers, the largest first; days and hours in their order."""
    counts, without = await group_counts(scope, query, where)
    in_order = query.group_by in {"day", "hour"}
    ranked = sorted(counts.items()) if in_order else sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    top = ranked[: query.top]
    name = f"key {query.key}" if query.group_by == "key" else query.group_by
    what = "messages" if matches.messages != matches.lines else "lines"
    more = f", {len(ranked) - len(top)} not shown" if len(ranked) > len(top) else ""
    rows = [f"  {_cut(conditions.yearless(value), 200)}: {number}" for value, number in top]
    rest = sum(number for _, number in ranked[query.top :])
    rows += [f"  (others: {rest})"] if rest else []
    rows += [f"  (without one: {without})"] if without else []
    return [f"By {name}, {number_of(len(ranked), 'value')}{more}; {what}:", *rows]


async def _shown(
    scope: Scope, query: LineQuery, chosen: Sequence[StoredLine], room: int
) -> tuple[list[StoredLine], list[str]]:
    """Return as many of the chosen lines as there is room for, and their text."""
    if query.mode == "context":
        return await _in_context(scope, query, chosen, room)
    kept: list[StoredLine] = []
    rows: list[str] = []
    for line in chosen:
        row = _row(scope, line)
        room -= len(row) + 1
        if room < 0 and kept:
            break
        kept.append(line)
        rows.append(row)
    return kept, rows


async def _in_context(
    scope: Scope, query: LineQuery, chosen: Sequence[StoredLine], room: int
) -> tuple[list[StoredLine], list[str]]:
    """Return the chosen lines, marked, with the lines around them; a line in two contexts is written once."""
    kept: list[StoredLine] = []
    rows: list[str] = []
    hits = {(line.doc_id, line.line_no) for line in chosen}
    place: tuple[str, int] | None = None  # the last line that was written
    for line in chosen:
        first = max(1, line.line_no - query.before)
        if place is not None and place[0] == line.doc_id:
            first = max(first, place[1] + 1)
        last = line.line_no + query.after
        around = LineWhere((line.doc_id,), first=first, last=last)
        found = (await scope.lines(around, last - first + 1)).lines if first <= last else ()
        written = [("> " if (each.doc_id, each.line_no) in hits else "  ") + _row(scope, each) for each in found]
        if written and place is not None and (line.doc_id, first - 1) != place:
            written.insert(0, "  …")
        room -= sum(len(row) + 1 for row in written)
        if room < 0 and kept:
            break
        kept.append(line)
        rows += written
        place = (line.doc_id, max(last, place[1] if place and place[0] == line.doc_id else 0))
    return kept, rows


def _row(scope: Scope, line: StoredLine) -> str:
    """Write a line as `app.log:12 (2024-05-01T10:00:00Z): text`; the time is left out if the line begins with it."""
    at = said(line)
    stamp = f" ({at})" if at and line.ts and line.ts not in line.text[:80] else ""
    return f"{scope.document(line.doc_id).filename}:{line.line_no}{stamp}: {_cut(line.text.rstrip(), LONGEST_SHOWN)}"


def _left(query: LineQuery, matches: Matches, shown: int) -> list[str]:
    if query.mode == "count":
        return []
    left = matches.lines - query.offset - shown
    if not shown:
        return [f"None is shown: offset {query.offset} is beyond the last of them."]
    order = f"in order of {query.order}" if query.mode == "list" else query.mode
    behind = f" after {query.offset}" if query.offset else ""
    more = f"; go on with offset {query.offset + shown}" if left > 0 else ""
    return [f"Shown, {order}: {shown}{behind}; not shown: {max(left, 0) + query.offset}{more}."]


async def _nothing(scope: Scope, query: LineQuery, where: LineWhere) -> str:
    """Say that no line fits, and how many fit each condition by itself."""
    nothing = LineWhere(where.doc_ids)
    if query.line is not None and all(query.line > doc.n_lines for doc in query.documents):
        sizes = ", ".join(f"{doc.filename} has {number_of(doc.n_lines, 'line')}" for doc in query.documents)
        return f"There is no line {query.line}: {sizes}."
    alone = {f'"{text}"': replace(nothing, holding=(text,)) for text in (*query.all_of, *query.any_of)}
    if where.severities:
        alone[f"level {'/'.join(where.severities)}"] = replace(nothing, severities=where.severities)
    if query.component:
        alone[f"component {query.component}"] = replace(nothing, components=where.components)
    if query.period:
        alone[query.period.text] = replace(nothing, clocks=where.clocks, days=where.days, instants=where.instants)
    counts = [f"{name}: {await scope.total(each)}" for name, each in list(alone.items())[:_MOST_ALONE]]
    if query.regex and alone:
        counts.append(f"all of that without the regex: {await scope.total(where)}")
    each = f" Lines that fit each condition alone: {', '.join(counts)}." if len(counts) > 1 else ""
    text = f"No line of {files_listed(query.documents)} fits all of this.{each}"
    # Words within words are found by a regex only: who asks for Exception may mean IOException.
    return f"{text} Texts are matched as whole words; regex also finds parts of words." if alone else text


def _citation(scope: Scope, line: StoredLine) -> Citation:
    name = scope.document(line.doc_id).filename
    return Citation(line.doc_id, name, line.line_no, line.line_no, said(line), f"{line.doc_id}:L{line.line_no}")


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
