"""Questions answered without ranking: a line, a time, a name, the first error, how many (DOCUMENT_QA 5.2, 5.3)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from services.documents.asking import names, wording
from services.documents.asking.names import Named, listed
from services.documents.asking.passages import Found, Passage
from services.documents.asking.plan import Plan
from services.documents.asking.scope import RECORDS, Scope, chosen
from services.documents.asking.surroundings import CONTEXT_LINES, around, beside, neighbour
from services.documents.asking.wording import Aggregate, Position
from services.documents.store.protocol import Document, Lines, LineWhere, StoredLine
from services.plurals import number_of

EXAMPLES = 5
MANY = 200
_JOINED = 3
"""Matches no further apart than this are shown in one passage."""

_WORD = re.compile(r"\w+")

_WORST = {"FATAL", "CRITICAL"}


async def find(scope: Scope, plan: Plan, k: int) -> Found | None:
    """The answer by exact conditions; None where the question sets none, so that it has to be ranked."""
    documents = chosen(plan, scope)
    if plan.lines is not None and not (plan.period or plan.mentions):
        return await _lines(scope, plan, documents, k)
    logs = tuple(doc for doc in documents if doc.kind in RECORDS)
    named = await names.look_up(scope, plan, documents)
    if named.absent:
        count = 0 if plan.aggregate is Aggregate.COUNT else None
        return Found(missing=f"no entry mentions {listed(named.absent)}", count=count, notes=named.notes)
    if not logs:
        return None
    plan, components = await _written_by(scope, plan, logs)
    if components:
        named = replace(named, found=tuple(name for name in named.found if name in plan.identifiers))
    if not (_conditions(plan, named) or components):
        asked_for = (plan.words if plan.position else ()) or (() if plan.words else plan.identifiers)
        return await _by_words(scope, plan, logs, asked_for, k) if asked_for else None
    where = await _of_its_level(scope, replace(_where(plan, logs, named), components=components))
    found = await _records(scope, plan, where, named, k)
    # A name that stands in other files than logs is looked for there.
    elsewhere = found is not None and found.missing and named.found and len(logs) < len(documents)
    return None if elsewhere else found


def _conditions(plan: Plan, named: Named) -> bool:
    hard_level = plan.severity is not None and (
        plan.severity.hard or plan.position is not None or plan.aggregate is not None
    )
    wants_order = plan.position in {Position.FIRST, Position.LAST} or plan.aggregate is not None
    counts_words = plan.counts_lines and plan.aggregate is Aggregate.COUNT
    return bool(plan.period or named.found or hard_level or counts_words or (wants_order and not plan.words))


async def _written_by(scope: Scope, plan: Plan, logs: Sequence[Document]) -> tuple[Plan, tuple[str, ...]]:
    """The component that entries are asked of, and the plan without its name: others may name it, too."""
    if plan.aggregate is not Aggregate.COUNT and plan.position not in {Position.FIRST, Position.LAST}:
        return plan, ()
    for name in plan.writers:
        where = LineWhere(tuple(doc.doc_id for doc in logs), components=(name,))
        if (await scope.store.lines(scope.name, where, limit=1)).total:
            spoken = set(_WORD.findall(name.casefold())) | {name.casefold()}
            words = tuple(word for word in plan.words if word.casefold() not in spoken)
            kept = tuple(mention for mention in plan.mentions if mention.text.casefold() not in spoken)
            return replace(plan, words=words, mentions=kept), (name,)
    return plan, ()


async def _of_its_level(scope: Scope, where: LineWhere) -> LineWhere:
    """FATAL and CRITICAL stand for each other only in logs that have but one of them."""
    if set(where.severities) != _WORST:
        return where
    own = LineWhere(where.doc_ids, severities=where.severities[:1])
    there = (await scope.store.lines(scope.name, own, limit=1)).total
    return replace(where, severities=own.severities) if there else where


async def _records(scope: Scope, plan: Plan, wanted: LineWhere, named: Named, k: int) -> Found | None:
    where, lines, relaxed = await _relaxed(scope, plan, wanted)
    notes = (*named.notes, *relaxed)
    if not lines.total:
        if plan.aggregate is Aggregate.COUNT and not plan.period:
            return Found(facts=f"{_described(plan, where)}: 0", count=0, notes=notes, exact=True)
        count = 0 if plan.aggregate is Aggregate.COUNT else None
        return Found(missing=_nothing(plan), count=count, notes=notes)
    if plan.aggregate in {Aggregate.COUNT, Aggregate.GROUPS}:
        return await _computed(scope, plan, where, notes)
    if plan.words and (lines.total > k or not (named.found or plan.period)):
        narrowed = await _narrowed(scope, where, plan.words)
        if narrowed is None and not (named.found or plan.period):
            return None  # its words say more than its conditions: rank
        where = narrowed or where
    return await _in_order(scope, plan, where, k, notes)


async def _by_words(
    scope: Scope, plan: Plan, logs: Sequence[Document], asked_for: tuple[str, ...], k: int
) -> Found | None:
    """The last of the lines that hold all words, or parts of a name; None where there are none: then it is ranked."""
    where = await _narrowed(scope, LineWhere(tuple(doc.doc_id for doc in logs)), asked_for)
    if where is None:
        return None
    if plan.position is Position.NEXT or plan.position is Position.PREVIOUS:
        several = (await scope.store.lines(scope.name, where, limit=1)).total > k
        # Beside which of them?
        return None if several and not plan.anchor else await beside(scope, where, plan.position, (), plan.anchor)
    return await _in_order(scope, plan, where, k, ())


async def _in_order(scope: Scope, plan: Plan, where: LineWhere, k: int, notes: tuple[str, ...]) -> Found:
    """The first, the last, the one beside, or all of the lines that fit."""
    if plan.position is Position.FIRST or plan.position is Position.LAST:
        last = plan.position is Position.LAST
        by_time = len(where.doc_ids) > 1
        wanted = abs(plan.which or plan.wanted)
        some = await scope.store.lines(scope.name, where, limit=wanted, newest_first=last, by_time=by_time)
        if plan.which:
            if some.total < wanted:
                return Found(missing=f"there are only {some.total} {_described(plan, where)}", notes=notes)
            some = replace(some, lines=some.lines[-1:])
        return await _shown(scope, some, k, notes)
    if plan.position is not None and (where.holding or plan.period or plan.anchor):
        return await beside(scope, where, plan.position, notes, plan.anchor)
    some = await scope.store.lines(scope.name, where, limit=MANY)
    found = await _shown(scope, some, k, notes)
    if plan.aggregate is not Aggregate.LIST and some.total <= k:
        return found
    return replace(found, facts=f"{_described(plan, where)}: {some.total}", count=some.total)


def _where(plan: Plan, documents: Sequence[Document], named: Named) -> LineWhere:
    period, level = plan.period, plan.severity
    return LineWhere(
        tuple(doc.doc_id for doc in documents),
        clocks=period.clocks if period else None,
        days=period.days if period else None,
        instants=period.instants if period else None,
        severities=level.levels if level and _level_counts(plan) else (),
        holding=named.found,
    )


async def _lines(scope: Scope, plan: Plan, documents: Sequence[Document], k: int) -> Found:
    first, last = plan.lines or (1, 1)
    if plan.unknown_file:
        return Found(missing=f"there is no file {plan.unknown_file}")
    passages: list[Passage] = []
    beyond: list[str] = []
    for doc in documents[:k]:
        if first < 1 or first > doc.n_lines:
            length = number_of(doc.n_lines, "line")
            beyond.append(f"line {first} is beyond the end of {doc.filename}, which has {length}")
            continue
        if plan.position is Position.NEXT or plan.position is Position.PREVIOUS:
            found = await neighbour(scope, doc.doc_id, last if plan.position is Position.NEXT else first, plan.position)
            passages += found.passages
            beyond += [found.missing] if found.missing else []
            continue
        matched = range(first, min(last, doc.n_lines, first + MANY) + 1)
        passages.append(await around(scope, doc.doc_id, matched))
    if not passages:
        return Found(missing="; ".join(beyond))
    return Found(tuple(passages), notes=tuple(beyond) if plan.doc_ids else (), exact=True)


def _level_counts(plan: Plan) -> bool:
    level = plan.severity
    return level is not None and (level.hard or plan.position is not None or plan.aggregate is not None)


async def _relaxed(scope: Scope, plan: Plan, where: LineWhere) -> tuple[LineWhere, Lines, tuple[str, ...]]:
    """What fits; else what fits with less asked: first without the level, then without the time, then elsewhere."""
    lines = await scope.store.lines(scope.name, where, limit=1)
    counted = plan.aggregate is Aggregate.COUNT
    only_level = not (plan.period or where.holding)
    if lines.total or counted or only_level:
        return where, lines, ()
    tried = where
    notes: list[str] = []
    if where.severities and plan.severity:
        tried = replace(tried, severities=())
        lines = await scope.store.lines(scope.name, tried, limit=1)
        notes.append(f"no entry matched {plan.severity.text}")
        if lines.total:
            return tried, lines, tuple(notes)
    if plan.period and where.holding:
        tried = replace(tried, clocks=None, days=None, instants=None)
        lines = await scope.store.lines(scope.name, tried, limit=1)
        notes.append(f"no entry matched {plan.period.text}")
        if lines.total:
            return tried, lines, tuple(notes)
    return where, Lines(0, ()), tuple(notes)


async def _narrowed(scope: Scope, where: LineWhere, words: tuple[str, ...]) -> LineWhere | None:
    narrower = replace(where, words=words)
    return narrower if (await scope.store.lines(scope.name, narrower, limit=1)).total else None


async def _computed(scope: Scope, plan: Plan, where: LineWhere, notes: tuple[str, ...]) -> Found | None:
    """Counts over whole files: never over the passages that happen to be shown."""
    if plan.words:
        narrowed = await _narrowed(scope, where, plan.words)
        if narrowed is None and plan.aggregate is Aggregate.COUNT and not _level_counts(plan) and not plan.mentions:
            if len(plan.words) > 1 or not wording.counts_mentions(plan.question):
                return None
            where = replace(where, words=plan.words)
            return Found(missing=f"there are no {_described(plan, where)}", count=0, notes=notes)
        if narrowed is not None and plan.aggregate is Aggregate.COUNT:
            where = narrowed
        elif plan.aggregate is Aggregate.COUNT:
            notes = (*notes, f"counted without regard to: {listed(plan.words)}")
    lines = await scope.store.lines(scope.name, where, limit=MANY)
    facts = [f"{_described(plan, where)}: {lines.total}"]
    if len(lines.per_document) > 1:
        facts += [f"{scope.document(doc_id).filename}: {count}" for doc_id, count in lines.per_document.items()]
    if plan.aggregate is Aggregate.GROUPS:
        for column in ("severity", "component"):
            groups = await scope.store.distinct(scope.name, where, column)
            if groups:
                facts.append(f"by {column}: " + ", ".join(f"{value} {count}" for value, count in groups))
    examples = replace(lines, lines=lines.lines[:EXAMPLES])
    shown = await _shown(scope, examples, EXAMPLES, notes)
    return replace(shown, facts="\n".join(facts), count=lines.total)


async def _shown(scope: Scope, lines: Lines, k: int, notes: tuple[str, ...]) -> Found:
    groups = _groups(lines.lines)
    passages = [await around(scope, doc_id, numbers) for doc_id, numbers in groups[:k]]
    left = sum(len(numbers) for _, numbers in groups[k:])
    more = (number_of(left, "more line fits and is not shown", "more lines fit and are not shown"),) if left else ()
    return Found(tuple(passages), notes=(*notes, *more), exact=True)


def _groups(lines: Sequence[StoredLine]) -> list[tuple[str, list[int]]]:
    """Lines close to each other go into one passage; the order stays."""
    groups: list[tuple[str, list[int]]] = []
    for line in lines:
        near = groups and groups[-1][0] == line.doc_id and abs(groups[-1][1][-1] - line.line_no) <= _JOINED
        if near and len(groups[-1][1]) < CONTEXT_LINES * 2:
            groups[-1][1].append(line.line_no)
        else:
            groups.append((line.doc_id, [line.line_no]))
    return groups


def _described(plan: Plan, where: LineWhere | None = None) -> str:
    """The conditions, in words."""
    parts: list[str] = []
    if plan.severity and _level_counts(plan):
        parts.append("/".join((where and where.severities) or plan.severity.levels))
    parts.append("entries")
    names = plan.identifiers if where is None else where.holding
    if names:
        parts.append(f"mentioning {listed(names)}")
    if where is not None and where.components:
        parts.append(f"written by {listed(where.components)}")
    if where is not None and where.words:
        parts.append("with the words " + ", ".join(where.words))
    if plan.period:
        parts.append(plan.period.text)
    if plan.file:
        parts.append(f"in {plan.file}")
    return " ".join(parts)


def _nothing(plan: Plan) -> str:
    return f"there are no {_described(plan)}"
