"""Finds the passages for a plan: by exact conditions if the question has some, else by ranking."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from services.documents.asking import conditions, exact, vocabulary
from services.documents.asking.passages import LOG_KINDS, CitedPassage, Findings, Scope, without_placeholder_year
from services.documents.asking.plan import Plan
from services.documents.prepared import ChunkType, DocumentKind
from services.documents.store.protocol import ChunkHit, ChunkSearch, LineWhere, SearchMode, StoredChunk, Weights
from services.search.embedding import Vectors

DEPTH = 15  # the fewest candidates that keyword and vector search give each

PER_DOCUMENT = 2  # the passages that one document of prose gives before the other documents do

RARE_BONUS = 0.15
LEVEL_BONUS = 0.2  # for lines of a level in the question that is no condition
_COMMON = 1000

_LEAD = 6  # lines of context around the first line of a pattern

KEYWORDS_ONLY = "keyword search only"

T = TypeVar("T")

Vector = Callable[[], Awaitable[tuple[Vectors, str] | None]]
"""Gives the question's vector and the embedder's id; None: there is no embedder."""


@dataclass(frozen=True, slots=True)
class Ranking:
    weights: Weights = field(default_factory=Weights)
    spread: bool = False  # prose: at most `PER_DOCUMENT` passages of a document, then the rest in order
    exact_paths: bool = True
    mode: SearchMode = SearchMode.HYBRID


async def retrieve(scope: Scope, plan: Plan, k: int, ranking: Ranking, vector: Vector) -> Findings:
    """Return at most `k` passages, best first, or why there are none."""
    if ranking.exact_paths:
        found = await exact.find_exact(scope, plan, k)
        if found is not None:
            return found
    hits, keyword_only = await _rank(scope, plan, k, ranking, vector)
    hits, notes = _filter_by_level(plan, hits) if ranking.exact_paths else (hits, ())
    notes = (*notes, KEYWORDS_ONLY) if keyword_only else notes
    if plan.unknown_file:
        notes = (f"there is no file {plan.unknown_file}; the others were searched", *notes)
    if ranking.exact_paths and plan.mentions:
        notes = (*await conditions.note_absent_names(scope, plan), *notes)
    passages = sort_by_score(plan, await _passages(scope, hits, k, spread=ranking.spread))
    return Findings(tuple(passages), notes=notes)


def sort_by_score(plan: Plan, passages: Sequence[CitedPassage]) -> list[CitedPassage]:
    """Sort passages that were found by meaning by the shown score; the first stays, which also fits by words."""
    if plan.mentions or any(passage.score is None for passage in passages):
        return list(passages)
    return [*passages[:1], *sorted(passages[1:], key=lambda passage: -(passage.score or 0.0))]


async def _rank(scope: Scope, plan: Plan, k: int, ranking: Ranking, vector: Vector) -> tuple[list[ChunkHit], bool]:
    """Return the hits in order; and True if only words were compared."""
    documents = scope.named_documents(plan)
    embedded = await vector()
    text = plan.text
    if any(doc.kind in LOG_KINDS for doc in documents):
        text = f"{text} {vocabulary.words_in_logs(text)}"
    search = ChunkSearch(
        text=text,
        vector=None if embedded is None else embedded[0],
        embedder_id="" if embedded is None else embedded[1],
        identifiers=await conditions.selective_names(scope, plan),
        depth=max(3 * k, DEPTH),
        doc_ids=frozenset(doc.doc_id for doc in documents),
        weights=ranking.weights,
        mode=ranking.mode,
    )
    found = [_add_bonus(plan, hit) for hit in await scope.store.search(scope.name, search)]
    hits = sorted(found, key=lambda hit: -hit.rank_score)  # stable: ties stay as they were
    keyword_only = embedded is None or all(hit.score is None for hit in hits)
    return hits, keyword_only and bool(hits)


def _filter_by_level(plan: Plan, hits: list[ChunkHit]) -> tuple[list[ChunkHit], tuple[str, ...]]:
    """Keep the hits of a level that the question names; hits without levels may stay."""
    level = plan.severity
    if level is None or not level.explicit:
        return hits, ()
    kept = [hit for hit in hits if not hit.chunk.severities or not set(level.levels).isdisjoint(hit.chunk.severities)]
    if any(hit.chunk.severities for hit in kept):
        return kept, ()
    return kept or hits, (f"no entry matched {level.text}",)


def _add_bonus(plan: Plan, hit: ChunkHit) -> ChunkHit:
    """Raise a hit's rank score by the question's words and the kind of chunk."""
    chunk, more = hit.chunk, 0.0
    if chunk.type is ChunkType.LEAF and chunk.key_path:
        more = vocabulary.BONUS * vocabulary.fit(plan.text, chunk.key_path)
    elif chunk.type is ChunkType.PATTERN:
        # People ask about rare events more often than about frequent ones.
        more = RARE_BONUS * (1 - math.log(max(len(chunk.lines), 1)) / math.log(_COMMON))
        if plan.severity and not set(plan.severity.levels).isdisjoint(chunk.severities):
            more += LEVEL_BONUS
    return replace(hit, rank_score=hit.rank_score + more)


async def _passages(scope: Scope, hits: Sequence[ChunkHit], k: int, *, spread: bool) -> list[CitedPassage]:
    passages: list[CitedPassage] = []
    shown: set[tuple[str, int]] = set()
    for hit in spread_by_document(hits, lambda hit: hit.chunk.doc_id) if spread else hits:
        if len(passages) == k:
            break
        # Two chunks may have the same lines: a window, and a pattern in it.
        lines = {(hit.chunk.doc_id, line) for line in _lines_of(hit.chunk)}
        if not lines <= shown:
            shown |= lines
            passages.append(await _passage(scope, hit))
    return passages


def spread_by_document(hits: Sequence[T], document_of: Callable[[T], str]) -> list[T]:
    """Put the first hits of each document before all others."""
    seen = Counter[str]()
    first: list[T] = []
    later: list[T] = []
    for hit in hits:
        seen[document_of(hit)] += 1
        (first if seen[document_of(hit)] <= PER_DOCUMENT else later).append(hit)
    return first + later


def _lines_of(chunk: StoredChunk) -> tuple[int, ...]:
    if chunk.type is ChunkType.PATTERN and chunk.lines:
        return chunk.lines
    return tuple(range(chunk.line_start, chunk.line_end + 1))


async def _passage(scope: Scope, hit: ChunkHit) -> CitedPassage:
    chunk = hit.chunk
    relevance = hit.score if hit.score is not None else hit.coverage
    if hit.verbatim >= 1:
        relevance = 1.0
    if chunk.type is ChunkType.PATTERN:
        # The first line of a pattern with its context, and the numbers of the next lines.
        around = await scope.with_context(chunk.doc_id, [chunk.line_start], context=_LEAD)
        matched = chunk.lines or (chunk.line_start,)
        ranked = replace(around, score=hit.score, relevance=relevance)
        return replace(ranked, matched=matched, chunk_id=chunk.chunk_id, exact=False)
    document = scope.document(chunk.doc_id)
    text, start, end = chunk.text, chunk.line_start, chunk.line_end
    if chunk.type is ChunkType.LEAF:
        indexes = [] if chunk.section_index is None else [chunk.section_index]
        for section in (await scope.store.chunks(scope.name, chunk.doc_id, indexes))[:1]:
            start, end = section.line_start, section.line_end
        lines = await scope.lines(LineWhere((chunk.doc_id,), first=start, last=end), end - start + 1)
        text = "\n".join(line.text for line in lines.lines)
    timestamp = chunk.ts_min
    if timestamp and without_placeholder_year(timestamp) != timestamp:
        # The log leaves the year out: take the time as its first line writes it.
        timed = await scope.lines(LineWhere((chunk.doc_id,), first=start, last=end), end - start + 1)
        timestamp = next((line.ts for line in timed.lines if line.ts), None)
    facts = {"heading": chunk.heading, "key_path": chunk.key_path, "symbol": chunk.symbol}
    return CitedPassage(
        doc_id=chunk.doc_id,
        source=document.filename,
        text=text,
        line_start=start,
        line_end=end,
        matched=_lines_of(chunk),
        chunk_id=chunk.chunk_id,
        timestamp=timestamp,
        metadata={**{name: value for name, value in facts.items() if value}, **chunk.extra},
        has_numbers=document.kind in {*LOG_KINDS, DocumentKind.CONFIG, DocumentKind.CODE},
        values=(chunk.text,) if chunk.type is ChunkType.LEAF else (),
        score=hit.score,
        relevance=relevance,
    )
