"""Questions answered without ranking: a line, a time, a name, the first error, how many (DOCUMENT_QA 5.2, 5.3)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from services.documents.asking import conditions, counting, names, whole_files
from services.documents.asking.plan import Aggregate
from services.documents.asking.conditions import Conditions, Fitting
from services.documents.asking.mentions import NameMention
from services.documents.asking.names import Names
from services.documents.asking.passages import CitedPassage, Retrieved
from services.documents.asking.plan import Plan
from services.documents.asking.plan import Position
from services.documents.asking.scope import MOST_NAMED, Scope, chosen, ids_of, listed, logs_of
from services.documents.asking.surroundings import around, beside, neighbours, shown
from services.documents.store.protocol import Document, LineWhere
from services.telemetry import number_of

MANY = 200

_WORD = re.compile(r"\w+")
_WORST = (("FATAL", "CRITICAL"), ("ERROR",), ("WARN",))
_TROUBLE = re.compile(
    r"\b(?:crash|fail|broke|break|wrong|problem|issue|trouble|exception|hang|hung|freez|froze|die[sd]?\b|dying|stop|kill|restart"
    r"|not work|(?:does|do|did|wo|ca|is)n['’]?t\b|unable|cannot)",
    re.IGNORECASE,
)


async def find(scope: Scope, plan: Plan, k: int) -> Retrieved | None:
    """The answer by exact conditions; None where the question sets none, so that it has to be ranked."""
    plan = await _with_files_that_are_there(scope, plan)
    documents = chosen(plan, scope)
    if plan.lines is not None:
        found = await _lines(scope, plan, documents, k)
    else:
        found = await whole_files.find(scope, plan, documents, k) or await _by_conditions(scope, plan, documents, k)
    if found is None:
        return None
    if plan.unknown_file:
        found = _elsewhere_than_asked(scope, plan, found)
    return found if found.searched or not found.missing else replace(found, searched=files_of(documents))


def files_of(documents: Sequence[Document]) -> tuple[str, ...]:
    return tuple(doc.filename for doc in documents)


async def _with_files_that_are_there(scope: Scope, plan: Plan) -> Plan:
    """What looks like a file, and stands in the documents, is a name like any other: "line 17 in main.py"."""
    name = plan.unknown_file
    if name is None or not await names.is_held(scope, name, scope.documents):
        return plan
    place = () if plan.lines is None else (NameMention(f"line {plan.lines[0]}", hard=False),)
    mentions = (*plan.mentions, NameMention(name, hard=True), *place)
    return replace(plan, unknown_file=None, lines=None, mentions=mentions)


def _elsewhere_than_asked(scope: Scope, plan: Plan, found: Retrieved) -> Retrieved:
    """A file that is not there may be left out of what is asked only where a name or a time is left of it."""
    none = f"there is no file {plan.unknown_file}"
    if found.missing or not (plan.mentions or plan.period) or plan.aggregate is Aggregate.COUNT or plan.lines:
        return Retrieved(missing=none, searched=files_of(scope.documents))
    return replace(found, notes=(f"{none}; the others were searched", *found.notes))


async def _lines(scope: Scope, plan: Plan, documents: Sequence[Document], k: int) -> Retrieved:
    """Lines by their numbers, in each of the files; whatever else is asked of them is looked for in them alone."""
    first, last = plan.lines or (1, 1)
    passages: list[CitedPassage] = []
    beyond: list[str] = []
    notes: list[str] = []
    for doc in documents[:k]:
        if first < 1 or first > doc.n_lines:
            length = number_of(doc.n_lines, "line")
            beyond.append(f"line {first} is beyond the end of {doc.filename}, which has {length}")
            continue
        if plan.goes_beside and plan.position:
            start = last if plan.position is Position.NEXT else first
            found = await neighbours(scope, doc.doc_id, start, plan.position, steps=plan.steps)
            passages += found.passages
            notes += found.notes
            beyond += [found.missing] if found.missing else []
            continue
        end = min(last, doc.n_lines, first + MANY)
        passages.append(await around(scope, doc.doc_id, range(first, end + 1)))
        notes += await _not_on_them(scope, plan, doc, first, end)
    if not passages:
        told = beyond if len(beyond) <= MOST_NAMED else [f"line {first} is beyond the end of all {len(beyond)} files"]
        return Retrieved(missing="; ".join(told))
    return Retrieved(tuple(passages), notes=(*notes, *(beyond if plan.doc_ids else ())), exact=True)


async def _not_on_them(scope: Scope, plan: Plan, doc: Document, first: int, last: int) -> list[str]:
    """What else the question says of these lines, and does not hold of them."""
    checks = {name: LineWhere((), holding=(name,)) for name in plan.identifiers}
    if plan.period:
        checks[plan.period.text] = conditions.at(plan.period, ())
    if plan.severity:
        checks[plan.severity.text] = LineWhere((), severities=plan.severity.levels)
    missing: list[str] = []
    for said, where in checks.items():
        there = replace(where, doc_ids=(doc.doc_id,), first=first, last=last)
        if not (await scope.store.lines(scope.name, there, limit=1)).total:
            missing.append(said)
    place = f"line {first}" if first == last else f"lines {first}-{last}"
    return [f"{place} of {doc.filename} did not match {listed(missing)}"] if missing else []


async def _by_conditions(scope: Scope, plan: Plan, documents: tuple[Document, ...], k: int) -> Retrieved | None:
    named = await names.look_for(scope, plan, documents)
    if named.absent:
        elsewhere = await names.look_elsewhere(scope, plan, documents)
        if elsewhere is None or plan.aggregate is Aggregate.COUNT:
            count = 0 if plan.aggregate is Aggregate.COUNT else None
            notes, searched = ((), scope.documents) if elsewhere is None else (elsewhere[0].notes, documents)
            missing = f"no entry mentions {listed(named.absent)}"
            return Retrieved(missing=missing, count=count, notes=notes, searched=files_of(searched))
        named, documents = elsewhere
    logs = logs_of(documents)
    if plan.period and not named.found and await _asks_a_table(scope, plan, documents):
        return await whole_files.rows_at(scope, plan, documents, k)
    if not logs:
        return _without_levels(plan)
    plan, components = await _written_by(scope, plan, logs)
    if components:
        kept = tuple(name for name in named.asked if name in plan.identifiers)
        named = replace(named, asked=kept, found=tuple(form for form in named.found if form in plan.identifiers))
    if not (_has_conditions(plan, named) or components):
        asked_for = (plan.words if plan.position else ()) or (() if plan.words else plan.identifiers)
        return await _by_words(scope, plan, logs, asked_for, k) if asked_for else None
    asked = await _of_its_level(scope, conditions.of(plan, logs, named, components))
    others = tuple(doc for doc in logs_of(scope.documents) if doc not in logs)
    fit = await conditions.fitting(scope, asked, others=others, exactly=plan.aggregate is Aggregate.COUNT)
    found = await _from(scope, plan, asked, replace(fit, notes=(*named.notes, *fit.notes)), k)
    if found is None or not found.missing:
        return found
    # A name that stands in other files than logs is looked for there.
    return None if named.found and len(logs) < len(documents) else found


def _without_levels(plan: Plan) -> Retrieved | None:
    """Where entries of a level are put in order or counted, and there are no entries."""
    level = plan.severity
    if level is None or not level.hard or not (plan.position or plan.aggregate):
        return None
    count = 0 if plan.aggregate is Aggregate.COUNT else None
    return Retrieved(missing=f"no log is among them, and only entries of logs have levels ({level.text})", count=count)


def _has_conditions(plan: Plan, named: Names) -> bool:
    counts_words = plan.counts_lines and plan.aggregate is Aggregate.COUNT
    wants_order = (plan.asks_for_end or plan.aggregate is not None) and not plan.words
    conditions_set = plan.period or named.found or plan.level_counts or plan.grouped_by
    return bool(conditions_set or counts_words or wants_order)


async def _asks_a_table(scope: Scope, plan: Plan, documents: Sequence[Document]) -> bool:
    """Whether a time is asked of tables: there is nothing else, or it is one of their columns that is asked for."""
    tables = [doc for doc in documents if doc not in logs_of(documents)]
    if len(tables) == len(documents):
        return True
    columns = {name.casefold() for doc in tables for name in await whole_files.columns_of(scope, doc)}
    return any(word.casefold() in columns for word in (*plan.words, *plan.identifiers))


async def _written_by(scope: Scope, plan: Plan, logs: Sequence[Document]) -> tuple[Plan, tuple[str, ...]]:
    """The component that entries are asked of, and the plan without its name: others may name it, too."""
    if plan.aggregate is not Aggregate.COUNT and not plan.asks_for_end:
        return plan, ()
    for name in plan.writers:
        where = LineWhere(ids_of(logs), components=(name,))
        if (await scope.store.lines(scope.name, where, limit=1)).total:
            spoken = set(_WORD.findall(name.casefold())) | {name.casefold()}
            words = tuple(word for word in plan.words if word.casefold() not in spoken)
            kept = tuple(mention for mention in plan.mentions if mention.text.casefold() not in spoken)
            return replace(plan, words=words, mentions=kept), (name,)
    return plan, ()


async def _of_its_level(scope: Scope, asked: Conditions) -> Conditions:
    """FATAL and CRITICAL stand for each other only in logs that have but one of them."""
    if set(asked.where.severities) != set(_WORST[0]):
        return asked
    own = asked.where.severities[:1]
    where = LineWhere(asked.where.doc_ids, severities=own)
    there = (await scope.store.lines(scope.name, where, limit=1)).total
    return replace(asked, where=replace(asked.where, severities=own)) if there else asked


async def _by_words(
    scope: Scope, plan: Plan, logs: tuple[Document, ...], asked_for: tuple[str, ...], k: int
) -> Retrieved | None:
    """The last of the lines that hold all words, or parts of a name; None where there are none: then it is ranked."""
    asked = Conditions(logs, LineWhere(ids_of(logs), words=asked_for))
    total = await _total(scope, asked)
    if not total:
        return None
    if plan.goes_beside and plan.position:
        # Beside which of them?
        if total > k and not plan.anchor:
            return None
        return await beside(scope, asked.where, plan.position, steps=plan.steps, start=plan.anchor)
    return await _in_order(scope, plan, asked, k, ())


async def _from(scope: Scope, plan: Plan, asked: Conditions, fit: Fitting, k: int) -> Retrieved | None:
    """From the lines that fit to the answer."""
    if not fit.lines.total:
        return _nothing(plan, asked, fit.notes)
    if plan.aggregate in {Aggregate.COUNT, Aggregate.GROUPS}:
        return await counting.count(scope, plan, fit.conditions, fit.notes)
    kept = fit.conditions
    sure = bool(kept.names or kept.time)
    if plan.words and (fit.lines.total > k or not sure):
        narrower = kept.narrowed(plan.words)
        if (await scope.store.lines(scope.name, narrower.where, limit=1)).total:
            kept = narrower
        elif not sure and not (plan.goes_beside and plan.level_counts):
            return None  # its words say more than its conditions: rank
    found = await _in_order(scope, plan, kept, k, fit.notes)
    if fit.conditions == asked:
        return found
    # What was asked for, and what was found instead: no number may be taken for the other.
    relaxed = f"{asked.described}: 0\n{found.facts or f'{kept.described}: {await _total(scope, kept)}'}"
    return replace(found, facts=relaxed, count=0)


def _nothing(plan: Plan, asked: Conditions, notes: tuple[str, ...]) -> Retrieved:
    counted = plan.aggregate is Aggregate.COUNT
    if counted and not plan.period:
        return Retrieved(facts=f"{asked.described}: 0", count=0, notes=notes, exact=True)
    return Retrieved(missing=f"there are no {asked.described}", count=0 if counted else None, notes=notes)


async def _total(scope: Scope, asked: Conditions) -> int:
    return (await scope.store.lines(scope.name, asked.where, limit=1)).total


async def _in_order(scope: Scope, plan: Plan, asked: Conditions, k: int, notes: tuple[str, ...]) -> Retrieved:
    where = asked.where
    if plan.asks_for_end:
        last = plan.position is Position.LAST
        by_time = plan.by_time or len(where.doc_ids) > 1
        wanted = abs(plan.which or plan.wanted)
        some = await scope.store.lines(scope.name, where, limit=wanted, newest_first=last, by_time=by_time)
        if plan.which:
            if some.total < wanted:
                return Retrieved(missing=f"there are only {some.total} {asked.described}", notes=notes)
            some = replace(some, lines=some.lines[-1:])
        return await shown(scope, some, k, notes)
    if plan.goes_beside and plan.position and (where.holding or where.severities or plan.period or plan.anchor):
        return await beside(scope, where, plan.position, steps=plan.steps, start=plan.anchor, notes=notes)
    some = await scope.store.lines(scope.name, where, limit=MANY)
    if plan.severity and not where.severities:
        # "Errors" in passing is no condition: entries of that level go first.
        wanted = plan.severity.levels
        some = replace(some, lines=tuple(sorted(some.lines, key=lambda line: line.severity not in wanted)))
    found = await shown(scope, some, k, notes)
    if plan.aggregate is not Aggregate.LIST and some.total <= k:
        return found
    return replace(found, facts=f"{asked.described}: {some.total}", count=some.total)


async def worst(scope: Scope, plan: Plan, k: int) -> Retrieved | None:
    """The closest there is to a trouble that is told in words which stand nowhere: the first of the worst entries."""
    logs = logs_of(chosen(plan, scope))
    if not logs or plan.mentions or not _TROUBLE.search(plan.text):
        return None
    for levels in _WORST:
        lines = await scope.store.lines(scope.name, LineWhere(ids_of(logs), severities=levels), limit=k)
        if lines.total:
            note = f"nothing matched the words of the question; these are the {'/'.join(levels)} entries"
            return await shown(scope, lines, k, (note,))
    return None
