"""Lines as they are shown: with those around them, and the ones that go before or follow (DOCUMENT_QA 5.3)."""

from __future__ import annotations

from collections.abc import Sequence

from services.documents.asking.passages import Found, Passage
from services.documents.asking.scope import Scope
from services.documents.asking.wording import Position
from services.documents.store.protocol import LineWhere, StoredLine

CONTEXT_LINES = 10


async def around(scope: Scope, doc_id: str, matched: Sequence[int], *, context: int = CONTEXT_LINES) -> Passage:
    """A passage of lines around those that matched."""
    first, last = max(1, min(matched) - context), max(matched) + context
    where = LineWhere((doc_id,), first=first, last=last)
    shown = (await scope.store.lines(scope.name, where, limit=last - first + 1)).lines
    document = scope.document(doc_id)
    by_number = {line.line_no: line for line in shown}
    hit = by_number.get(matched[0])
    return Passage(
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


def stamp_of(line: StoredLine) -> str | None:
    """The time of a line as people compare it: normalised where that was possible, else as written."""
    return line.ts_utc or line.ts


async def beside(
    scope: Scope, where: LineWhere, position: Position, notes: tuple[str, ...] = (), start: Position | None = None
) -> Found:
    """The line that follows, or goes before, the lines that fit, or the first or last (`start`) of them."""
    latest = position is Position.NEXT if start is None else start is Position.LAST
    anchor = await scope.store.lines(scope.name, where, limit=1, newest_first=latest)
    if not anchor.lines:
        return Found(missing="there is no such entry", notes=notes)
    line = anchor.lines[0]
    return await neighbour(scope, line.doc_id, line.line_no, position, notes)


async def neighbour(scope: Scope, doc_id: str, line_no: int, position: Position, notes: tuple[str, ...] = ()) -> Found:
    """The nearest line beside one, blank ones skipped."""
    after = position is Position.NEXT
    first, last = (line_no + 1, line_no + CONTEXT_LINES) if after else (max(1, line_no - CONTEXT_LINES), line_no - 1)
    where = LineWhere((doc_id,), first=first, last=last)
    lines = (await scope.store.lines(scope.name, where, limit=CONTEXT_LINES, newest_first=not after)).lines
    near = next((line for line in lines if line.text.strip()), None)
    name = scope.document(doc_id).filename
    if near is None or last < first:
        end = "last" if after else "first"
        return Found(missing=f"line {line_no} is the {end} of {name}", notes=notes)
    return Found((await around(scope, doc_id, [near.line_no]),), notes=notes, exact=True)
