"""Which of the names of a question stand in the documents (DOCUMENT_QA 5.1, 5.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.documents.asking.mentions import Mention
from services.documents.asking.plan import Plan
from services.documents.asking.scope import RECORDS, Scope, chosen
from services.documents.asking.wording import Aggregate, Position
from services.documents.store.protocol import Document, LineWhere

RARE_COUNT, RARE_SHARE = 2, 0.02
"""A name in more chunks than this is a common word (DOCUMENT_QA 5.1)."""


@dataclass(frozen=True, slots=True)
class Named:
    """Which of the names of a question stand in the documents."""

    found: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    """Names without which there is no answer, when none of them is there."""
    notes: tuple[str, ...] = ()


async def look_up(scope: Scope, plan: Plan, documents: Sequence[Document]) -> Named:
    ids = tuple(doc.doc_id for doc in documents)
    found: list[str] = []
    missing: list[str] = []
    telling_names = await telling(scope, plan)
    # Where entries are counted or put in order, a name says which of them.
    chooses = plan.aggregate is Aggregate.COUNT or plan.position in {Position.FIRST, Position.LAST}
    for mention in plan.mentions:
        form = await _form(scope, mention, ids)
        if form is not None:
            # A name that stands everywhere is a condition only where nothing else is asked for.
            wanted = mention.text in telling_names or not plan.words or chooses
            found += form if wanted else ()
        elif mention.hard or _all_that_is_asked(plan, mention, documents):
            missing.append(mention.text)
    if missing and not found:
        return Named(absent=tuple(missing))
    notes = (f"no entry mentions {listed(tuple(missing))}",) if missing else ()
    return Named(tuple(found), (), notes)


async def unmentioned(scope: Scope, plan: Plan) -> tuple[str, ...]:
    """Notes for who is shown the closest lines of logs: which names of the question stand in none."""
    documents = chosen(plan, scope)
    if any(doc.kind not in RECORDS for doc in documents):
        return ()
    ids = tuple(doc.doc_id for doc in documents)
    absent = tuple([name.text for name in plan.mentions if await _form(scope, name, ids) is None])
    return (f"no entry mentions {listed(absent)}",) if absent else ()


def _all_that_is_asked(plan: Plan, mention: Mention, documents: Sequence[Document]) -> bool:
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


async def _form(scope: Scope, mention: Mention, ids: tuple[str, ...]) -> tuple[str, ...] | None:
    for form in ((mention.text,), *mention.forms):
        lines = await scope.store.lines(scope.name, LineWhere(ids, holding=form), limit=1)
        if lines.total:
            return form
    return None


def listed(names: Sequence[str]) -> str:
    return ", ".join(names)
