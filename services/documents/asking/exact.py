"""Exact answers: the first, last or n-th line, counts, durations, and values of settings."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import replace

from model.words import number_of
from services.documents.asking import conditions
from services.documents.asking.conditions import Names
from services.documents.asking.line_query import LineQuery, Mode, Order
from services.documents.asking.names import NameMention
from services.documents.asking.passages import (
    MAX_NAMED,
    CitedPassage,
    Findings,
    Scope,
    ids_of,
    list_files,
    logs_of,
    names_of,
)
from services.documents.asking.plan import Aggregate, Clauses, Plan, Position
from services.documents.asking.query_lines import (
    DATE,
    STORED,
    count_by_file,
    explain_unknown_days,
    explain_unknown_times,
    find_lines,
    group_counts,
    note_zones,
    resolve,
    zone_in_words,
    zone_of_groups,
)
from services.documents.prepared import ChunkType, DocumentKind
from services.documents.store.protocol import Document, LineWhere, StoredChunk
from services.search import smallest_tokens

_AT_ONCE = 500  # chunks per read
_MAX_LISTED = 50
_INDEX = re.compile(r"(?:\[\d+\])+$")
_UNITS = frozenset({"data", "lines", "entries", "rows", "records", "samples", "columns", "keys", "settings", "values"})


async def find_in_whole_files(scope: Scope, plan: Plan, documents: Sequence[Document], k: int) -> Findings | None:
    """Count lines, rows, columns or keys, or return the ends of files. None: the question asks for something else."""
    if plan.period or plan.mentions or plan.level_is_condition or plan.grouped_by or plan.group_keys:
        return None
    words = tuple(word for word in plan.words if word.casefold() not in _UNITS)
    others = not logs_of(documents)
    if plan.aggregate is None:
        return await _end(scope, plan, documents[:k]) if plan.asks_first_or_last and not words and others else None
    configs = [doc for doc in documents if doc.kind is DocumentKind.CONFIG]
    if configs and (plan.unit == "keys" or not (plan.unit or plan.counts_lines)):
        return await _keys(scope, plan, words, configs, k)
    return None if words or not plan.asks_how_many else await _sizes(scope, plan.unit, documents)


async def _sizes(scope: Scope, unit: str | None, documents: Sequence[Document]) -> Findings | None:
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
        facts.insert(0, f"in {list_files(documents)} altogether: {total}")
    first = [await scope.with_context(doc.doc_id, [1], context=0) for doc in documents[:1] if doc.n_lines]
    return Findings(tuple(first), facts="\n".join(facts), count=total, exact=True)


async def rows_at(scope: Scope, plan: Plan, documents: Sequence[Document], k: int) -> Findings | None:
    """Return the rows of tables in the period of the plan; None: there are none."""
    tables = [doc for doc in documents if doc.kind is DocumentKind.METRICS]
    if plan.period is None or not tables:
        return None
    query = await resolve(scope, LineQuery(documents=tuple(tables), period=plan.period))
    limit = plan.how_many if plan.asks_first_or_last else k
    lines = await scope.lines(query.where, limit, last=plan.position is Position.LAST, by_time=True)
    if not lines.total:
        unknown = await explain_unknown_times(scope, query)
        return Findings(missing=unknown) if unknown else None
    names = {doc.doc_id: await columns_of(scope, doc) for doc in tables}
    passages = [
        replace(await scope.with_context(line.doc_id, [line.line_no]), values=_cells(names[line.doc_id], line.text))
        for line in lines.lines
    ]
    fact = f"rows {plan.period.text} in {list_files(tables)}: {lines.total}"
    facts = fact if plan.asks_how_many or lines.total > limit else ""
    return Findings(tuple(passages), facts=facts, count=lines.total if plan.asks_how_many else None, exact=True)


async def columns_of(scope: Scope, table: Document) -> tuple[str, ...]:
    chunks = await scope.store.chunks(scope.name, table.doc_id, [0])
    listed = chunks[0].extra.get("columns", "") if chunks else ""
    return tuple(name.strip() for name in listed.split(",") if name.strip())


async def _keys(
    scope: Scope, plan: Plan, words: tuple[str, ...], configs: Sequence[Document], k: int
) -> Findings | None:
    """Count the values of configurations, or the values with one name. None: no value has that name."""
    if len(words) > 1 or (plan.unit is None and (not words or plan.ignored or not plan.asks_how_many)):
        return None
    of_each: dict[str, list[StoredChunk]] = {}
    for doc in configs:
        leaves = [chunk for chunk in await _chunks(scope, doc) if chunk.type is ChunkType.LEAF and chunk.key_path]
        of_each[doc.filename] = [leaf for leaf in leaves if not words or _is_called(leaf, words[0])]
    leaves = [leaf for found in of_each.values() for leaf in found]
    if not leaves or (words and plan.asks_how_many and any(map(_holds_several, leaves))):
        return None
    what = f'keys called "{words[0]}"' if words else "keys with a value"
    facts = [f"{what} in {list_files(configs)}: {len(leaves)}"] if len(configs) > 1 else []
    facts += [f"{what} in {name}: {len(found)}" for name, found in of_each.items()]
    if not plan.asks_how_many:
        facts += [str(leaf.key_path) for leaf in leaves[:_MAX_LISTED]]
        facts += [f"(and {len(leaves) - _MAX_LISTED} more)"] if len(leaves) > _MAX_LISTED else []
    passages = [
        replace(
            await scope.with_context(leaf.doc_id, range(leaf.line_start, leaf.line_end + 1)),
            chunk_id=leaf.chunk_id,
            values=(leaf.text,),
        )
        for leaf in leaves[:k]
    ]
    return Findings(tuple(passages), facts="\n".join(facts), count=len(leaves), exact=True)


async def _rows(scope: Scope, table: Document) -> int:
    """Count the rows of a table, without the header."""
    chunks = [chunk for chunk in await _chunks(scope, table) if chunk.type is ChunkType.ROWS]
    return sum(int(chunk.extra.get("rows", "0")) for chunk in chunks)


async def _end(scope: Scope, plan: Plan, documents: Sequence[Document]) -> Findings | None:
    """Return the first or last lines of files that are not empty."""
    passages: list[CitedPassage] = []
    for doc in documents:
        last = plan.position is Position.LAST
        some = await scope.lines(LineWhere((doc.doc_id,)), 2 * plan.how_many + 2, last=last)
        numbers = [line.line_no for line in some.lines if line.text.strip()][: plan.how_many]
        if numbers:
            passages.append(await scope.with_context(doc.doc_id, sorted(numbers)))
    return Findings(tuple(passages), exact=True) if passages else None


async def _chunks(scope: Scope, doc: Document) -> list[StoredChunk]:
    found: list[StoredChunk] = []
    for first in range(0, doc.n_chunks, _AT_ONCE):
        indices = range(first, min(first + _AT_ONCE, doc.n_chunks))
        found += await scope.store.chunks(scope.name, doc.doc_id, indices)
    return found


def _is_called(leaf: StoredChunk, name: str) -> bool:
    """Return True if the key of a value has all words of a name: `ports[0]`, and also `admin_port`, for "ports"."""
    last = _INDEX.sub("", leaf.key_path or "").rsplit(".", 1)[-1]
    return set(smallest_tokens(name)) <= set(smallest_tokens(last))


def _holds_several(leaf: StoredChunk) -> bool:
    """Return True if a value is a list or an object in one line, of which the parts are not counted."""
    return leaf.text.rpartition(" = ")[2].startswith(("[", "{"))


def _cells(columns: tuple[str, ...], row: str) -> tuple[str, ...]:
    """Pair the cells of a row with the columns: `cpu = 0.3, mem = 1030`; empty if their numbers differ."""
    for mark in ",\t;|":
        cells = [cell for line in csv.reader([row], delimiter=mark) for cell in line]
        if len(cells) == len(columns):
            pairs = zip(columns, cells, strict=True)
            return (", ".join(f"{name} = {cell.strip()}" for name, cell in pairs),)
    return ()


MANY = 200
EXAMPLES = 5
MAX_GROUPS = 50

_ASKS_TO_SEE = re.compile(r"\b(?:which|what|where|when|who|why|show|list|print|give|quote|example)\b", re.IGNORECASE)
_WORD = re.compile(r"\w+")


async def find_exact(scope: Scope, plan: Plan, k: int) -> Findings | None:
    """Answer by exact conditions. None: the question has none, so that passages have to be ranked."""
    plan = await _reread_unknown_file(scope, plan)
    documents = scope.named_documents(plan)
    lines = plan.clauses.main.lines if plan.clauses else plan.lines
    if lines is not None:
        found = await _lines(scope, plan, lines, documents[:k])
    elif plan.clauses:
        found = await _by_conditions(scope, plan, documents, k)
    else:
        found = await find_in_whole_files(scope, plan, documents, k) or await _by_conditions(scope, plan, documents, k)
    if found is None:
        return None
    if plan.unknown_file:
        found = _answer_from_others(scope, plan, found)
    return found if found.searched_files or not found.missing else replace(found, searched_files=names_of(documents))


async def _reread_unknown_file(scope: Scope, plan: Plan) -> Plan:
    """Treat a file name without a document, but in the text of documents, as any other name: "line 17 in main.py"."""
    name = plan.unknown_file
    if name is None or not await conditions.is_in_any(scope, name, scope.documents):
        return plan
    place = () if plan.lines is None else (NameMention(f"line {plan.lines[0]}", required=False),)
    mentions = (*plan.mentions, NameMention(name, required=True), *place)
    return replace(plan, unknown_file=None, lines=None, mentions=mentions)


def _answer_from_others(scope: Scope, plan: Plan, found: Findings) -> Findings:
    """Answer from other files if the named one does not exist, provided that the question has a name or a time."""
    none = f"there is no file {plan.unknown_file}"
    if found.missing or not (plan.mentions or plan.period) or plan.asks_how_many or plan.lines:
        return Findings(missing=none, searched_files=names_of(scope.documents))
    return replace(found, notes=(f"{none}; the others were searched", *found.notes))


async def _lines(scope: Scope, plan: Plan, lines: tuple[int, int], documents: Sequence[Document]) -> Findings:
    """Return lines by their numbers, in each of the files; notes say which other conditions these lines do not meet."""
    first, last = lines
    passages: list[CitedPassage] = []
    beyond: list[str] = []
    notes: list[str] = []
    for doc in documents:
        if first < 1 or first > doc.n_lines:
            beyond.append(
                f"line {first} is beyond the end of {doc.filename}, which has {number_of(doc.n_lines, 'line')}"
            )
        elif plan.asks_for_neighbour:
            start = last if plan.position is Position.NEXT else first
            found = await scope.passage_beside(doc.doc_id, start, plan.position, plan.side_lines)
            passages += found.passages
            notes += found.notes
            beyond += [found.missing] if found.missing else []
        else:
            end = min(last, doc.n_lines, first + MANY)
            passages.append(await scope.with_context(doc.doc_id, range(first, end + 1)))
            notes += await _note_unmet_conditions(scope, plan, doc, first, end)
    if not passages:
        many = len(beyond) > MAX_NAMED
        return Findings(
            missing=f"line {first} is beyond the end of all {len(beyond)} files" if many else "; ".join(beyond)
        )
    return Findings(tuple(passages), notes=(*notes, *(beyond if plan.doc_ids else ())), exact=True)


async def _note_unmet_conditions(scope: Scope, plan: Plan, doc: Document, first: int, last: int) -> list[str]:
    """Return notes about conditions of the question that these lines do not meet."""
    bare = LineQuery(documents=(doc,))
    checks = {name: replace(bare, all_of=(name,)) for name in plan.identifiers}
    if plan.period:
        checks[plan.period.text] = replace(bare, period=plan.period)
    if plan.severity:
        checks[plan.severity.text] = replace(bare, levels=plan.severity.alternatives)
    there = {said: replace((await resolve(scope, each)).where, first=first, last=last) for said, each in checks.items()}
    missing = [said for said, where in there.items() if not await scope.total(where)]
    here = replace(bare, period=plan.period, first=first, last=last)
    unknown = await explain_unknown_times(scope, here) if plan.period and plan.period.text in missing else ""
    if plan.period and unknown:
        missing.remove(plan.period.text)
    notes = [unknown] if unknown else []
    place = f"line {first}" if first == last else f"lines {first}-{last}"
    return [*notes, f"{place} of {doc.filename} did not match {', '.join(missing)}"] if missing else notes


async def _by_conditions(scope: Scope, plan: Plan, documents: tuple[Document, ...], k: int) -> Findings | None:
    clauses, whole, plan = plan.clauses, plan, plan.clauses.main if plan.clauses else plan
    named = await conditions.find_names(scope, plan, documents)
    if named.absent:
        elsewhere = await conditions.find_names_elsewhere(scope, plan, documents)
        if elsewhere is None or plan.asks_how_many:
            said = _say_absent(plan, named, documents if elsewhere else scope.documents)
            return replace(said, notes=elsewhere[0].notes) if elsewhere else said
        named, documents = elsewhere
    logs = logs_of(documents)
    if plan.period and not named.found and not clauses and await _asks_about_tables(scope, plan, documents):
        return await rows_at(scope, plan, documents, k)
    if not logs:
        return _say_no_log(plan)
    plan, named, components = await _find_component(scope, plan, named, logs)
    if _has_conditions(plan, named) or components:
        asked = await resolve(scope, conditions.compile_query(plan, logs, named, components))
        found = await _by_compiled(scope, whole, plan, asked, named, k)
        # A name in files other than logs is searched there.
        elsewhere = found and found.missing and named.found and len(logs) < len(documents) and not clauses
        return None if elsewhere else found
    words = (plan.words if plan.position else ()) or (() if plan.words else plan.identifiers)
    asked = LineQuery(documents=logs, words=words)
    if clauses and words:
        return await _within(scope, whole, replace(clauses, main=plan), asked, k, named.notes)
    return await _by_words(scope, plan, asked, k) if words else None


def _say_absent(plan: Plan, named: Names, searched: Sequence[Document]) -> Findings:
    """Say that the names of a question are in none of the searched documents."""
    if dates := [name for name in named.absent if DATE.fullmatch(name)]:
        missing, count = f"it cannot be told which day {dates[0]} is; write it as 2031-03-04", None
    else:
        missing, count = f"no entry mentions {', '.join(named.absent)}", 0 if plan.asks_how_many else None
    return Findings(missing=missing, count=count, searched_files=names_of(searched))


def _say_no_log(plan: Plan) -> Findings | None:
    """Say that there are no entries of a level to put in order or to count. None: the question asks for neither."""
    level = plan.severity if plan.position or plan.aggregate else None
    if level is None or not level.explicit:
        return None
    missing = f"no log is among them, and only entries of logs have levels ({level.text})"
    return Findings(missing=missing, count=0 if plan.asks_how_many else None)


async def _by_compiled(
    scope: Scope, whole: Plan, plan: Plan, asked: LineQuery, named: Names, k: int
) -> Findings | None:
    """Answer by a query that has conditions. `whole`: the plan with the clauses of the question; `plan`: without."""
    notes = named.notes
    if unknown := await explain_unknown_times(scope, asked):
        notes = (*notes, unknown)
        if not await scope.total(asked.where):
            if plan.asks_how_many or not asked.names:
                return Findings(missing=unknown, notes=notes)
            asked = replace(asked, period=None)
    if zones := await note_zones(scope, asked):
        notes = (*notes, zones)
    if whole.clauses:
        return await _within(scope, whole, replace(whole.clauses, main=plan), asked, k, notes)
    if plan.asks_how_many:
        return await _answer_from(scope, plan, asked, asked, await scope.total(asked.where), k, notes)
    others = [doc for doc in logs_of(scope.documents) if doc not in asked.documents]
    fit, total, dropped = await conditions.relax(scope, plan, asked, others)
    return await _answer_from(scope, plan, asked, fit, total, k, (*notes, *dropped))


async def _within(
    scope: Scope, whole: Plan, clauses: Clauses, asked: LineQuery, k: int, notes: tuple[str, ...]
) -> Findings | None:
    """Answer a question with clauses. `whole`: its plan; `asked`: the query for its main part."""
    narrowed = await conditions.add_clauses(scope, clauses, asked)
    plan, query, notes = clauses.main, narrowed.query, (*notes, *narrowed.notes)
    query = conditions.with_words(query, plan) if plan.words else query
    if narrowed.missing:
        return Findings(missing=narrowed.missing, notes=notes)
    total = await scope.total(query.where)
    if not narrowed.unread:
        # A clause limits what the words say: without them it is another question.
        fits = total or not plan.words
        return await _answer_from(scope, plan, query, query, total, k, notes) if fits else None
    if plan.position or plan.asks_for_number:
        bare = bool(plan.position) or query == LineQuery(documents=asked.documents) or (plan.words and not total)
        return None if bare else await _show_uncounted(scope, query, k, narrowed.unread, notes)
    if asked.names or asked.period:
        notes = (*notes, f"found without regard to: {', '.join(narrowed.unread)}")
        return await _answer_from(scope, plan, asked, asked, await scope.total(asked.where), k, notes)
    only_anchor = not (clauses.lacking or clauses.words or clauses.unread or whole.position)
    # Words behind "before" and "after" may be what the line says.
    without_clauses = replace(whole, clauses=None)
    return await _by_conditions(scope, without_clauses, scope.named_documents(whole), k) if only_anchor else None


async def _show_uncounted(
    scope: Scope, query: LineQuery, k: int, uncounted: Sequence[str], notes: tuple[str, ...]
) -> Findings:
    """Show some lines, and no number, where the number that is asked for cannot be told."""
    found = await scope.lines(query.where, k)
    if not found.total:
        return Findings(missing=f"there are no {query.description}", count=0, notes=notes)
    note = f"asked and not computed: {', '.join(uncounted)}. Shown are {query.description}"
    return await scope.passages_with(found.lines, k, (*notes, note))


def _has_conditions(plan: Plan, named: Names) -> bool:
    if plan.period or named.found or plan.level_is_condition or plan.grouped_by or plan.group_keys:
        return True
    if plan.words:
        return plan.counts_lines and plan.asks_how_many
    if plan.asks_how_many and (plan.ignored or plan.mentions):
        return False  # all lines are not what it counts
    return plan.asks_first_or_last or plan.aggregate is not None


async def _asks_about_tables(scope: Scope, plan: Plan, documents: Sequence[Document]) -> bool:
    """Return True if there are only tables, or if the question names one of their columns."""
    tables = [doc for doc in documents if doc not in logs_of(documents)]
    if len(tables) == len(documents):
        return True
    columns = {name.casefold() for doc in tables for name in await columns_of(scope, doc)}
    return any(word.casefold() in columns for word in (*plan.words, *plan.identifiers))


async def _find_component(
    scope: Scope, plan: Plan, named: Names, logs: Sequence[Document]
) -> tuple[Plan, Names, tuple[str, ...]]:
    """Find a component that the question asks about. Returns the plan and the names without it, and the component."""
    asks = plan.asks_how_many or plan.asks_first_or_last
    for name in plan.writer_names if asks else ():
        if await scope.total(LineWhere(ids_of(logs), components=(name,))):
            spoken = {*_WORD.findall(name.casefold()), name.casefold()}
            words = tuple(word for word in plan.words if word.casefold() not in spoken)
            kept = tuple(mention for mention in plan.mentions if mention.text.casefold() not in spoken)
            plan = replace(plan, words=words, mentions=kept)
            asked = tuple(each for each in named.asked if each in plan.identifiers)
            forms = tuple(form for form in named.forms if set(form) <= {*plan.identifiers})
            return plan, replace(named, asked=asked, forms=forms), (name,)
    return plan, named, ()


async def _by_words(scope: Scope, plan: Plan, asked: LineQuery, k: int) -> Findings | None:
    """Return the lines that contain all words, or all parts of a name. None: rank passages, as there are none."""
    total = await scope.total(asked.where)
    # A neighbour of many lines is ambiguous.
    if not total or (plan.asks_for_neighbour and total > k and not plan.start_position):
        return None
    if plan.asks_for_neighbour:
        return await scope.passage_beside_match(asked.where, plan)
    return await _in_order(scope, plan, asked, k, ())


async def _answer_from(
    scope: Scope, plan: Plan, asked: LineQuery, kept: LineQuery, total: int, k: int, notes: tuple[str, ...]
) -> Findings | None:
    """Make the answer from the `total` lines that fit `kept`: the conditions of `asked` that some lines fit."""
    if not total:
        each = await conditions.count_each(scope, asked)
        notes = (*notes, f"no line holds all of this; {each}") if each else notes
        if plan.asks_how_many and not plan.period:
            return Findings(facts=f"{asked.description}: 0", count=0, notes=notes, exact=True)
        return Findings(
            missing=f"there are no {asked.description}", count=0 if plan.asks_how_many else None, notes=notes
        )
    if plan.asks_for_number:
        return await _count(scope, plan, kept, notes, k)
    sure, dropped = bool(kept.names or kept.period), kept != asked
    if plan.words and (total > k or not sure):
        narrower = conditions.with_words(kept, plan)
        if await scope.total(narrower.where):
            kept = narrower
        elif not sure and not (plan.asks_for_neighbour and plan.level_is_condition):
            return None  # its words say more than its conditions: rank
    found = await _in_order(scope, plan, kept, k, notes)
    if not dropped:
        return found
    # Say both numbers: that of the question, and that of the lines found instead.
    instead = found.facts or f"{kept.description}: {await scope.total(kept.where)}"
    return replace(found, facts=f"{asked.description}: 0\n{instead}", count=0)


async def _in_order(scope: Scope, plan: Plan, asked: LineQuery, k: int, notes: tuple[str, ...]) -> Findings:
    where = asked.where
    if plan.asks_first_or_last:
        limited = plan.by_time or len(asked.documents) > 1 or where != LineWhere(where.doc_ids)
        order: Order = "time" if limited else "file"  # the first line of a file is its first
        mode: Mode = "last" if plan.position is Position.LAST else "first"
        limit = abs(plan.ordinal or plan.how_many)
        found = await find_lines(scope, replace(asked, mode=mode, order=order, limit=limit))
        lines, notes = found.chosen, (*notes, *found.notes)
        if found.by_place is not None and len(lines) == 1 and not plan.by_time:
            # Who says "the last one" of a file may mean either: both are shown, that of the file first.
            lines = (found.by_place, *lines)
        if plan.ordinal and found.lines < abs(plan.ordinal):
            return Findings(missing=f"there are only {found.lines} {asked.description}", notes=notes)
        return await scope.passages_with(lines[-1:] if plan.ordinal else lines, k, notes)
    if plan.asks_for_neighbour and (where.holding or where.severities or plan.period or plan.start_position):
        return await scope.passage_beside_match(where, plan, notes)
    some = await scope.lines(where, MANY, last=asked.last is not None)  # the nearest first
    lines = some.lines
    if plan.severity and not where.severities:
        # "Errors" in passing is no condition: entries of that level go first.
        wanted_levels = plan.severity.levels
        lines = sorted(lines, key=lambda line: line.severity not in wanted_levels)
    found = await scope.passages_with(lines, k, notes)
    if plan.aggregate is not Aggregate.LIST and some.total <= k:
        return found
    return replace(found, facts=f"{asked.description}: {some.total}", count=some.total)


async def _count(scope: Scope, plan: Plan, asked: LineQuery, notes: tuple[str, ...], k: int) -> Findings | None:
    """Count the lines that fit, in the groups of the question: over whole files, never over the passages that are
    shown. None: its words are not about lines.
    """
    dropped = ""
    if plan.words:
        narrower = conditions.with_words(asked, plan)
        if await scope.total(narrower.where):
            asked = narrower
        elif plan.distinct and plan.group_keys:
            return None
        elif not plan.asks_how_many or plan.level_is_condition or plan.mentions or plan.grouped_by or plan.group_keys:
            dropped = f" (counted without regard to: {', '.join(plan.words)})"
        elif len(plan.words) > 1 or not plan.counts_mentions:
            return None
        else:
            return Findings(missing=f"there are no {narrower.description}", count=0, notes=notes)
    found = await find_lines(scope, replace(asked, order="file", limit=min(k, EXAMPLES)))
    facts = [f"{asked.description}{dropped}: {found.messages}"]
    if found.messages > found.lines:
        said = number_of(len(found.repeats), "line says", "lines say")
        notes = (*notes, f'{said} "message repeated n times", and counts n times: {found.lines} lines')
    if len(asked.documents) > 1:
        facts += await count_by_file(scope, asked, found.per_document)
    different, uncounted = await _count_groups(scope, plan, asked, facts)
    if plan.distinct and different is None:
        keys = [f"different values of {key}" for key in (*plan.grouped_by, *plan.group_keys)]
        return await _show_uncounted(scope, asked, k, keys, (*notes, *uncounted))
    total, notes = found.messages if different is None else different, (*notes, *uncounted)
    if plan.asks_how_many and _asks_for_a_number_alone(plan):
        names = names_of(asked.documents)
        return Findings(facts="\n".join(facts), count=total, notes=notes, exact=True, searched_files=names)
    return replace(await scope.passages_with(found.chosen, k, notes), facts="\n".join(facts), count=total)


async def _count_groups(
    scope: Scope, plan: Plan, asked: LineQuery, facts: list[str]
) -> tuple[int | None, tuple[str, ...]]:
    """Add to `facts` the numbers by what the question names, else by level, and by component where it asks for none.

    Returns:
        How many values there are, where that is asked; and notes about what lines cannot be counted by.
    """
    different: int | None = None
    notes: tuple[str, ...] = ()
    several = len(asked.where.severities) > 1
    usual = ("severity", "component") if plan.aggregate is Aggregate.GROUPS else ("severity",) if several else ()
    for column in plan.grouped_by or usual:
        groups, without = await group_counts(scope, asked, column)
        unknown = await explain_unknown_days(scope, asked) if column == "day" else ""
        notes = (*notes, unknown) if unknown else notes
        zone = zone_in_words(await zone_of_groups(scope, asked, column))
        facts.append(f"by {column}{zone}: {_list_groups(groups, without if column in STORED else 0)}")
        if plan.distinct and not unknown:
            different = len(groups)
            facts.insert(0, f"different values of {column}: {different}")
    for key in plan.group_keys:
        groups, without = await group_counts(scope, replace(asked, key=key), "key")
        # A line may name it in another way: "user ada logged in".
        _, unread = await group_counts(scope, replace(asked, key=key, words=(*asked.words, key)), "key")
        groups = [] if unread else groups
        facts += [f"by {key}: {_list_groups(groups)}"] if groups else []
        if groups and plan.distinct:
            different = len(groups)
            notes = (*notes, f"{number_of(without, 'line names', 'lines name')} no {key}") if without else notes
            facts.insert(0, f"different values of {key}: {different}")
        notes = notes if groups else (*notes, f"asked and not computed: numbers by {key}")
    return different, notes


def _asks_for_a_number_alone(plan: Plan) -> bool:
    """Return True if a question asks for a number only, and wants to see no lines."""
    by_groups = plan.grouped_by or plan.distinct or plan.group_keys
    return not (by_groups or plan.position or _ASKS_TO_SEE.search(plan.text))


def _list_groups(groups: list[tuple[str, int]], without: int = 0) -> str:
    """Write groups in one line. `without`: how many messages are in none; 0 where a line may be in several."""
    said = [f"{value} {number}" for value, number in groups[:MAX_GROUPS]]
    others = without + sum(number for _, number in groups[MAX_GROUPS:])
    if others:
        said.append(f"{'others or none' if len(groups) > MAX_GROUPS else 'without one'} {others}")
    return ", ".join(said) if groups else "no line names one"
