"""Lines as they are shown: with what stands around them, and those before and after them (DOCUMENT_QA 5.3)."""

from __future__ import annotations

from collections.abc import Sequence

from services.documents.asking.passages import CitedPassage, Retrieved
from services.documents.asking.plan import Position
from services.documents.asking.scope import Scope, stamp_of
from services.documents.store.protocol import LineWhere, MatchingLines, StoredLine
from services.telemetry import number_of

CONTEXT_LINES = 10
_JOINED = 3
"""Matches no further apart than this are shown in one passage."""


async def around(scope: Scope, doc_id: str, matched: Sequence[int], *, context: int = CONTEXT_LINES) -> CitedPassage:
    """A passage of lines around those that matched."""
    first, last = max(1, min(matched) - context), max(matched) + context
    where = LineWhere((doc_id,), first=first, last=last)
    shown = (await scope.store.lines(scope.name, where, limit=last - first + 1)).lines
    document = scope.document(doc_id)
    by_number = {line.line_no: line for line in shown}
    hit = by_number.get(matched[0])
    return CitedPassage(
        doc_id=doc_id,
        source=document.filename,
        text="\n".join(line.text for line in shown),
        line_start=shown[0].line_no if shown else first,
        line_end=shown[-1].line_no if shown else first,
        matched=tuple(sorted(matched)),
        chunk_id=f"{doc_id}:L{min(matched)}" + (f"-{max(matched)}" if len(matched) > 1 else ""),
        score=1.0,
        relevance=1.0,
        rank_score=1.0,
        timestamp=stamp_of(hit) if hit else None,
        severity=hit.severity if hit else None,
        metadata={"filename": document.filename, **document.origin.extra},
        exact=True,
    )


async def shown(scope: Scope, lines: MatchingLines, k: int, notes: tuple[str, ...] = ()) -> Retrieved:
    """At most `k` passages with these lines, in their order."""
    groups = _groups(lines.lines)
    passages = [await around(scope, doc_id, numbers) for doc_id, numbers in groups[:k]]
    left = sum(len(numbers) for _, numbers in groups[k:])
    more = (number_of(left, "more line fits and is not shown", "more lines fit and are not shown"),) if left else ()
    return Retrieved(tuple(passages), notes=(*notes, *more), exact=True)


async def beside(
    scope: Scope,
    where: LineWhere,
    position: Position,
    *,
    steps: int = 1,
    start: Position | None = None,
    notes: tuple[str, ...] = (),
) -> Retrieved:
    """The lines that follow, or go before, the lines that fit, or the first or last (`start`) of them."""
    latest = position is Position.NEXT if start is None else start is Position.LAST
    anchor = await scope.store.lines(scope.name, where, limit=1, newest_first=latest)
    if not anchor.lines:
        return Retrieved(missing="there is no such entry", notes=notes)
    line = anchor.lines[0]
    return await neighbours(scope, line.doc_id, line.line_no, position, steps=steps, notes=notes)


async def neighbours(
    scope: Scope, doc_id: str, line_no: int, position: Position, *, steps: int = 1, notes: tuple[str, ...] = ()
) -> Retrieved:
    """The nearest `steps` lines on one side of a line, blank ones skipped."""
    after = position is Position.NEXT
    reach = CONTEXT_LINES + 2 * steps
    first, last = (line_no + 1, line_no + reach) if after else (max(1, line_no - reach), line_no - 1)
    where = LineWhere((doc_id,), first=first, last=last)
    lines = (await scope.store.lines(scope.name, where, limit=reach, newest_first=not after)).lines
    near = [line.line_no for line in lines if line.text.strip()][:steps]
    name = scope.document(doc_id).filename
    if not near or last < first:
        end = "last" if after else "first"
        return Retrieved(missing=f"line {line_no} is the {end} of {name}", notes=notes)
    if len(near) < steps:
        verb = "follow" if after else "precede"
        only = number_of(len(near), f"line {verb}s", f"lines {verb}")
        notes = (*notes, f"only {only} line {line_no} of {name}")
    return Retrieved((await around(scope, doc_id, sorted(near)),), notes=notes, exact=True)


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
