"""The one core behind all document tools: question in, passages found and condensed, cited answer out (DOCUMENT_QA 2).

It knows no library by name: what differs between them is in their `KBConfig`. It keeps nothing between calls but
answers in the cache; who may ask what is decided before it (services.documents.tools.wrappers).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from clock.shared_calls import SharedCalls
from services.documents.asking import rewriting
from services.documents.asking.passages import Retrieved, Scope
from services.documents.asking.plan import Plan, Position, plan
from services.documents.asking.retrieving import Ranking, retrieve
from services.documents.asking.rewriting import Resolved, Rewriter, with_citations
from services.documents.asking.synthesis import ExtractiveSynthesiser, Synthesiser
from services.documents.results import ConversationContext, QAResult, Status
from services.documents.store.protocol import (
    CollectionSummary,
    Document,
    DocumentStore,
    State,
    StoreUnavailable,
)
from services.documents.tools.breaker import Breaker
from services.documents.tools.cache import AnswerCache, key_of, normalised
from services.documents.tools.condensing import condensed
from services.documents.tools.config import KBConfig
from services.documents.tools.question_vector import QuestionVector
from services.documents.tools.refusals import Refusals
from services.documents.unreadable import unreadable
from services.search.embedding import Embedder
from services.telemetry import number_of

T = TypeVar("T")
log = logging.getLogger(__name__)

DEFAULT_K = 5
MOST_K = 20
RESULT_CHARS = 8000
STORE_SECONDS = 10.0
STORE_RETRIES = 2


@dataclass(frozen=True, slots=True)
class Shared:
    """What the tools have in common."""

    store: DocumentStore
    cache: AnswerCache
    breaker: Breaker
    embedder: Embedder | None = None
    synthesiser: Synthesiser = field(default_factory=ExtractiveSynthesiser)
    rewriter: Rewriter | None = None
    store_seconds: float = STORE_SECONDS
    store_retries: int = STORE_RETRIES


class SearchFailed(Exception):
    """The store gave no answer, also when asked again."""


class DocumentQATool:
    def __init__(self, name: str, config: KBConfig, shared: Shared) -> None:
        self.name = name
        self.config = config
        self._shared = shared
        self._calls = SharedCalls()
        self._refusals = Refusals(config)

    async def has_content(self, scope_id: str | None, filters: Mapping[str, str] | None = None) -> bool:
        """Whether there is anything to be asked: a tool without is not offered."""
        try:
            described = await self._shared.store.describe(self.config.get_collection_name(scope_id))
        except (ValueError, StoreUnavailable):
            return False
        return described is not None and bool(self._visible(described, filters or {}).documents)

    async def answer_question(
        self,
        question: str,
        scope_id: str | None = None,
        k: int = DEFAULT_K,
        conversation_context: ConversationContext | None = None,
        filters: Mapping[str, str] | None = None,
    ) -> QAResult:
        """Never raises but for a cancelled call."""
        begun = time.perf_counter()  # real time: measured for people, and no result depends on it
        invalid = self._refusals.invalid(question, scope_id, filters)
        if invalid:
            return QAResult(invalid, Status.INVALID)
        k = min(max(k, 1), MOST_K)
        name = self.config.get_collection_name(scope_id)
        try:
            described = await self._searched(lambda: self._shared.store.describe(name))
        except SearchFailed:
            return self._refusals.nothing(Status.RETRIEVAL_ERROR)
        if described is not None:
            described = self._visible(described, filters or {})
        unready = self._refusals.unready(described)
        if described is None or unready is not None:
            return unready or self._refusals.nothing(Status.NOT_INDEXED)
        documents = _in_scope(described.documents, dict(filters or {}))
        said = with_citations(conversation_context, documents)
        resolved = await rewriting.resolve(question.strip(), said, self._shared.rewriter)
        understood = plan(resolved.query, documents)
        key = self._key(name, described, resolved, understood, k, filters)
        cached = self._shared.cache.get(key)
        if cached is not None:
            return cached

        purges = self._shared.cache.purges

        async def fresh() -> QAResult:
            filtered = dict(filters or {})
            vector = QuestionVector(self.name, self._shared.embedder, understood.text)
            result = await self._fresh(described, documents, understood, resolved, k, filtered, vector, begun)
            busy = any(doc.state is State.PENDING for doc in described.documents)
            purged = self._shared.cache.purges != purges
            if not resolved.refused and not busy and not purged and not vector.failed and not _partial(result):
                self._shared.cache.put(key, name, result, self.config.cache_ttl)
            return result

        return await self._calls.share(key, fresh)

    def response(self, result: QAResult) -> str:
        """What the agent is given: the answer with its tail, never longer than it can take."""
        if result.status not in {Status.OK, Status.SYNTHESIS_ERROR}:
            return result.answer
        whole = self.config.format_response(result.answer, result.sources, result.chunk_count, result.confidence)
        most = min(self.config.answer_char_allowance or RESULT_CHARS, RESULT_CHARS)
        if len(whole) <= most:
            return whole
        tail = self.config.format_response("", result.sources, result.chunk_count, result.confidence)
        room = most - len(tail) - 2
        return f"{result.answer[: max(room, 0)].rstrip()} …{tail}"[:most]

    async def _fresh(
        self,
        described: CollectionSummary,
        documents: tuple[Document, ...],
        understood: Plan,
        resolved: Resolved,
        k: int,
        filters: Mapping[str, str],
        vector: QuestionVector,
        begun: float,
    ) -> QAResult:
        scope = Scope(self._shared.store, described.collection.name, documents)
        searched = time.perf_counter()
        try:
            found = await self._searched(lambda: self._found(scope, understood, resolved, k, filters, vector))
        except SearchFailed:
            return replace(self._refusals.nothing(Status.RETRIEVAL_ERROR), query_used=resolved.query)
        retrieved = time.perf_counter()
        result = await self._judged(described, documents, resolved, found)
        timings = {
            "retrieval": (retrieved - searched) * 1000,
            "synthesis": (time.perf_counter() - retrieved) * 1000,
            "total": (time.perf_counter() - begun) * 1000,
        }
        facts = {**understood.as_dict(), "how": resolved.how, "notes": list(found.notes)}
        return replace(result, query_used=resolved.query, plan={**facts, **result.plan}, timings_ms=timings)

    async def _found(
        self,
        scope: Scope,
        understood: Plan,
        resolved: Resolved,
        k: int,
        filters: Mapping[str, str],
        vector: QuestionVector,
    ) -> Retrieved:
        anchored = await _anchored(scope, resolved)
        if anchored is not None:
            return anchored
        ranking = Ranking(
            self.config.weights,
            spread=self.config.spread,
            exact_paths=self.config.exact_paths,
            internal=filters.get("internal") != "hidden",
            mode=self.config.search_mode,
        )
        return await retrieve(scope, understood, k, ranking, vector.get)

    async def _judged(
        self, described: CollectionSummary, documents: Sequence[Document], resolved: Resolved, found: Retrieved
    ) -> QAResult:
        pending = [doc for doc in described.documents if doc.state is State.PENDING]
        if not found.passages and not found.facts:
            if pending:
                return self._refusals.indexing(described, pending, searched=True)
            return self._refusals.not_found(documents, found, resolved.question)
        if self._too_far(found):
            return self._refusals.nothing(Status.REFUSED_IRRELEVANT)
        notes = found.notes
        if pending:
            notes = (*notes, f"{len(pending)} of {number_of(len(described.documents), 'file')} still being indexed")
        failed = [doc for doc in described.documents if doc.state is State.FAILED]
        notes = (*notes, *map(unreadable, failed))
        found = replace(found, notes=notes)
        return await condensed(self.name, self.config, self._shared.synthesiser, found, resolved)

    def _too_far(self, found: Retrieved) -> bool:
        """Whether even the best passage is too far from the question. Never judged by a fused score."""
        if found.exact or not found.passages or any(passage.relevance == 1.0 for passage in found.passages):
            return False
        cosines = [passage.score for passage in found.passages if passage.score is not None]
        if cosines:
            threshold = self.config.relevance_threshold
            return threshold is not None and max(cosines) < threshold
        threshold = self.config.keyword_threshold
        best = max((passage.relevance or 0.0 for passage in found.passages), default=0.0)
        return threshold is not None and best < threshold

    def _visible(self, described: CollectionSummary, filters: Mapping[str, str]) -> CollectionSummary:
        """Without what this person may not see: not even how much there is of it is told."""
        if filters.get("internal") != "hidden":
            return described
        shown = tuple(doc for doc in described.documents if not self.config.is_internal(doc.origin.extra))
        return replace(described, documents=shown)

    def _key(
        self,
        name: str,
        described: CollectionSummary,
        resolved: Resolved,
        understood: Plan,
        k: int,
        filters: Mapping[str, str] | None,
    ) -> str:
        embedder = self._shared.embedder
        return key_of(
            {
                "tool": self.name,
                "collection": name,
                "version": described.version,
                "question": normalised(resolved.question),
                "query": normalised(resolved.query),
                # What letter case says: `ERROR` may be a level where `error` is a word.
                "plan": normalised(repr(replace(understood, question="", text=""))),
                "how": resolved.how,
                "anchors": [(anchor.doc_id, anchor.line_start, anchor.line_end) for anchor in resolved.anchors],
                "k": k,
                "filters": sorted((filters or {}).items()),
                "synthesis": self._shared.synthesiser.id,
                "embedder": "" if embedder is None else embedder.id,
            }
        )

    async def _searched(self, search: Callable[[], Awaitable[T]]) -> T:
        """With a time limit, retries, and a rest for a store that has stopped working."""
        shared = self._shared
        if shared.breaker.is_open:
            raise SearchFailed
        for left in range(shared.store_retries, -1, -1):
            try:
                async with asyncio.timeout(shared.store_seconds):
                    result = await search()
            except (StoreUnavailable, TimeoutError) as error:
                log.warning("%s: the search failed (%s), tries left: %d", self.name, type(error).__name__, left)
            else:
                shared.breaker.worked()
                return result
        shared.breaker.failed()
        raise SearchFailed


async def _anchored(scope: Scope, resolved: Resolved) -> Retrieved | None:
    """What a follow-up asks about lines cited before; None where they are gone."""
    known = {doc.doc_id for doc in scope.documents}
    anchors = [anchor for anchor in resolved.anchors if anchor.doc_id in known]
    if not anchors:
        return None
    if resolved.position is None:
        passages = [
            await scope.around(anchor.doc_id, range(anchor.line_start, last + 1))
            for anchor in anchors
            if anchor.line_start <= (last := min(anchor.line_end, scope.document(anchor.doc_id).n_lines))
        ]
        return Retrieved(tuple(passages), exact=True)
    anchor = anchors[0]
    line = anchor.line_end if resolved.position is Position.NEXT else anchor.line_start
    return await scope.neighbours(anchor.doc_id, line, resolved.position, resolved.steps)


def _in_scope(documents: Sequence[Document], filters: Mapping[str, str]) -> tuple[Document, ...]:
    """What may be searched: of each name the newest revision."""
    wanted = {name: value for name, value in filters.items() if name != "internal"}
    return tuple(
        doc
        for doc in documents
        if doc.current and doc.state.searchable and all(_field(doc, name) == value for name, value in wanted.items())
    )


def _field(doc: Document, name: str) -> str | None:
    return doc.filename if name == "filename" else doc.origin.extra.get(name)


def _partial(result: QAResult) -> bool:
    return any("still being indexed" in str(note) for note in result.plan.get("notes", ()))
