"""Which of the names of a question stand in the documents, and as what (DOCUMENT_QA 5.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from services.documents.asking.plan import Aggregate
from services.documents.asking.mentions import NameMention
from services.documents.asking.plan import Plan
from services.documents.asking.scope import RECORDS, Scope, chosen, files_listed, ids_of, listed
from services.documents.store.protocol import Document, LineWhere

RARE_COUNT, RARE_SHARE = 2, 0.02
"""A name in more chunks than this is a common word (DOCUMENT_QA 5.1)."""


@dataclass(frozen=True, slots=True)
class Names:
    asked: tuple[str, ...] = ()
    """Those that are conditions, as the question writes them."""
    found: tuple[str, ...] = ()
    """The same as they stand in the documents."""
    absent: tuple[str, ...] = ()
    """Names without which there is no answer, when none of them is there."""
    notes: tuple[str, ...] = ()


async def look_for(scope: Scope, plan: Plan, documents: Sequence[Document]) -> Names:
    ids = ids_of(documents)
    asked: list[str] = []
    found: list[str] = []
    missing: list[NameMention] = []
    telling_names = await telling(scope, plan)
    counted = plan.aggregate is Aggregate.COUNT
    # Where entries are counted or put in order, a name says which of them.
    chooses = counted or plan.asks_for_end
    for mention in plan.mentions:
        form = await _form(scope, mention, ids)
        if form is None:
            missing.append(mention)
        # A name that stands everywhere is a condition only where nothing else is asked for.
        elif mention.text in telling_names or not plan.words or chooses:
            asked.append(mention.text)
            found += form
    needed = [mention for mention in missing if mention.hard or _all_that_is_asked(plan, mention, documents)]
    lacking = tuple([mention.text for mention in needed if not await _is_path(scope, mention, documents)])
    if lacking and not found:
        return Names(absent=lacking)
    if counted:
        lacking = tuple(mention.text for mention in missing)
    notes = (f"no entry mentions {listed(lacking)}",) if lacking else ()
    return Names(tuple(asked), tuple(found), (), notes)


async def look_elsewhere(
    scope: Scope, plan: Plan, documents: Sequence[Document]
) -> tuple[Names, tuple[Document, ...]] | None:
    """Names that none of the files holds that the question names, in the other ones; None: they are nowhere."""
    others = tuple(doc for doc in scope.documents if doc not in documents)
    names = await look_for(scope, plan, others) if others else Names()
    if not names.found:
        return None
    holding = await scope.store.lines(scope.name, LineWhere(ids_of(others), holding=names.found), limit=1)
    where = tuple(doc for doc in others if doc.doc_id in holding.per_document)
    if not where:
        return None
    note = f"no entry of {files_listed(documents)} mentions {listed(names.asked)}, but {files_listed(where)} has some"
    return replace(names, notes=(note, *names.notes)), where


async def unmentioned(scope: Scope, plan: Plan) -> tuple[str, ...]:
    """Notes for who is shown the closest lines of logs: which names of the question stand in none."""
    documents = chosen(plan, scope)
    if any(doc.kind not in RECORDS for doc in documents):
        return ()
    absent = tuple([name.text for name in plan.mentions if await _form(scope, name, ids_of(documents)) is None])
    return (f"no entry mentions {listed(absent)}",) if absent else ()


async def _is_path(scope: Scope, mention: NameMention, documents: Sequence[Document]) -> bool:
    """Whether a dotted name may be the path of a key: one of the files that are no logs holds all its parts."""
    if not mention.path:
        return False
    parts = mention.text.split(".")
    others = [doc for doc in documents if doc.kind not in RECORDS]
    return any([all([await is_held(scope, part, [doc]) for part in parts]) for doc in others])


def _all_that_is_asked(plan: Plan, mention: NameMention, documents: Sequence[Document]) -> bool:
    """Whether logs are asked for this name and for nothing else: "look up pay_ff", "how often does E_LOST show up"."""
    if plan.words or any(doc.kind not in RECORDS for doc in documents):
        return False
    return not mention.text.isalpha() and (plan.aggregate is not None or not (plan.period or plan.severity))


async def telling(scope: Scope, plan: Plan) -> tuple[str, ...]:
    """The names that tell one passage from another: ids and codes, and other names where few chunks hold them."""
    certain = {mention.text for mention in plan.mentions if mention.hard} if scope.logs else set[str]()
    unsure = [mention.text for mention in plan.mentions if mention.text not in certain]
    counts, whole = await scope.store.holders(scope.name, unsure)
    few = max(RARE_COUNT, RARE_SHARE * whole)
    return tuple(name for name in plan.identifiers if name in certain or counts.get(name, 0) <= few)


async def is_held(scope: Scope, text: str, documents: Sequence[Document]) -> bool:
    """Whether any of the documents holds `text` literally."""
    return bool((await scope.store.lines(scope.name, LineWhere(ids_of(documents), holding=(text,)), limit=1)).total)


async def _form(scope: Scope, mention: NameMention, ids: tuple[str, ...]) -> tuple[str, ...] | None:
    for form in ((mention.text,), *mention.forms):
        lines = await scope.store.lines(scope.name, LineWhere(ids, holding=form), limit=1)
        if lines.total:
            return form
    return None
