"""Compiles a plan to a query over lines: its names as they are written in the files, and what is dropped where no line
fits everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from services.documents.asking.line_query import LineQuery
from services.documents.asking.passages import RECORDS, Scope, files_listed, ids_of
from services.documents.asking.plan import Aggregate, NameMention, Plan
from services.documents.store.protocol import Document, LineWhere

RARE_COUNT, RARE_SHARE = 2, 0.02  # a name in more chunks than this is a common word


@dataclass(frozen=True, slots=True)
class Names:
    """The names of a question, and which of them documents hold."""

    asked: tuple[str, ...] = ()  # those that are conditions, as the question writes them
    found: tuple[str, ...] = ()  # the same as they are written in the documents
    absent: tuple[str, ...] = ()  # names without which there is no answer, when none of them is there
    notes: tuple[str, ...] = ()


def query_of(plan: Plan, documents: Sequence[Document], names: Names, components: tuple[str, ...] = ()) -> LineQuery:
    """Compile a plan to the query for the lines that it is about."""
    level = plan.severity if plan.level_is_condition else None
    return LineQuery(
        documents=tuple(documents),
        all_of=() if plan.either else names.found,
        any_of=names.found if plan.either else (),
        names=names.asked,
        levels=level.alternatives if level else (),
        components=components,
        period=plan.period,
    )


def with_words(query: LineQuery, plan: Plan) -> LineQuery:
    """Return the query with the words of the question as a condition more."""
    either = plan.either and not plan.mentions
    return replace(query, words_any=plan.words) if either else replace(query, words=plan.words)


async def relaxed(
    scope: Scope, plan: Plan, asked: LineQuery, others: Sequence[Document]
) -> tuple[LineQuery, int, tuple[str, ...]]:
    """Find conditions that some lines fit: all of them; else without the level; then without the time; then also in
    `others` than the named files. A name or a time always stays.

    Returns:
        The query, how many lines fit, and notes about what was dropped.
    """
    notes: tuple[str, ...] = ()
    for less, note in ((asked, ""), *_less_and_less(plan, asked, others)):
        notes = (*notes, note) if note else notes
        if total := await scope.total(less.where):
            return less, total, notes
    return asked, 0, ()


def _less_and_less(plan: Plan, asked: LineQuery, others: Sequence[Document]) -> Iterator[tuple[LineQuery, str]]:
    left = asked
    if plan.severity and left.levels and (left.period or left.names):
        left = replace(left, levels=())
        yield left, f"no entry matched {plan.severity.text}"
    if left.period and left.names:
        note = f"no entry matched {left.period.text}"
        left = replace(left, period=None)
        yield left, note
    if others and (left.period or left.names):
        elsewhere = replace(left, documents=tuple(others))
        yield elsewhere, f"no entry of {files_listed(asked.documents)} matched; other files were searched"


async def alone(scope: Scope, asked: LineQuery) -> str:
    """Tell how many lines hold each of several texts, if no line holds all of them; empty if there is only one."""
    if len(asked.all_of) < 2:  # noqa: PLR2004 (several)
        return ""
    each = {text: LineQuery(documents=asked.documents, all_of=(text,)) for text in asked.all_of}
    return ", ".join([f'"{text}" alone: {await scope.total(query.where)}' for text, query in each.items()])


async def names_in(scope: Scope, plan: Plan, documents: Sequence[Document]) -> Names:
    """Find which names of the question the documents hold, and in which spelling."""
    asked: list[str] = []
    found: list[str] = []
    missing: list[NameMention] = []
    telling_names = await telling(scope, plan)
    counted = plan.aggregate is Aggregate.COUNT
    for mention in plan.mentions:
        form = await _form(scope, mention, documents)
        if form is None:
            missing.append(mention)
        # A name that is everywhere is a condition only where nothing else is asked for, or where entries are counted or
        # put in order: then it says which of them.
        elif mention.text in telling_names or not plan.words or counted or plan.asks_first_or_last:
            asked.append(mention.text)
            found += form
    needed = [mention for mention in missing if mention.required or _is_all_that_is_asked(plan, mention, documents)]
    lacking = tuple([mention.text for mention in needed if not await _is_path(scope, mention, documents)])
    if lacking and not found:
        return Names(absent=lacking)
    if counted:
        lacking = tuple(mention.text for mention in missing)
    notes = (f"no entry mentions {', '.join(lacking)}",) if lacking else ()
    return Names(tuple(asked), tuple(found), notes=notes)


async def names_elsewhere(
    scope: Scope, plan: Plan, documents: Sequence[Document]
) -> tuple[Names, tuple[Document, ...]] | None:
    """Look in the other documents for names that `documents` do not hold. None: no document holds them."""
    others = tuple(doc for doc in scope.documents if doc not in documents)
    names = await names_in(scope, plan, others) if others else Names()
    if not names.found:
        return None
    holding = await scope.lines(LineWhere(ids_of(others), holding=names.found), 1)
    where = tuple(doc for doc in others if doc.doc_id in holding.per_document)
    if not where:
        return None
    said = f"mentions {', '.join(names.asked)}, but {files_listed(where)} has some"
    return replace(names, notes=(f"no entry of {files_listed(documents)} {said}", *names.notes)), where


async def unmentioned(scope: Scope, plan: Plan) -> tuple[str, ...]:
    """Return notes that say which names of the question are in no log, shown with the closest lines."""
    documents = scope.chosen(plan)
    if any(doc.kind not in RECORDS for doc in documents):
        return ()
    absent = [name.text for name in plan.mentions if await _form(scope, name, documents) is None]
    return (f"no entry mentions {', '.join(absent)}",) if absent else ()


async def telling(scope: Scope, plan: Plan) -> tuple[str, ...]:
    """Return the names that are selective: ids and codes, and other names that few chunks hold."""
    logs = any(doc.kind in RECORDS for doc in scope.documents)
    certain = {mention.text for mention in plan.mentions if mention.required and logs}
    counts, whole = await scope.store.holders(scope.name, [name for name in plan.identifiers if name not in certain])
    few = max(RARE_COUNT, RARE_SHARE * whole)
    return tuple(name for name in plan.identifiers if name in certain or counts.get(name, 0) <= few)


async def is_held(scope: Scope, text: str, documents: Sequence[Document]) -> bool:
    """Return whether any of the documents holds `text` literally."""
    return bool(await scope.total(LineWhere(ids_of(documents), holding=(text,))))


async def _is_path(scope: Scope, mention: NameMention, documents: Sequence[Document]) -> bool:
    """Return whether a dotted name may be the path of a key: one of the files that are no logs holds all its parts."""
    others = [doc for doc in documents if mention.path and doc.kind not in RECORDS]
    return any([all([await is_held(scope, part, [doc]) for part in mention.text.split(".")]) for doc in others])


def _is_all_that_is_asked(plan: Plan, mention: NameMention, documents: Sequence[Document]) -> bool:
    """Whether a question about logs asks for this name and nothing else: "look up pay_ff", "how often does E_LOST show
    up".
    """
    if plan.words or any(doc.kind not in RECORDS for doc in documents):
        return False
    return not mention.text.isalpha() and (plan.aggregate is not None or not (plan.period or plan.severity))


async def _form(scope: Scope, mention: NameMention, documents: Sequence[Document]) -> tuple[str, ...] | None:
    for form in ((mention.text,), *mention.forms):
        if await scope.total(LineWhere(ids_of(documents), holding=form)):
            return form
    return None
