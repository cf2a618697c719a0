"""Counts and groups over whole files: never over the passages that happen to be shown (DOCUMENT_QA 5.3, 10)."""

from __future__ import annotations

from dataclasses import replace

from services.documents.asking.plan import Aggregate
from services.documents.asking.conditions import Conditions
from services.documents.asking.passages import Retrieved
from services.documents.asking.plan import Plan
from services.documents.asking.scope import Scope, listed
from services.documents.asking.surroundings import shown

EXAMPLES = 5
MOST_GROUPS = 50
_USUAL_COLUMNS = ("severity", "component")


async def count(scope: Scope, plan: Plan, asked: Conditions, notes: tuple[str, ...]) -> Retrieved | None:
    """How many lines fit, by what the question wants them counted by; None: its words are not about lines."""
    counted = plan.aggregate is Aggregate.COUNT
    if plan.words:
        narrower = asked.narrowed(plan.words)
        if (await scope.store.lines(scope.name, narrower.where, limit=1)).total:
            asked = narrower
        elif counted and not (plan.level_counts or plan.mentions or plan.grouped_by):
            if len(plan.words) > 1 or not plan.counts_mentions:
                return None
            return Retrieved(missing=f"there are no {narrower.described}", count=0, notes=notes)
        else:
            notes = (*notes, f"counted without regard to: {listed(plan.words)}")
    lines = await scope.store.lines(scope.name, asked.where, limit=EXAMPLES)
    facts = [f"{asked.described}: {lines.total}"]
    if len(asked.documents) > 1:
        facts += [f"{doc.filename}: {lines.per_document.get(doc.doc_id, 0)}" for doc in asked.documents]
    total = lines.total
    for column in _columns(plan, asked):
        groups = await scope.store.distinct(scope.name, asked.where, column, limit=MOST_GROUPS + 1)
        facts += _grouped(column, groups, lines.total)
        if plan.distinct:
            total = len(groups)
            facts.insert(0, f"different values of {column}: {total}{'+' if total > MOST_GROUPS else ''}")
    found = await shown(scope, lines, EXAMPLES, notes)
    return replace(found, facts="\n".join(facts), count=total)


def _columns(plan: Plan, asked: Conditions) -> tuple[str, ...]:
    if plan.grouped_by:
        return plan.grouped_by
    if plan.aggregate is Aggregate.GROUPS:
        return _USUAL_COLUMNS
    return ("severity",) if len(asked.where.severities) > 1 else ()


def _grouped(column: str, groups: list[tuple[str, int]], total: int) -> list[str]:
    if not groups:
        return [f"by {column}: no line names one"]
    kept = groups[:MOST_GROUPS]
    said = [f"{value} {number}" for value, number in kept]
    without = total - sum(number for _, number in kept)
    if len(groups) > MOST_GROUPS:
        said.append(f"others or none {without}")
    elif without:
        said.append(f"without one {without}")
    return [f"by {column}: {listed(said)}"]
