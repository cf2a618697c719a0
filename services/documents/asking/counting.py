"""Counts the lines of whole files that fit, as one total or in groups."""

from __future__ import annotations

import re
from dataclasses import replace

from services.documents.asking import grouping
from services.documents.asking.conditions import Conditions
from services.documents.asking.passages import Retrieved, Scope, names_of
from services.documents.asking.plan import Aggregate, Plan
from services.documents.store.protocol import MatchingLines
from services.telemetry import number_of

EXAMPLES = 5
MOST_GROUPS = 50

_STORED_COLUMNS = frozenset({"severity", "component", "day", "hour", "minute"})
_ASKS_TO_SEE = re.compile(r"\b(?:which|what|where|when|who|why|show|list|print|give|quote|example)\b", re.IGNORECASE)


async def count(scope: Scope, plan: Plan, asked: Conditions, notes: tuple[str, ...], k: int) -> Retrieved | None:
    """How many lines fit, by what the question wants them counted by: over whole files, never over the passages that
    happen to be shown. None: its words are not about lines.
    """
    counted = plan.aggregate is Aggregate.COUNT
    if plan.words:
        narrower = asked.narrowed(plan)
        if await scope.total(narrower.where):
            asked = narrower
        elif not counted or plan.level_counts or plan.mentions or plan.grouped_by or plan.counted_by:
            notes = (*notes, f"counted without regard to: {', '.join(plan.words)}")
        elif len(plan.words) > 1 or not plan.counts_mentions:
            return None
        else:
            return Retrieved(missing=f"there are no {narrower.described}", count=0, notes=notes)
    examples = min(k, EXAMPLES)
    lines = await scope.rare_first(asked.where, examples, examples)
    repeats = await grouping.repetitions(scope, asked.where)
    more = sum(grouping.times_said(line.text) - 1 for line in repeats)
    facts = [f"{asked.described}: {lines.total + more}"]
    if more:
        said = number_of(len(repeats), "line says", "lines say")
        notes = (*notes, f'{said} "message repeated n times", and counts n times: {lines.total} lines')
    facts += _per_file(asked, lines)
    total = lines.total + more
    usual = ("severity", "component") if not counted else ("severity",) if len(asked.where.severities) > 1 else ()
    for column in plan.grouped_by or usual:
        groups = await _groups(scope, asked, column)
        facts.append(f"by {column}: {_listed(groups, lines.total if column not in grouping.READ else None)}")
        if plan.distinct:
            total = len(groups)
            facts.insert(0, f"different values of {column}: {total}{'+' if total > MOST_GROUPS else ''}")
    for key in plan.counted_by:
        groups = await _groups(scope, asked, key)
        facts += [f"by {key}: {_listed(groups, None)}"] if groups else []
        notes = notes if groups else (*notes, f"asked and not computed: numbers by {key}")
    if counted and _asks_for_a_number_alone(plan):
        names = names_of(asked.documents)
        return Retrieved(facts="\n".join(facts), count=total, notes=notes, exact=True, searched=names)
    return replace(await scope.shown(lines.lines, examples, notes), facts="\n".join(facts), count=total)


def _per_file(asked: Conditions, lines: MatchingLines) -> list[str]:
    if len(asked.documents) == 1:
        return []
    return [f"{doc.filename}: {lines.per_document.get(doc.doc_id, 0)}" for doc in asked.documents]


def _asks_for_a_number_alone(plan: Plan) -> bool:
    """And wants to see no lines."""
    by_groups = plan.grouped_by or plan.distinct or plan.counted_by
    return not (by_groups or plan.position or _ASKS_TO_SEE.search(plan.text))


async def _groups(scope: Scope, asked: Conditions, column: str) -> list[tuple[str, int]]:
    """By a column of the store, or by what is read from each line, the most frequent first."""
    if column in _STORED_COLUMNS:
        groups = await scope.store.distinct(scope.name, asked.where, column, limit=MOST_GROUPS + 1)
        return [(grouping.yearless(value), number) for value, number in groups]
    values = grouping.READ.get(column) or grouping.values_of(column)
    counts, _ = await grouping.counted_by(scope, asked.where, values)
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[: MOST_GROUPS + 1]


def _listed(groups: list[tuple[str, int]], total: int | None) -> str:
    """`total`: of all lines; None: a line may have several values."""
    said = [f"{value} {number}" for value, number in groups[:MOST_GROUPS]]
    if total is None:
        return ", ".join(said) if groups else "no line names one"
    without = total - sum(number for _, number in groups[:MOST_GROUPS])
    if len(groups) > MOST_GROUPS:
        said.append(f"others or none {without}")
    elif without:
        said.append(f"without one {without}")
    return ", ".join(said) if groups else "no line names one"
