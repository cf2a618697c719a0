"""The core behind all document tools: question in, passages found and condensed, cited answer out.

What differs between libraries is in their `KBConfig`. Nothing is kept between calls but answers in the cache.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import clock
from clock.shared_calls import SharedCalls
from services.conversations import Phrases, in_language, phrases
from services.documents.asking import rewriting
from services.documents.asking.passages import Retrieved, Scope
from services.documents.asking.plan import Plan, Position, plan
from services.documents.asking.retrieving import Ranking, Vector, retrieve
from services.documents.asking.rewriting import Resolved, Rewriter, with_citations
from services.documents.asking.synthesis import ExtractiveSynthesiser, Synthesiser
from services.documents.results import ConversationContext, QAResult, Status, ToolContext
from services.documents.store.protocol import Collection, Document, DocumentStore, StoreUnavailable
from services.documents.tools import judging
from services.documents.tools.cache import AnswerCache, normalised
from services.documents.tools.libraries import DEFAULT_K, HIDDEN, MAX_QUESTION_CHARS, MOST_K, KBConfig
from services.search import language_of
from services.search.embedding import Embedder, EmbeddingFailed, Vectors

T = TypeVar("T")
log = logging.getLogger(__name__)

RESULT_CHARS = 8000
STORE_SECONDS = 10.0
STORE_RETRIES = 2
FAILURES = 5
PAUSE_SECONDS = 60.0


class SearchFailed(Exception):
    """The store gave no answer, also when asked again."""


class Breaker:
    """Opens after five failures in a row; after a minute one search is let through to try."""

    def __init__(self) -> None:
        self._failures = 0
        self._open_until = 0.0

    @property
    def is_open(self) -> bool:
        return clock.now() < self._open_until

    def failed(self) -> None:
        self._failures += 1
        if self._failures >= FAILURES:
            self._open_until = clock.now() + PAUSE_SECONDS

    def worked(self) -> None:
        self._failures, self._open_until = 0, 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A question that is understood. `visible`: all documents that the asker may see, searchable or not."""

    scope: Scope
    visible: tuple[Document, ...]
    resolved: Resolved
    plan: Plan
    k: int
    filters: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentQATool:
    """Answers questions from one library, for those who may ask it.

    Attributes:
        cache, breaker: shared by all tools over one store.
    """

    config: KBConfig
    store: DocumentStore
    cache: AnswerCache = field(default_factory=AnswerCache)
    breaker: Breaker = field(default_factory=Breaker)
    embedder: Embedder | None = None
    synthesiser: Synthesiser = field(default_factory=ExtractiveSynthesiser)
    rewriter: Rewriter | None = None  # rewrites follow-up questions; None: they are joined to the question before
    store_seconds: float = STORE_SECONDS  # the time limit of one try of a search
    reply_language: str = "question"  # what is said where nothing was found; else the code of a fixed language
    _calls: SharedCalls = field(default_factory=SharedCalls, init=False)

    def __call__(self, *_args: object, **_named: object) -> str:
        """There is no blocking call: it would stop the bot."""
        raise NotImplementedError(f"{self.config.name} is asynchronous: await its run()")

    async def offered(self, ctx: ToolContext) -> bool:
        """Whether there is something that this person may ask about here."""
        if not self.config.admits(ctx):
            return False
        try:
            described = await self.store.describe(self.config.get_collection_name(self.config.scope_of(ctx)))
        except (ValueError, StoreUnavailable):
            return False
        if described is None or not _same_guild(ctx, described.collection):
            return False
        return bool(self._visible(described.documents, self.config.filters(ctx)))

    async def run(
        self,
        ctx: ToolContext,
        question: str,
        k: int = DEFAULT_K,
        conversation_context: ConversationContext | None = None,
    ) -> str:
        """The answer as text, with its sources. Never raises but for a cancelled call."""
        return self.response(await self.ask(ctx, question, k, conversation_context))

    async def ask(
        self,
        ctx: ToolContext,
        question: str,
        k: int = DEFAULT_K,
        conversation_context: ConversationContext | None = None,
    ) -> QAResult:
        """As `run`, with everything that is known about the answer. Who may ask is checked first."""
        result = judging.nothing(self.config, Status.DENIED)
        if self.config.admits(ctx):
            said = ctx.conversation if conversation_context is None else conversation_context
            scope_id, filters = self.config.scope_of(ctx), self.config.filters(ctx)
            result = await self.answer_question(question, scope_id, k, said, filters, asker=ctx)
        if result.status is Status.DENIED:
            # Ids, no content: and nothing in the answer says whether there is anything.
            where = (ctx.asker_id, ctx.guild_id, ctx.thread_id, ctx.execution_id)
            log.info("%s: denied to %s in guild %s, thread %s (%s)", self.config.name, *where)
        return result

    async def answer_question(
        self,
        question: str,
        scope_id: str | None = None,
        k: int = DEFAULT_K,
        conversation_context: ConversationContext | None = None,
        filters: Mapping[str, str] | None = None,
        *,
        asker: ToolContext | None = None,
    ) -> QAResult:
        """Never raises but for a cancelled call. `asker`: denied what belongs to another guild; None: not checked."""
        begun = time.perf_counter()  # real time: measured for people, and no result depends on it
        purges, filters = self.cache.purges, filters or {}
        invalid = self._invalid(question, scope_id, filters)
        if invalid:
            return QAResult(invalid, Status.INVALID)
        reached = await self._reached(
            self.config.get_collection_name(scope_id), filters, asker, self._phrases(question)
        )
        if isinstance(reached, QAResult):
            return reached
        scope, visible, version = reached
        said = with_citations(conversation_context, scope.documents)
        resolved = await rewriting.resolve(question.strip(), said, self.rewriter)
        asked = _Asked(
            scope=scope,
            visible=visible,
            resolved=resolved,
            plan=plan(resolved.query, scope.documents),
            k=min(max(k, 1), MOST_K),
            filters=filters,
        )
        key = self._key(asked, version)
        return self.cache.get(key) or await self._calls.share(key, lambda: self._fresh(key, asked, begun, purges))

    async def scope_for(self, ctx: ToolContext) -> Scope | QAResult:
        """What this person may search here, or why there is nothing: the rules of `ask`, for other ways to search."""
        if not self.config.admits(ctx):
            return judging.nothing(self.config, Status.DENIED)
        try:
            name = self.config.get_collection_name(self.config.scope_of(ctx))
        except ValueError:
            return judging.nothing(self.config, Status.INVALID)
        reached = await self._reached(name, self.config.filters(ctx), ctx, self._phrases(""))
        return reached if isinstance(reached, QAResult) else reached[0]

    async def _reached(
        self, name: str, filters: Mapping[str, str], asker: ToolContext | None, said: Phrases
    ) -> tuple[Scope, tuple[Document, ...], int] | QAResult:
        """What may be searched, all that is visible, and the collection's version; or why there is nothing."""
        try:
            described = await self._searched(lambda: self.store.describe(name))
        except SearchFailed:
            return judging.nothing(self.config, Status.RETRIEVAL_ERROR)
        if described is None:
            return judging.nothing(self.config, Status.NOT_INDEXED)
        if asker is not None and not _same_guild(asker, described.collection):
            return judging.nothing(self.config, Status.DENIED)
        visible = self._visible(described.documents, filters)
        unready = judging.unready(self.config, visible, said)
        if unready is not None:
            return unready
        return Scope(self.store, name, _in_scope(visible, filters)), visible, described.version

    async def searched(self, search: Callable[[], Awaitable[T]]) -> T | QAResult:
        """What a search gives, within the time limit and tries of this tool; or that the store does not answer."""
        try:
            return await self._searched(search)
        except SearchFailed:
            return judging.nothing(self.config, Status.RETRIEVAL_ERROR)

    def response(self, result: QAResult) -> str:
        """A result as text for the agent: the answer with its sources, cut to what the agent can take."""
        if result.status not in {Status.OK, Status.SYNTHESIS_ERROR}:
            return result.answer
        whole = self.config.format_response(result.answer, result.sources, result.chunk_count, result.confidence)
        most = min(self.config.answer_char_allowance or RESULT_CHARS, RESULT_CHARS)
        if len(whole) <= most:
            return whole
        tail = self.config.format_response("", result.sources, result.chunk_count, result.confidence)
        room = most - len(tail) - 2
        return f"{result.answer[: max(room, 0)].rstrip()} …{tail}"[:most]

    async def _fresh(self, key: Hashable, asked: _Asked, begun: float, purges: int) -> QAResult:
        searched = time.perf_counter()
        vectors: list[tuple[Vectors, str] | None] = []  # made once, and only if it is wanted; None: that failed

        async def vector() -> tuple[Vectors, str] | None:
            if self.embedder is not None and not vectors:
                try:
                    vectors.append(((await self.embedder.embed([asked.plan.text]))[0], self.embedder.id))
                except EmbeddingFailed as error:
                    log.warning("%s: keyword search only: %s", self.config.name, error)
                    vectors.append(None)
            return vectors[0] if vectors else None

        try:
            found = await self._searched(lambda: self._found(asked, vector))
        except SearchFailed:
            return replace(judging.nothing(self.config, Status.RETRIEVAL_ERROR), query_used=asked.resolved.query)
        retrieved = time.perf_counter()
        documents, visible = asked.scope.documents, asked.visible
        said = self._phrases(asked.resolved.question)
        result = await judging.judged(self.config, self.synthesiser, found, asked.resolved, documents, visible, said)
        done = time.perf_counter()
        spans = {"retrieval": (searched, retrieved), "synthesis": (retrieved, done), "total": (begun, done)}
        result = replace(
            result,
            query_used=asked.resolved.query,
            plan={**asked.plan.as_dict(), "how": asked.resolved.how, "notes": list(found.notes), **result.plan},
            timings_ms={span: (end - start) * 1000 for span, (start, end) in spans.items()},
        )
        purged = self.cache.purges != purges
        # What may be better in a moment is not kept.
        if not (asked.resolved.refused or judging.is_pending(visible) or purged or None in vectors):
            self.cache.put(key, asked.scope.name, result, self.config.cache_ttl)
        return result

    async def _found(self, asked: _Asked, vector: Vector) -> Retrieved:
        anchored = await _anchored(asked.scope, asked.resolved)
        if anchored is not None:
            return anchored
        ranking = Ranking(
            self.config.weights,
            spread=self.config.spread,
            exact_paths=self.config.exact_paths,
            internal=not _hides_internal(asked.filters),
            mode=self.config.search_mode,
        )
        return await retrieve(asked.scope, asked.plan, asked.k, ranking, vector)

    def _invalid(self, question: str, scope_id: str | None, filters: Mapping[str, str]) -> str:
        """What is wrong with a call; empty: nothing."""
        try:
            self.config.get_collection_name(scope_id)
        except ValueError:
            return self.config.no_result_message(Status.INVALID)
        if not question.strip():
            return "The question is empty."
        if len(question) > MAX_QUESTION_CHARS:
            return f"The question has {len(question)} characters; {MAX_QUESTION_CHARS} is the most."
        unknown = sorted(set(filters) - self.config.filterable_fields)
        return f"There is no filter {', '.join(unknown)} here." if unknown else ""

    def _phrases(self, question: str) -> Phrases:
        return phrases(in_language(self.reply_language, language_of(question)))

    def _visible(self, documents: Sequence[Document], filters: Mapping[str, str]) -> tuple[Document, ...]:
        """Without what this person may not see: not even its number shows."""
        hidden = _hides_internal(filters)
        return tuple(doc for doc in documents if not (hidden and self.config.is_internal(doc.origin.extra)))

    def _key(self, asked: _Asked, version: int) -> Hashable:
        """Everything that an answer depends on."""
        resolved, embedder = asked.resolved, "" if self.embedder is None else self.embedder.id
        # Letter case matters in a plan: `ERROR` may be a level where `error` is a word.
        understood = normalised(repr(replace(asked.plan, question="", text="")))
        anchors = tuple((anchor.doc_id, anchor.line_start, anchor.line_end) for anchor in resolved.anchors)
        questions = normalised(resolved.question), normalised(resolved.query), resolved.how, understood, anchors
        settings = self.config.name, asked.k, tuple(sorted(asked.filters.items())), self.synthesiser.id, embedder
        return asked.scope.name, version, *questions, *settings

    async def _searched(self, search: Callable[[], Awaitable[T]]) -> T:
        """With a time limit, retries, and a pause for a store that has stopped working. Raises SearchFailed."""
        if self.breaker.is_open:
            raise SearchFailed
        for left in range(STORE_RETRIES, -1, -1):
            try:
                async with asyncio.timeout(self.store_seconds):
                    result = await search()
            except (StoreUnavailable, TimeoutError) as error:
                log.warning("%s: search failed (%s), tries left: %d", self.config.name, type(error).__name__, left)
            else:
                self.breaker.worked()
                return result
        self.breaker.failed()
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
    """What may be searched: the newest revision of each name."""

    def fits(doc: Document) -> bool:
        facts = {**doc.origin.extra, "filename": doc.filename}
        return all(facts.get(name) == value for name, value in filters.items() if name != "internal")

    return tuple(doc for doc in documents if doc.current and doc.state.searchable and fits(doc))


def _hides_internal(filters: Mapping[str, str]) -> bool:
    return filters.get("internal") == HIDDEN["internal"]


def _same_guild(ctx: ToolContext, collection: Collection) -> bool:
    return collection.guild_id is None or collection.guild_id == ctx.guild_id
