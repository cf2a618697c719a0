"""Runs a line query: finds, groups and orders the matching lines, and renders the answer."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from model.words import number_of
from services.documents.asking import line_query
from services.documents.asking.line_query import LineQuery, Pattern, QueryRefused
from services.documents.asking.passages import (
    Citation,
    Scope,
    ids_of,
    list_files,
    logs_of,
    time_of,
    without_placeholder_year,
)
from services.documents.asking.times import Period, without_year
from services.documents.asking.vocabulary import LEVELS
from services.documents.store.protocol import LineWhere, StoredLine
from services.storage import in_thread

STORED: Mapping[str, str] = {
    "level": "severity",
    **{column: column for column in ("severity", "component", "day", "hour", "minute")},
}
"""The columns of the store that lines are counted by, by their names in a question."""
IN_ORDER = frozenset({"day", "hour", "minute"})  # their groups are in order of time; others are sorted by size

Values = Callable[[str], Iterable[str]]

_OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_ADDRESS = re.compile(
    rf"(?<![\w.]){_OCTET}(?:\.{_OCTET}){{3}}(?![\w]|\.\d)"
    # Without backtracking: a run of hex digits can be cut in one way only, or a line of them would take half a second.
    r"|(?<![\w:.])(?>(?:[0-9a-f]{1,4}+:){2,7}):?[0-9a-f]{1,4}+(?>(?::[0-9a-f]{1,4}+){0,6})(?![\w:])",
    re.IGNORECASE,
)
_CLOCK = re.compile(r"[0-9]{1,2}(?::[0-9]{1,2}){1,2}")
_THREAD = re.compile(r"\bthread(?:[_.-]?(?:name|id))?[\"']?\s?[=:]\s?[\"']?([\w.#-]{1,60})", re.IGNORECASE)
_BRACKETS = re.compile(r"(?<!\S)\[([A-Za-z][^\[\]\n]{0,79})\]")
_RUN = re.compile(r"[\w.:/-]+")
_SHAPE_CHARS = 160
_REPEATED = re.compile(r"\bmessage repeated (\d{1,6}) times\b", re.IGNORECASE)

REPEATED = "message repeated"


def addresses(text: str) -> list[str]:
    """Return the IP addresses of a line, each once, without ports."""
    return list(dict.fromkeys(found[0] for found in _ADDRESS.finditer(text) if not _CLOCK.fullmatch(found[0])))


def threads(text: str) -> list[str]:
    """Return the thread that wrote a line: `thread=worker-3`, `[main]`."""
    if named := _THREAD.search(text):
        return [named[1]]
    return [found[1] for found in _BRACKETS.finditer(text) if found[1].lower() not in LEVELS][:1]


def values_of(key: str) -> Values:
    """Return a function that reads the values of `key=value`, `key: value`, `"key": "value"`."""
    spelt = re.compile(
        rf"(?<![\w.-]){re.escape(key)}[\"']?\s?[=:]\s?(?:\"([^\"\n]{{0,200}})\"|'([^'\n]{{0,200}})'|([^\s,;|()\[\]{{}}\"']{{1,200}}))",
        re.IGNORECASE,
    )
    return lambda text: dict.fromkeys(next(filter(None, found.groups()), "") for found in spelt.finditer(text))


def captures_of(pattern: Pattern, longest: int) -> Values:
    """Return a function that reads the pattern's first group; without a group, the whole match."""

    def read(text: str) -> list[str]:
        found = pattern.search(text[:longest])
        if found is None:
            return []
        return [next((group for group in found.groups() if group is not None), found[0])]

    return read


def messages(text: str) -> list[str]:
    """Return the message of a line with its numbers masked: lines of one shape are one message."""
    shape = " ".join(_RUN.sub(_mask_run, text[: 4 * _SHAPE_CHARS]).split()).lstrip("# ,.:-")
    return [shape[:_SHAPE_CHARS]] if shape else []


def _mask_run(run: re.Match[str]) -> str:
    return "#" if any(map(str.isdigit, run[0])) else run[0]


READ: Mapping[str, Values] = {"address": addresses, "thread": threads, "message": messages}
"""Columns that the store does not have: each is read from the text of the line."""


def message_count(text: str) -> int:
    """Return the number of messages that a line stands for: five, for `message repeated 5 times: […]`."""
    found = _REPEATED.search(text)
    return max(1, int(found[1])) if found else 1


_SECONDS = 5.0  # the time limit of a regex, for all lines together
_PAGE = 10_000  # lines per read
_MAX_VALUES = 10_000
_NO_YEAR = ("0000", "0001")
_ANY_TIME = ("00:00:00", "24:00:00")
_KNOWN_DAYS, _UNKNOWN_DAYS = ("0000-01-01", "9999-12-31"), ("0000-00-00", "0000-00-99")
_UNKNOWN_DAY = "0000-00-"
DATE = re.compile(r"[0-9]{1,2}[./-][0-9]{1,2}[./-][0-9]{4}")  # day and month may be swapped


@dataclass(frozen=True, slots=True)
class Matches:
    """The lines that fit, counted by file, and the lines to show. A line may stand for several `messages`."""

    lines: int
    messages: int
    repeats: tuple[StoredLine, ...]
    per_document: Mapping[str, int]
    chosen: tuple[StoredLine, ...]  # from `offset`, at most `limit`
    notes: tuple[str, ...] = ()
    by_place: StoredLine | None = None  # the first or last line of the file, if it is another one than by time


async def resolve(scope: Scope, query: LineQuery) -> LineQuery:
    """Adapt the query to its files: no year if they have none; FATAL is CRITICAL and the reverse if one is missing."""
    anything = LineWhere(ids_of(query.documents))
    if query.period is not None:
        timed = await scope.lines(replace(anything, days=_KNOWN_DAYS), 1, by_time=True)
        if timed.lines and (timed.lines[0].ts_utc or "").startswith(_NO_YEAR):
            query = replace(query, period=without_year(query.period))
    if query.levels:
        there = {level for level, _ in await scope.store.distinct(scope.name, anything, "severity")}
        query = replace(query, levels=tuple(meant[:1] if meant[0] in there else meant for meant in query.levels))
    return query


async def explain_unknown_times(scope: Scope, query: LineQuery) -> str:
    """Say for which lines it cannot be told if they are in the period of a query, and why; empty: for none."""
    period = query.period
    if period is None:
        return ""
    whole = replace(query.where, clocks=None, days=None, instants=None, zone=None)
    timed = (await scope.lines(LineWhere(whole.doc_ids, clocks=_ANY_TIME), 1)).per_document
    untimed = ids_of([doc for doc in logs_of(query.documents) if not timed.get(doc.doc_id)])
    wheres = [replace(whole, doc_ids=untimed)] if untimed else []
    if period.zone is not None:
        wheres.append(replace(whole, zoneless=True))
    elif period.days or period.instants:
        wheres.append(replace(whole, clocks=period.clocks, days=_UNKNOWN_DAYS))
    said: list[str] = []
    for where in wheres:
        found = await scope.lines(where, 1)
        if found.total:
            date = DATE.search(found.lines[0].ts or "")
            why = "they have times without a day" if found.lines[0].ts else "no time of theirs could be read"
            why = f"either number of {date[0]} may be the day" if date else why
            why = "their times have no zone" if where.zoneless else why
            files = list_files([scope.document(doc_id) for doc_id in found.per_document])
            lines = number_of(found.total, "line", "lines")
            asks = f'if "{period.text}" fits' if period.text else "on which day it was"
            said.append(f"for {lines} of {files} it cannot be told {asks}: {why}")
    return "; ".join(said)


async def explain_unknown_days(scope: Scope, query: LineQuery) -> str:
    """Say for which lines of a query the day cannot be told, and why; empty: for none."""
    period = query.period or Period("")
    if period.days or period.instants or period.zone is not None:
        return ""  # the lines of a query for days, or for a time in a zone, have one
    return await explain_unknown_times(scope, replace(query, period=replace(period, text="", days=_KNOWN_DAYS)))


async def note_zones(scope: Scope, query: LineQuery) -> str:
    """Say that the times of a query are compared as the files write them, where their zones differ; else empty."""
    period = query.period
    as_written = period and period.zone is None and (period.clocks or period.days or period.instants)
    if not (as_written and await _zones_differ(scope, query)):
        return ""
    return "times are compared as they are written, and their zones differ"


async def zone_of_groups(scope: Scope, query: LineQuery, group: str) -> int | None:
    """Return the zone of the days, hours or minutes that lines are counted by: that of the query, and UTC where the
    zones of the lines differ. None: they are as the lines write them, or are no times.
    """
    period = query.period or Period("")
    if STORED.get(group) not in IN_ORDER:
        return None
    if period.zone is not None:
        return period.zone
    as_written = period.clocks or period.days or period.instants
    return None if as_written or not await _zones_differ(scope, query) else 0


def zone_in_words(zone: int | None) -> str:
    """Return a zone behind the name of a group: ` (UTC+02:00)`; empty for none."""
    if zone is None:
        return ""
    hours, minutes = divmod(abs(zone), 60)
    return f" (UTC{'-' if zone < 0 else '+'}{hours:02}:{minutes:02})" if zone else " (UTC)"


async def _zones_differ(scope: Scope, query: LineQuery) -> bool:
    return len(await scope.store.distinct(scope.name, LineWhere(ids_of(query.documents)), "zone")) > 1


async def count_by_file(scope: Scope, query: LineQuery, per_document: Mapping[str, int]) -> list[str]:
    """Write the number of lines of each file of a query: `app.log: 3`. It is not 0 where none can be told."""
    said: list[str] = []
    for doc in query.documents:
        number = per_document.get(doc.doc_id, 0)
        unknown = not number and await explain_unknown_times(scope, replace(query, documents=(doc,)))
        said.append(f"{doc.filename}: {'cannot be told' if unknown else number}")
    return said


async def find_lines(scope: Scope, query: LineQuery) -> Matches:
    """Return the lines that fit a resolved query. Raises QueryRefused: the regex takes too long on these files."""
    return await (_scan(scope, query) if query.regex else _query_store(scope, query))


async def _query_store(scope: Scope, query: LineQuery) -> Matches:
    """Find lines by conditions that the store can check."""
    wanted, notes, by_place = query.offset + query.limit, (), None
    last = query.mode == "last"
    if query.mode in {"first", "last"} and query.order == "time":
        found, by_place, notes = await scope.find_end(query.where, wanted, last=last)
    else:
        by_time = query.order == "time" and query.mode != "context"
        found = await scope.lines(query.where, max(wanted, 1), last=last, by_time=by_time)
    chosen = found.lines[query.offset : wanted]
    repeats = await _repeats(scope, query)
    messages = found.total + await in_thread(_extra_messages, repeats)
    return Matches(found.total, messages, repeats, found.per_document, chosen, notes, by_place)


def _extra_messages(repeats: Iterable[StoredLine]) -> int:
    return sum(message_count(line.text) - 1 for line in repeats)


async def _repeats(scope: Scope, query: LineQuery) -> tuple[StoredLine, ...]:
    """Return the matching lines that stand for several messages."""
    return (await scope.lines(replace(query, all_of=(*query.all_of, REPEATED)).where, _PAGE)).lines


async def _scan(scope: Scope, query: LineQuery) -> Matches:
    """Find lines by a regular expression, tried on every line that fits the other conditions."""
    fit = [line async for lines in _matching_pages(scope, query) for line in lines]
    return await in_thread(_matches, query, fit)


def _matches(query: LineQuery, fit: Sequence[StoredLine]) -> Matches:
    last = query.mode == "last"
    if query.order == "file" or query.mode == "context":
        ordered = list(reversed(fit)) if last else list(fit)
    else:  # lines without a time come last, whichever end is wanted
        timed = sorted((line for line in fit if line.ts_utc), key=lambda line: (line.ts_utc or "").rstrip("Z"))
        ordered = [*(reversed(timed) if last else timed), *(line for line in fit if not line.ts_utc)]
    chosen = tuple(ordered[query.offset : query.offset + query.limit])
    repeats = tuple(line for line in fit if message_count(line.text) > 1)
    messages = len(fit) + _extra_messages(repeats)
    return Matches(len(fit), messages, repeats, Counter(line.doc_id for line in fit), chosen)


async def _matching_pages(scope: Scope, query: LineQuery) -> AsyncIterator[Sequence[StoredLine]]:
    """Yield all lines that fit, file by file in their order, in pages."""
    where, left = query.where, _SECONDS
    for doc in query.documents:
        end = min(where.last or doc.n_lines, doc.n_lines)
        for first in range(where.first or 1, end + 1, _PAGE):
            page = replace(where, doc_ids=(doc.doc_id,), first=first, last=min(first + _PAGE - 1, end))
            lines: Sequence[StoredLine] = (await scope.lines(page, _PAGE)).lines
            if query.regex:
                begun = time.perf_counter()  # real time: a pattern that is too slow is refused, whatever it has found
                lines = await in_thread(_search_lines, query.regex, lines, begun + left)
                left -= time.perf_counter() - begun
            yield lines


def _search_lines(pattern: Pattern, lines: Sequence[StoredLine], until: float) -> list[StoredLine]:
    fit: list[StoredLine] = []
    for line in lines:
        if pattern.search(line.text[: line_query.LONGEST_LINE]):
            fit.append(line)
        if time.perf_counter() > until:
            raise QueryRefused(
                "The regex takes too long on these files; use all_of or any_of, or narrow by since and until."
            )
    return fit


async def group_counts(scope: Scope, query: LineQuery, group: str) -> tuple[list[tuple[str, int]], int]:
    """Count the messages of each value of a group, and those without a value; a line with two values counts for both.

    Days, hours and minutes are in their order, other values are sorted by count. `group`: a column, or `capture` or
    `key`, whose pattern or name is in the query.
    """
    counts = Counter[str]()
    without = 0
    column = STORED.get(group)
    zone = await zone_of_groups(scope, query, group)
    if column and not query.regex:
        where = query.where if zone is None else replace(query.where, zone=zone)
        counts.update(dict(await scope.store.distinct(scope.name, where, column, limit=_MAX_VALUES)))
        without = await scope.total(query.where) - counts.total()
        for line in await _repeats(scope, query):
            own = LineWhere((line.doc_id,), first=line.line_no, last=line.line_no, zone=zone)
            for value, _ in await scope.store.distinct(scope.name, own, column):
                counts[value] += message_count(line.text) - 1
    else:
        read = _reader(query, group, zone)
        async for lines in _matching_pages(scope, query):
            without += await in_thread(_count, counts, read, lines)
    if column == "day":
        unknown = [day for day in counts if day.startswith(_UNKNOWN_DAY)]
        without += sum(counts.pop(day) for day in unknown)
    ranked = sorted(counts.items(), key=lambda pair: (0 if column in IN_ORDER else -pair[1], pair[0]))
    return [(without_placeholder_year(value), number) for value, number in ranked], without


def _count(counts: Counter[str], read: Callable[[StoredLine], Iterable[str]], lines: Sequence[StoredLine]) -> int:
    """Add the messages of each value to the counts. Returns the number of messages without a value."""
    without = 0
    for line in lines:
        values = [value for value in read(line) if value]
        counts.update(dict.fromkeys(values, message_count(line.text)))
        without += 0 if values else message_count(line.text)
    return without


def _reader(query: LineQuery, group: str, zone: int | None) -> Callable[[StoredLine], Iterable[str]]:
    """Return a function that reads the values of a group from a line."""
    if column := STORED.get(group):
        return lambda line: [_stored_value(line, column, zone)]
    if group == "capture" and query.regex:
        values = captures_of(query.regex, line_query.LONGEST_LINE)
    else:
        values = values_of(query.key) if group == "key" and query.key else READ[group]
    return lambda line: values(line.text)


def _stored_value(line: StoredLine, column: str, zone: int | None) -> str:
    day, _, clock = _time_in_zone(line, zone).partition("T")
    values = {"severity": line.severity, "component": line.component, "day": day, "hour": f"{day} {clock[:2]}h"}
    return (values[column] or "") if day or column not in IN_ORDER else ""


def _time_in_zone(line: StoredLine, zone: int | None) -> str:
    """Return the minute of a line in a zone, or the writer's time; empty: it is not known."""
    if zone is None:
        return line.local or ""
    if not (line.ts_utc or "").endswith("Z"):
        return ""
    try:
        return f"{datetime.fromisoformat((line.ts_utc or '')[:16]) + timedelta(minutes=zone):%Y-%m-%dT%H:%M}"
    except (ValueError, OverflowError):
        return ""


LONGEST_SHOWN = 400  # characters of a line
ROOM = 6000  # characters of all lines and groups that are shown
_MAX_ALONE = 8  # conditions whose own counts are reported


@dataclass(frozen=True, slots=True)
class FoundLines:
    """The answer to a line query. `total`: the number of matching messages; a line may stand for several."""

    text: str
    total: int
    citations: tuple[Citation, ...] = ()


async def answer(scope: Scope, query: LineQuery) -> FoundLines:
    """Return the lines that fit, or why none does. Raises QueryRefused: the regex takes too long on these files."""
    query = await resolve(scope, query)
    matches = await find_lines(scope, query)
    unknown = await explain_unknown_times(scope, query)
    if not unknown and query.group_by == "day":
        unknown = await explain_unknown_days(scope, query)
    if not matches.lines:
        text = f"{unknown[0].upper()}{unknown[1:]}. No other line fits." if unknown else ""
        return FoundLines(text or await _explain_no_match(scope, query), 0)
    counted = _describe_counts(query, matches, await count_by_file(scope, query, matches.per_document))
    groups = await _groups(scope, query, query.group_by, matches) if query.group_by else []
    room = ROOM - sum(map(len, groups))
    kept, lines = await _render_lines(scope, query, matches.chosen, room)
    notes = [f"Note: {note}." for note in (*matches.notes, unknown, await note_zones(scope, query)) if note]
    text = "\n".join([counted, *notes, *groups, *_describe_rest(query, matches, len(kept)), *lines])
    return FoundLines(text, matches.messages, tuple(_citation(scope, line) for line in kept))


def _describe_counts(query: LineQuery, matches: Matches, by_file: Sequence[str]) -> str:
    files = query.documents
    said_so = f"{number_of(matches.lines, 'line fits', 'lines fit')} in {list_files(files)}."
    if extra := matches.messages - matches.lines:
        stand = number_of(len(matches.repeats), "line says", "lines say")
        said_so += (
            f' {stand} "message repeated n times" and counts n times: {matches.messages} messages'
            f" ({extra} more than lines)."
        )
    if len(files) > 1:
        said_so += f" {', '.join(by_file)}."
    return said_so


async def _groups(scope: Scope, query: LineQuery, group: str, matches: Matches) -> list[str]:
    """Return the `top` groups with their numbers."""
    ranked, without = await group_counts(scope, query, group)
    top = ranked[: query.top]
    name = (
        f"key {query.key}" if group == "key" else f"{group}{zone_in_words(await zone_of_groups(scope, query, group))}"
    )
    what = "messages" if matches.messages != matches.lines else "lines"
    more = f", {len(ranked) - len(top)} not shown" if len(ranked) > len(top) else ""
    rows = [f"  {_cut(value, 200)}: {number}" for value, number in top]
    rest = sum(number for _, number in ranked[query.top :])
    rows += [f"  (others: {rest})"] if rest else []
    rows += [f"  (without one: {without})"] if without else []
    return [f"By {name}, {number_of(len(ranked), 'value')}{more}; {what}:", *rows]


async def _render_lines(
    scope: Scope, query: LineQuery, chosen: Sequence[StoredLine], room: int
) -> tuple[list[StoredLine], list[str]]:
    """Return as many of the chosen lines as there is room for, and their text."""
    if query.mode == "context":
        return await _render_contexts(scope, query, chosen, room)
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


async def _render_contexts(
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
    at = time_of(line)
    stamp = f" ({at})" if at and line.ts and line.ts not in line.text[:80] else ""
    return f"{scope.document(line.doc_id).filename}:{line.line_no}{stamp}: {_cut(line.text.rstrip(), LONGEST_SHOWN)}"


def _describe_rest(query: LineQuery, matches: Matches, shown: int) -> list[str]:
    if query.mode == "count":
        return []
    left = matches.lines - query.offset - shown
    if not shown:
        return [f"None is shown: offset {query.offset} is beyond the last of them."]
    order = f"in order of {query.order}" if query.mode == "list" else query.mode
    behind = f" after {query.offset}" if query.offset else ""
    more = f"; go on with offset {query.offset + shown}" if left > 0 else ""
    return [f"Shown, {order}: {shown}{behind}; not shown: {max(left, 0) + query.offset}{more}."]


async def _explain_no_match(scope: Scope, query: LineQuery) -> str:
    """Say that no line fits, and how many lines fit each condition by itself."""
    bare = LineQuery(documents=query.documents)
    if query.line is not None and all(query.line > doc.n_lines for doc in query.documents):
        sizes = ", ".join(f"{doc.filename} has {number_of(doc.n_lines, 'line')}" for doc in query.documents)
        return f"There is no line {query.line}: {sizes}."
    alone = {f'"{text}"': replace(bare, all_of=(text,)) for text in (*query.all_of, *query.any_of)}
    if query.levels:
        alone[f"level {'/'.join(query.where.severities)}"] = replace(bare, levels=query.levels)
    if query.components:
        alone[f"component {query.components[0]}"] = replace(bare, components=query.components)
    if query.period:
        alone[query.period.text] = replace(bare, period=query.period)
    counts = [f"{name}: {await scope.total(each.where)}" for name, each in list(alone.items())[:_MAX_ALONE]]
    if query.regex and alone:
        counts.append(f"all of that without the regex: {await scope.total(query.where)}")
    each = f" Lines that fit each condition alone: {', '.join(counts)}." if len(counts) > 1 else ""
    text = f"No line of {list_files(query.documents)} fits all of this.{each}"
    # Only a regex finds words within words: Exception may mean IOException.
    return f"{text} Texts are matched as whole words; regex also finds parts of words." if alone else text


def _citation(scope: Scope, line: StoredLine) -> Citation:
    name = scope.document(line.doc_id).filename
    return Citation(line.doc_id, name, line.line_no, line.line_no, time_of(line), f"{line.doc_id}:L{line.line_no}")


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
