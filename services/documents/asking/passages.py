"""The passages that an answer is made of, with their matching lines, and the documents to search (`Scope`)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from model.words import number_of
from services.documents.asking.plan import Plan, Position
from services.documents.prepared import DocumentKind
from services.documents.store.document_store import DocumentStore
from services.documents.store.protocol import Document, LineWhere, MatchingLines, StoredLine

LOG_KINDS = {DocumentKind.LOG, DocumentKind.ERROR_REPORT}
MAX_NAMED = 3  # more files are not named but counted
CONTEXT_LINES = 10
_JOINED = 2 * CONTEXT_LINES  # matches no further apart are shown in one passage: else their contexts would overlap
_MAX_SPANNED = 120  # lines that one passage may have
_YEARLESS = re.compile(r"^000[01]-(?:00-[0-9]{2}(?:[T ]|$))?")


@dataclass(frozen=True, slots=True)
class Citation:
    doc_id: str
    source: str
    line_start: int
    line_end: int
    timestamp: str | None
    chunk_id: str


@dataclass(frozen=True, slots=True)
class CitedPassage:
    """Lines of a file, as they are shown.

    Attributes:
        score: the cosine, or 1 if it was found by an exact condition; None if only words were compared.
    """

    doc_id: str
    source: str  # the file's name
    text: str
    line_start: int
    line_end: int
    matched: tuple[int, ...]  # the numbers of the matching lines, the best first; other lines are their context
    chunk_id: str
    score: float | None = None
    relevance: float | None = None  # for the confidence: the score, else the share of the question's words
    timestamp: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])
    has_numbers: bool = True  # True if line numbers identify its lines, as in a log
    exact: bool = False
    values: tuple[str, ...] = ()  # of a leaf of a configuration file, or of a row of a table: `key = value`

    @property
    def citation(self) -> Citation:
        first, last = (min(self.matched), max(self.matched)) if self.matched else (self.line_start, self.line_end)
        if self.matched and (last - first + 1 > len(self.matched) or first != self.matched[0]):
            first = last = self.matched[0]  # they are scattered, or one of them matters most
        return Citation(self.doc_id, self.source, first, last, self.timestamp, self.chunk_id)

    def lines(self) -> list[tuple[int, str]]:
        return list(enumerate(self.text.split("\n"), start=self.line_start))


@dataclass(frozen=True, slots=True)
class Findings:
    """The passages and facts that were found for a question."""

    passages: tuple[CitedPassage, ...] = ()
    facts: str = ""  # counts and groups that were computed over whole files
    count: int | None = None
    notes: tuple[str, ...] = ()  # for the reader: names that are missing, conditions that were dropped
    missing: str = ""  # the reason why nothing was found, if certain: `line 900 is beyond the end of app.log`
    exact: bool = False  # True if everything was found by exact conditions
    searched_files: tuple[str, ...] = ()  # the names of the searched files; empty: all, or those of the passages


@dataclass(frozen=True, slots=True)
class Scope:
    """One collection, and its documents to search: the current and searchable ones."""

    store: DocumentStore
    name: str
    documents: tuple[Document, ...]

    def document(self, doc_id: str) -> Document:
        return next(doc for doc in self.documents if doc.doc_id == doc_id)

    def named_documents(self, plan: Plan) -> tuple[Document, ...]:
        """Return the documents that the question names; all if it names none."""
        return tuple(doc for doc in self.documents if doc.doc_id in plan.doc_ids) or self.documents

    async def lines(self, where: LineWhere, limit: int, *, last: bool = False, by_time: bool = False) -> MatchingLines:
        return await self.store.lines(self.name, where, limit=limit, newest_first=last, by_time=by_time)

    async def total(self, where: LineWhere) -> int:
        return (await self.lines(where, 1)).total

    async def with_context(self, doc_id: str, matched: Sequence[int], *, context: int = CONTEXT_LINES) -> CitedPassage:
        """Return a passage of lines around the `matched` ones."""
        first, last = max(1, min(matched) - context), max(matched) + context
        shown = (await self.lines(LineWhere((doc_id,), first=first, last=last), last - first + 1)).lines
        document = self.document(doc_id)
        hit = next((line for line in shown if line.line_no == matched[0]), None)
        return CitedPassage(
            doc_id=doc_id,
            source=document.filename,
            text="\n".join(line.text for line in shown),
            line_start=shown[0].line_no if shown else first,
            line_end=shown[-1].line_no if shown else first,
            matched=tuple(matched),
            chunk_id=f"{doc_id}:L{min(matched)}" + (f"-{max(matched)}" if len(matched) > 1 else ""),
            score=1.0,
            relevance=1.0,
            timestamp=time_of(hit) if hit else None,
            metadata={"filename": document.filename, **document.origin.extra},
            exact=True,
        )

    async def passages_with(self, lines: Sequence[StoredLine], k: int, notes: tuple[str, ...] = ()) -> Findings:
        """Return at most `k` passages with these lines, in their order. Lines close to each other share a passage."""
        groups: list[tuple[str, list[int]]] = []
        for line in lines:
            near = next(
                (numbers for doc_id, numbers in groups if doc_id == line.doc_id and _is_near(numbers, line)), None
            )
            if near is not None:
                near.append(line.line_no)
            else:
                groups.append((line.doc_id, [line.line_no]))
        passages = [await self.with_context(doc_id, _order(numbers)) for doc_id, numbers in groups[:k]]
        if left := sum(len(numbers) for _, numbers in groups[k:]):
            notes = (*notes, number_of(left, "more line fits and is not shown", "more lines fit and are not shown"))
        return Findings(tuple(passages), notes=notes, exact=True)

    async def find_end(
        self, where: LineWhere, wanted: int = 1, *, last: bool = False
    ) -> tuple[MatchingLines, StoredLine | None, tuple[str, ...]]:
        """Find the first or last lines by time.

        Returns:
            These lines; if the order of the file differs, the first or last line of the file, and notes about that.
        """
        by_time = await self.lines(where, wanted, last=last, by_time=True)
        if not by_time.lines or by_time.lines[0].ts is None:
            return by_time, None, ()
        best = by_time.lines[0]
        here = replace(where, doc_ids=(best.doc_id,))
        by_place = (await self.lines(here, 1, last=last)).lines[0]
        if by_place.line_no == best.line_no or _moment(by_place) == _moment(best):
            return by_time, None, ()
        name, end = self.document(best.doc_id).filename, "last" if last else "first"
        place = f"the {end} of them in the file is line {by_place.line_no}"
        if by_place.ts is None:
            note = f"line {best.line_no} of {name} is the {end} with a time; {place}, which has none"
            return by_time, by_place, (note,)
        at = time_of(by_place)
        note = f"{name} is not in order of time: line {best.line_no} is the {end} by time; {place} ({at})"
        return by_time, by_place, (note,)

    async def passage_beside_match(self, where: LineWhere, plan: Plan, notes: tuple[str, ...] = ()) -> Findings:
        """Return the lines beside the first or last line that matches (`plan.start_position`), on the side of
        `plan.position`.
        """
        latest = (plan.start_position or plan.position) in {Position.LAST, Position.NEXT}
        matching = await self.lines(where, 1, last=latest)
        if not matching.lines:
            return Findings(missing="there is no such entry", notes=notes)
        found = matching.lines[0]
        if matching.total > 1 and not plan.start_position:
            notes = (*notes, f"line {found.line_no} is taken of {matching.total} entries that fit")
        beside = await self.passage_beside(found.doc_id, found.line_no, plan.position, plan.side_lines)
        return replace(beside, notes=(*notes, *beside.notes))

    async def passage_beside(self, doc_id: str, line_no: int, side: Position | None, steps: int = 1) -> Findings:
        """Return the nearest `steps` lines on one side of a line, without blank ones."""
        after = side is Position.NEXT
        reach, verb = CONTEXT_LINES + 2 * steps, "follow" if after else "precede"
        first, last = (line_no + 1, line_no + reach) if after else (max(1, line_no - reach), line_no - 1)
        lines = (await self.lines(LineWhere((doc_id,), first=first, last=last), reach, last=not after)).lines
        near = [line.line_no for line in lines if line.text.strip()][:steps]
        name = self.document(doc_id).filename
        if not lines:
            return Findings(missing=f"line {line_no} is the {'last' if after else 'first'} of {name}")
        if not near:  # within the reach: further away there may be others
            blank = number_of(len(lines), f"blank line {verb}s", f"blank lines {verb}")
            return Findings(missing=f"{blank} line {line_no} of {name}")
        notes: tuple[str, ...] = ()
        if len(near) < len(lines) and len(near) < steps:
            some = f"only {len(near)} of the {len(lines)} lines that {verb} line {line_no} of {name}"
            notes = (f"{some} {'is' if len(near) == 1 else 'are'} not blank",)
        elif len(near) < steps:
            notes = (f"only {number_of(len(near), f'line {verb}s', f'lines {verb}')} line {line_no} of {name}",)
        return Findings((await self.with_context(doc_id, sorted(near)),), notes=notes, exact=True)


def time_of(line: StoredLine) -> str | None:
    """Return the normalised time of a line if there is one with a year, else the time as written."""
    normalised = line.ts_utc if line.ts_utc and not _YEARLESS.match(line.ts_utc) else None
    return normalised or line.ts


def without_placeholder_year(text: str) -> str:
    """Remove the placeholders of a log that leaves out the year (`06-14 10h`) or whose days are unknown (`10h`)."""
    return _YEARLESS.sub("", text)


def _order(numbers: list[int]) -> list[int]:
    """Sort line numbers. If they are in order of importance, the most important one stays first."""
    ordered = sorted(numbers)
    return ordered if numbers in (ordered, ordered[::-1]) else sorted(ordered, key=lambda line: line != numbers[0])


def _is_near(numbers: Sequence[int], line: StoredLine) -> bool:
    first, last = min(numbers), max(numbers)
    joined = max(last, line.line_no) - min(first, line.line_no) < _MAX_SPANNED
    return joined and first - _JOINED <= line.line_no <= last + _JOINED


def _moment(line: StoredLine) -> str:
    return line.ts_utc or line.ts or ""


def logs_of(documents: Sequence[Document]) -> tuple[Document, ...]:
    return tuple(doc for doc in documents if doc.kind in LOG_KINDS)


def ids_of(documents: Sequence[Document]) -> tuple[str, ...]:
    return tuple(doc.doc_id for doc in documents)


def names_of(documents: Sequence[Document]) -> tuple[str, ...]:
    return tuple(doc.filename for doc in documents)


def list_files(documents: Sequence[Document]) -> str:
    """List files by name while they are few, else by number."""
    if len(documents) > MAX_NAMED:
        return f"{len(documents)} files"
    return ", ".join(doc.filename for doc in documents)
