"""Which of the names of a question stand in the documents, and as what (DOCUMENT_QA 5.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from services.documents.asking.aggregates import Aggregate
from services.documents.asking.mentions import Mention
from services.documents.asking.plan import Plan
from services.documents.asking.scope import Scope, files_listed, ids_of, listed
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
    missing: list[Mention] = []
    telling_names = await telling(scope, plan)
    counted = plan.aggregate is Aggregate.COUNT
    for mention in plan.mentions:
        form = await _form(scope, mention, ids)
        if form is None:
            missing.append(mention)
        # A name that stands everywhere is a condition only where nothing else is asked for, or entries are counted.
        elif mention.text in telling_names or not plan.words or counted:
            asked.append(mention.text)
            found += form
    lacking = tuple(mention.text for mention in missing if mention.hard)
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


async def telling(scope: Scope, plan: Plan) -> tuple[str, ...]:
    """The names that tell one passage from another: ids and codes, and other names where few chunks hold them."""
    soft = [mention.text for mention in plan.mentions if not mention.hard]
    counts, whole = await scope.store.holders(scope.name, soft)
    few = max(RARE_COUNT, RARE_SHARE * whole)
    return tuple(mention.text for mention in plan.mentions if mention.hard or counts.get(mention.text, 0) <= few)


async def is_held(scope: Scope, text: str) -> bool:
    """Whether any document holds `text` literally."""
    return bool(
        (await scope.store.lines(scope.name, LineWhere(ids_of(scope.documents), holding=(text,)), limit=1)).total
    )


async def _form(scope: Scope, mention: Mention, ids: tuple[str, ...]) -> tuple[str, ...] | None:
    for form in ((mention.text,), *mention.forms):
        lines = await scope.store.lines(scope.name, LineWhere(ids, holding=form), limit=1)
        if lines.total:
            return form
    return None
