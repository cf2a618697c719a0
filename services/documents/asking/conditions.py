"""Compiles a plan to a query over lines: names as the files spell them, fewer conditions where no line fits all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from services.documents.asking.line_query import LineQuery
from services.documents.asking.names import NameMention
from services.documents.asking.passages import LOG_KINDS, Scope, ids_of, list_files
from services.documents.asking.plan import Clauses, Plan, Position
from services.documents.asking.query_lines import explain_unknown_times, resolve
from services.documents.store.protocol import Document, LineWhere

RARE_COUNT, RARE_SHARE = 2, 0.02  # a name in more chunks than this is a common word


@dataclass(frozen=True, slots=True)
class Names:
    """The names of a question, with their spelling in the documents."""

    asked: tuple[str, ...] = ()  # names that are conditions, as the question writes them
    forms: tuple[tuple[str, ...], ...] = ()  # each of these as the documents write it: in texts of one line
    absent: tuple[str, ...] = ()  # names without which there is no answer, if no document has any of them
    notes: tuple[str, ...] = ()

    @property
    def found(self) -> tuple[str, ...]:
        """The texts of all names."""
        return tuple(text for form in self.forms for text in form)


def compile_query(
    plan: Plan, documents: Sequence[Document], names: Names, components: tuple[str, ...] = ()
) -> LineQuery:
    """Compile a plan to a query for lines."""
    level = plan.severity if plan.level_is_condition else None
    return LineQuery(
        documents=tuple(documents),
        all_of=() if plan.any_is_enough else names.found,
        either=names.forms if plan.any_is_enough else (),
        names=names.asked,
        levels=level.alternatives if level else (),
        components=components,
        period=plan.period,
    )


def with_words(query: LineQuery, plan: Plan) -> LineQuery:
    """Add the words of the question to the conditions of a query."""
    either = plan.any_is_enough and not plan.mentions
    return replace(query, words_any=plan.words) if either else replace(query, words=plan.words)


async def relax(
    scope: Scope, plan: Plan, asked: LineQuery, others: Sequence[Document]
) -> tuple[LineQuery, int, tuple[str, ...]]:
    """Drop conditions until some lines fit: first the level, then the time; then search the files `others` instead. A
    name or a time always stays.

    Returns:
        The query, the number of lines that fit, and notes about the conditions that were dropped.
    """
    notes: tuple[str, ...] = ()
    for less, note in ((asked, ""), *_weaker_queries(plan, asked, others)):
        notes = (*notes, note) if note else notes
        if total := await scope.total(less.where):
            return less, total, notes
    return asked, 0, ()


def _weaker_queries(plan: Plan, asked: LineQuery, others: Sequence[Document]) -> Iterator[tuple[LineQuery, str]]:
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
        yield elsewhere, f"no entry of {list_files(asked.documents)} matched; other files were searched"


@dataclass(frozen=True, slots=True)
class Narrowed:
    """A query with the clauses of the question.

    Attributes:
        unread: the clauses that are not in it.
        missing: why there is no answer, if certain: the entry that others come before or after is nowhere.
    """

    query: LineQuery
    notes: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    missing: str = ""


async def add_clauses(scope: Scope, clauses: Clauses, query: LineQuery) -> Narrowed:
    """Add the clauses of a question to a query: only lines before or after an entry, and none with certain texts."""
    narrowed = await _without(scope, clauses, query)
    if clauses.anchor is None or narrowed.unread:
        return narrowed
    return await _beside_anchor(scope, clauses, clauses.anchor, narrowed.query)


async def _without(scope: Scope, clauses: Clauses, query: LineQuery) -> Narrowed:
    """Exclude lines. A word that no line has excludes nothing: the files may have another one for it."""
    for word in clauses.words:
        if not await scope.total(LineQuery(documents=query.documents, words=(word,)).where):
            return Narrowed(query, unread=(clauses.text,))
    lacking: list[str] = []
    for mention in clauses.lacking:
        form = await _find_spelling(scope, mention, query.documents) or (mention.text,)
        if len(form) > 1:
            return Narrowed(query, unread=(clauses.text,))
        lacking += form
    return Narrowed(replace(query, none_of=tuple(lacking), words_none=clauses.words), unread=clauses.unread)


async def _beside_anchor(scope: Scope, clauses: Clauses, anchor: Plan, query: LineQuery) -> Narrowed:
    """Keep the lines on one side of an entry. Of several that may be meant, lines come before the first or after the
    last, and a note says so; words that several lines have name none of them.
    """
    if anchor.lines and len(query.documents) == 1:
        return _on_side(clauses, query, *anchor.lines)
    unread = Narrowed(query, unread=(clauses.text,))
    names = await find_names(scope, anchor, query.documents)
    at = with_words(compile_query(anchor, query.documents, names), anchor)
    if names.absent:
        return replace(unread, missing=f"no entry mentions {', '.join(names.absent)}")
    if not (at.levels or at.names or at.period or at.words or at.words_any):
        return unread
    at = await resolve(scope, at)
    start = anchor.start_position or (Position.FIRST if clauses.before else Position.LAST)
    which = abs(anchor.ordinal or 1)
    found = await scope.lines(at.where, which, last=start is Position.LAST)
    guessed = found.total != 1 and anchor.words and not anchor.start_position
    if guessed or len(found.per_document) > 1 or (anchor.words and not found.total):
        return unread
    if len(found.lines) < which:
        only = f"only {found.total}" if found.total else "no"
        unknown = await explain_unknown_times(scope, at)
        return replace(unread, missing=unknown or f"there are {only} {at.description}")
    line = found.lines[-1]
    here = replace(query, documents=tuple(doc for doc in query.documents if doc.doc_id == line.doc_id))
    notes: tuple[str, ...] = ()
    if found.total > 1:
        notes = (f"line {line.line_no} is taken of {found.total} {at.description}",)
    elif anchor.words:
        notes = (f"line {line.line_no} is taken for {anchor.question}",)
    return replace(_on_side(clauses, here, line.line_no, line.line_no), notes=notes)


def _on_side(clauses: Clauses, query: LineQuery, first: int, last: int) -> Narrowed:
    return Narrowed(replace(query, last=first - 1) if clauses.before else replace(query, first=last + 1))


async def count_each(scope: Scope, asked: LineQuery) -> str:
    """Say how many lines contain each of several texts, as no line contains all; empty for a single text."""
    if len(asked.all_of) < 2:  # noqa: PLR2004 (several)
        return ""
    each = {text: LineQuery(documents=asked.documents, all_of=(text,)) for text in asked.all_of}
    return ", ".join([f'"{text}" alone: {await scope.total(query.where)}' for text, query in each.items()])


async def find_names(scope: Scope, plan: Plan, documents: Sequence[Document]) -> Names:
    """Find the names of the question in the documents, in any of their spellings."""
    asked: list[str] = []
    found: list[tuple[str, ...]] = []
    missing: list[NameMention] = []
    selective = await selective_names(scope, plan)
    for mention in plan.mentions:
        form = await _find_spelling(scope, mention, documents)
        if form is None:
            missing.append(mention)
        # A name that is everywhere is a condition only if there are no other words, or if entries are counted or put in
        # order: then it says which entries.
        elif mention.text in selective or not plan.words or plan.asks_how_many or plan.asks_first_or_last:
            asked.append(mention.text)
            found.append(form)
    needed = [mention for mention in missing if mention.required or _is_only_condition(plan, mention, documents)]
    lacking = tuple([mention.text for mention in needed if not await _is_path(scope, mention, documents)])
    if lacking and not found:
        return Names(absent=lacking)
    if plan.asks_how_many:
        lacking = tuple(mention.text for mention in missing)
    notes = (f"no entry mentions {', '.join(lacking)}",) if lacking else ()
    return Names(tuple(asked), tuple(found), notes=notes)


async def find_names_elsewhere(
    scope: Scope, plan: Plan, documents: Sequence[Document]
) -> tuple[Names, tuple[Document, ...]] | None:
    """Search the other documents for names that are not in `documents`. None: no document has them."""
    others = tuple(doc for doc in scope.documents if doc not in documents)
    names = await find_names(scope, plan, others) if others else Names()
    if not names.found:
        return None
    holding = await scope.lines(LineWhere(ids_of(others), holding=names.found), 1)
    where = tuple(doc for doc in others if doc.doc_id in holding.per_document)
    if not where:
        return None
    said = f"mentions {', '.join(names.asked)}, but {list_files(where)} has some"
    return replace(names, notes=(f"no entry of {list_files(documents)} {said}", *names.notes)), where


async def note_absent_names(scope: Scope, plan: Plan) -> tuple[str, ...]:
    """Return a note with the names of the question that are in no log; nothing if there are none."""
    documents = scope.named_documents(plan)
    if any(doc.kind not in LOG_KINDS for doc in documents):
        return ()
    absent = [name.text for name in plan.mentions if await _find_spelling(scope, name, documents) is None]
    return (f"no entry mentions {', '.join(absent)}",) if absent else ()


async def selective_names(scope: Scope, plan: Plan) -> tuple[str, ...]:
    """Return the selective names of a question: ids and codes, and names that are in few chunks."""
    logs = any(doc.kind in LOG_KINDS for doc in scope.documents)
    certain = {mention.text for mention in plan.mentions if mention.required and logs}
    counts, whole = await scope.store.count_chunks_with(
        scope.name, [name for name in plan.identifiers if name not in certain]
    )
    few = max(RARE_COUNT, RARE_SHARE * whole)
    return tuple(name for name in plan.identifiers if name in certain or counts.get(name, 0) <= few)


async def is_in_any(scope: Scope, text: str, documents: Sequence[Document]) -> bool:
    """Return True if one of the documents contains `text` literally."""
    return bool(await scope.total(LineWhere(ids_of(documents), holding=(text,))))


async def _is_path(scope: Scope, mention: NameMention, documents: Sequence[Document]) -> bool:
    """Return True if a dotted name may be the path of a key: a file other than a log contains all its parts."""
    others = [doc for doc in documents if mention.path and doc.kind not in LOG_KINDS]
    return any([all([await is_in_any(scope, part, [doc]) for part in mention.text.split(".")]) for doc in others])


def _is_only_condition(plan: Plan, mention: NameMention, documents: Sequence[Document]) -> bool:
    """Return True if a question about logs asks for this name only: "look up pay_ff", "how often does E_LOST occur"."""
    if plan.words or any(doc.kind not in LOG_KINDS for doc in documents):
        return False
    return not mention.text.isalpha() and (plan.aggregate is not None or not (plan.period or plan.severity))


async def _find_spelling(scope: Scope, mention: NameMention, documents: Sequence[Document]) -> tuple[str, ...] | None:
    for form in ((mention.text,), *mention.forms):
        if await scope.total(LineWhere(ids_of(documents), holding=form)):
            return form
    return None
