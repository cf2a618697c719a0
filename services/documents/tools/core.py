"""One call of a document tool, from question to result: the cache of answers, reading the question, retrieving
passages, and making the result.

The differences between libraries are in their `KBConfig`. Only the answers in the cache are kept between calls.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import clock
from clock import SharedCalls
from services.conversations import Phrases, in_language, phrases
from services.documents.asking import rewriting
from services.documents.asking.passages import MAX_NAMED, CitedPassage, Findings
from services.documents.asking.plan import Plan, plan
from services.documents.asking.rewriting import ConversationContext, ResolvedQuestion, Rewriter, with_citations
from services.documents.asking.synthesis import ExtractiveSynthesiser, Material, Synthesiser, check_answer
from services.documents.limits import FileRefused, display_name
from services.documents.store.protocol import Document, State, StoreUnavailable
from services.documents.tools.libraries import (
    DEFAULT_K,
    MAX_K,
    MAX_QUESTION_CHARS,
    KBConfig,
    QAResult,
    Status,
    ToolContext,
)
from services.documents.tools.scopes import SearchScope, Shelf
from services.llm import LLMError
from services.search import language_of, normalised
from services.search.embedding import Embedder, EmbeddingFailed, Vectors
from services.telemetry import number_of

# The cache of answers

MAX_ENTRIES = 1000
MAX_BYTES = 16 * 1024 * 1024
NOT_FOUND_SECONDS = 60.0

_CACHEABLE = {Status.OK, Status.NOT_FOUND, Status.REFUSED_IRRELEVANT}


@dataclass(frozen=True, slots=True)
class _Entry:
    result: QAResult
    collection: str
    until: float
    size: int


class AnswerCache:
    """A cache of answers that drops the least recently used one when it is full.

    Attributes:
        purges: number of calls of `purge`. An answer begun before a purge must not be stored after it.
    """

    def __init__(
        self,
        *,
        max_entries: int = MAX_ENTRIES,
        max_bytes: int = MAX_BYTES,
        not_found_seconds: float = NOT_FOUND_SECONDS,
    ) -> None:
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._not_found_seconds = not_found_seconds
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._bytes = 0
        self.purges = 0

    def get(self, key: Hashable) -> QAResult | None:
        entry = self._entries.get(key)
        if entry is None or entry.until <= clock.now():
            self._drop(key)
            return None
        self._entries.move_to_end(key)
        return replace(entry.result, cached=True)

    def put(self, key: Hashable, collection: str, result: QAResult, ttl: float) -> None:
        """Store an answer for `ttl` seconds; errors and denials are not stored."""
        if result.status not in _CACHEABLE or ttl <= 0:
            return
        if result.status is Status.NOT_FOUND:
            ttl = min(ttl, self._not_found_seconds)
        self._drop(key)
        size = len(result.answer.encode()) + len(repr(result.plan)) + 200 * (1 + len(result.citations))
        self._entries[key] = _Entry(result, collection, clock.now() + ttl, size)
        self._bytes += size
        while len(self._entries) > self._max_entries or self._bytes > self._max_bytes:
            self._drop(next(iter(self._entries)))

    def purge(self, collection: str) -> None:
        """Drop all answers from one collection."""
        self.purges += 1
        for key in [key for key, entry in self._entries.items() if entry.collection == collection]:
            self._drop(key)

    def __len__(self) -> int:
        return len(self._entries)

    def _drop(self, key: Hashable) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._bytes -= entry.size


def normalise(question: str) -> str:
    """Return the question without differences of width, letter case, spaces and end punctuation.

    If letter case changes the meaning, it changes the plan, which is another part of the key.
    """
    text = normalised("NFKC", question).casefold()
    return re.sub(r"\s+", " ", text).strip().rstrip("?!.… ")


# Results: from passages to an answer, or the reason for none

VERBATIM_PASSAGES = 3

log = logging.getLogger(__name__)


def no_result(config: KBConfig, status: Status) -> QAResult:
    return QAResult(config.no_result_message(status), status)


def unready_result(documents: Sequence[Document], wording: Phrases) -> QAResult | None:
    """Say why no document can be searched: all are pending or unreadable. None: some can be."""
    if not documents or any(doc.state.searchable for doc in documents):
        return None
    if count_pending(documents):
        return _indexing(documents, wording)
    return QAResult("\n".join(f"{describe_failure(doc)}." for doc in documents), Status.NOT_INDEXED)


def describe_failure(doc: Document) -> str:
    """Say in one clause, without a full stop, which file could not be read and why, or that it was removed."""
    name, reason = display_name(doc.filename), doc.error.strip().removesuffix(".")
    for called in (name, doc.filename):
        if reason.startswith(f"{called} "):
            rest = reason.removeprefix(called).strip()
            # A file that was removed keeps its name, and no uploader.
            return f"{name} {rest}" if doc.origin.uploader_id is None else f"{name} could not be read: it {rest}"
    return f"{name} could not be read: {reason}" if reason else f"{name} could not be read"


def refusal_text(refused: FileRefused, language: str = "en") -> str:
    """Return one line for people that says why a file is refused and what to do, in a language (ISO 639-1)."""
    said = phrases(language)
    return " ".join(said.say(sentence, **refused.values) for sentence in refused.sentences)


@dataclass(frozen=True, slots=True, kw_only=True)
class _PlannedQuestion:
    """A question with its plan and search scope."""

    scope: SearchScope
    resolved: ResolvedQuestion
    plan: Plan
    k: int
    filters: Mapping[str, str]


async def _judge(
    config: KBConfig, synthesiser: Synthesiser, asked: _PlannedQuestion, found: Findings, wording: Phrases
) -> QAResult:
    """Make the result of what was found for a question."""
    visible = asked.scope.visible
    pending = count_pending(visible)
    if not found.passages and not found.facts:
        if pending:
            return _indexing(visible, wording, f" {wording.nothing_so_far}")
        return _not_found(asked.scope.documents, found, asked.resolved.question, wording)
    if _is_too_far(config, found):
        return no_result(config, Status.REFUSED_IRRELEVANT)
    notes = [f"{pending} of {number_of(len(visible), 'file')} still being indexed"] if pending else []
    notes += [describe_failure(doc) for doc in visible if doc.state is State.FAILED]
    return await _condense(config, synthesiser, replace(found, notes=(*found.notes, *notes)), asked.resolved)


def count_pending(documents: Sequence[Document]) -> int:
    return sum(doc.state is State.PENDING for doc in documents)


def _indexing(documents: Sequence[Document], wording: Phrases, also: str = "") -> QAResult:
    return QAResult(f"{wording.indexing(count_pending(documents), len(documents))}{also}", Status.INDEXING)


def _not_found(documents: Sequence[Document], found: Findings, asked: str, wording: Phrases) -> QAResult:
    names = found.searched_files or tuple(doc.filename for doc in documents)
    listed = f" ({', '.join(names)})" if len(names) <= MAX_NAMED else ""
    if not found.missing and not found.notes and found.count is None:
        return QAResult(wording.searched(f"{wording.files(len(names))}{listed}", asked), Status.NOT_FOUND)
    # `missing` is in English, like the words of the question that led to it.
    text = f'Searched {number_of(len(names), "file")}{listed} for "{asked}": {found.missing or "no entry matched"}.'
    text += "".join(f" Note: {note}." for note in found.notes if note not in found.missing)
    if found.count is None:
        return QAResult(text, Status.NOT_FOUND)
    counted = f"{number_of(found.count, 'entry', 'entries')}, computed over the whole file"
    return QAResult(f"{text} That makes {counted}.", Status.NOT_FOUND, plan={"count": found.count})


def _is_too_far(config: KBConfig, found: Findings) -> bool:
    """Return True if even the best passage is too far from the question, by cosine or by words."""
    if found.exact or not found.passages or any(passage.relevance == 1.0 for passage in found.passages):
        return False
    cosines = [passage.score for passage in found.passages if passage.score is not None]
    threshold = config.relevance_threshold if cosines else config.keyword_threshold
    best = max(cosines or [passage.relevance or 0.0 for passage in found.passages])
    return threshold is not None and best < threshold


async def _condense(
    config: KBConfig, synthesiser: Synthesiser, found: Findings, resolved: ResolvedQuestion
) -> QAResult:
    """Condense the passages into the answer; quote the best ones if that fails."""
    status, extra = Status.OK, ""
    material = _material(config, found, resolved)
    try:
        answer = await synthesiser.answer(material)
    except LLMError as error:
        log.warning("%s: the passages could not be condensed: %s", config.name, type(error).__name__)
        answer = ""
    if not answer.strip():
        status, extra = Status.SYNTHESIS_ERROR, config.no_result_message(Status.SYNTHESIS_ERROR)
        best = replace(found, passages=found.passages[:VERBATIM_PASSAGES])
        answer = await ExtractiveSynthesiser().answer(_material(config, best, resolved))
    allowed = [resolved.query, resolved.question, *material.headers, *material.citations, found.facts]
    checked = check_answer(answer, found.passages, allowed)
    if checked.unverified:
        log.info("%s: citations or quotes that are in no passage: %d", config.name, checked.unverified)
    noted = [f"Note: {note}." for note in found.notes if note]
    relevances = [passage.relevance for passage in found.passages if passage.relevance is not None]
    # Facts about whole files are certain without any passage.
    confidence = sum(relevances) / len(relevances) if relevances else float(bool(found.facts))
    return QAResult(
        answer="\n".join(part for part in (extra, checked.answer.strip(), *noted) if part),
        status=status,
        sources=tuple(dict.fromkeys(config.extract_source_name(_metadata(passage)) for passage in found.passages))
        or found.searched_files,
        chunk_count=len(found.passages),
        confidence=min(max(confidence, 0.0), 1.0),
        citations=checked.cited or tuple(passage.citation for passage in found.passages),
        plan={} if found.count is None else {"count": found.count},
        unverified=checked.unverified,
    )


def _material(config: KBConfig, found: Findings, resolved: ResolvedQuestion) -> Material:
    described = [_metadata(passage) for passage in found.passages]
    pairs = zip(described, found.passages, strict=True)
    shown = [config.format_chunk_metadata(metadata, passage.score) for metadata, passage in pairs]
    return Material(
        question=resolved.question,
        query=resolved.query,
        found=found,
        headers=tuple(f"[Chunk {number} - {header}]" for number, header in enumerate(shown, start=1)),
        citations=tuple(map(config.cite, described)),
        system_prompt=config.system_prompt,
        citation_format=config.get_citation_format(),
        max_tokens=config.max_answer_tokens,
    )


def _metadata(passage: CitedPassage) -> dict[str, str]:
    """Return the metadata that a `KBConfig` formats."""
    facts = {
        "section": passage.metadata.get("heading"),
        "document_title": passage.metadata.get("title"),
        **passage.metadata,
        "filename": passage.source,
        "line_start": str(passage.citation.line_start),
        "line_end": str(passage.citation.line_end),
        "line_number": str(passage.citation.line_start),
        "timestamp": passage.timestamp,
    }
    return {name: value for name, value in facts.items() if value}


# The tool

T = TypeVar("T")

RESULT_CHARS = 8000
STORE_SECONDS = 10.0
STORE_RETRIES = 2
BREAKER_FAILURES = 5
BREAKER_SECONDS = 60.0


def with_posters(result: QAResult, scope: SearchScope) -> QAResult:
    """Return the result with those who posted its sources, as far as these are somebody else's files."""
    posters = {name: user_id for name, user_id in scope.posters.items() if name in result.sources}
    return replace(result, posters=posters) if posters else result


class Breaker:
    """Opens after five failures in a row. After a minute searches are tried again; the next failure opens it again."""

    def __init__(self) -> None:
        self._failures = 0
        self._open_until = 0.0

    @property
    def is_open(self) -> bool:
        return clock.now() < self._open_until

    def note_failure(self) -> None:
        self._failures += 1
        if self._failures >= BREAKER_FAILURES:
            self._open_until = clock.now() + BREAKER_SECONDS

    def note_success(self) -> None:
        self._failures, self._open_until = 0, 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentQATool:
    """Answers questions from one library, for people who may ask it.

    Attributes:
        shelf: where the library is kept.
        cache, breaker: shared by all tools over one store.
        reply_language: `question`: fixed phrases are in the language of the question; otherwise the code of a fixed
            language.
    """

    config: KBConfig
    shelf: Shelf
    cache: AnswerCache = field(default_factory=AnswerCache)
    breaker: Breaker = field(default_factory=Breaker)
    embedder: Embedder | None = None
    synthesiser: Synthesiser = field(default_factory=ExtractiveSynthesiser)
    rewriter: Rewriter | None = None  # rewrites follow-up questions; None: they are joined to the question before
    store_seconds: float = STORE_SECONDS  # the time limit of one try of a search
    reply_language: str = "question"
    _calls: SharedCalls = field(default_factory=SharedCalls, init=False)

    def __call__(self, *_args: object, **_named: object) -> str:
        """Raise NotImplementedError: a blocking call would stop the bot."""
        raise NotImplementedError(f"{self.config.name} is asynchronous: await its run()")

    async def is_available(self, ctx: ToolContext) -> bool:
        """Return True if this person may ask here, and there are documents."""
        try:
            opened = self.config.admits(ctx) and await self.shelf.open(self.config, self.config.scope_of(ctx), {}, ctx)
        except (ValueError, StoreUnavailable):
            return False
        return opened is not False and not isinstance(opened, Status)

    async def run(
        self,
        ctx: ToolContext,
        question: str,
        k: int = DEFAULT_K,
        conversation_context: ConversationContext | None = None,
    ) -> str:
        """Answer as text, with sources. Raises only if the call is cancelled."""
        return self.response(await self.ask(ctx, question, k, conversation_context))

    async def ask(
        self,
        ctx: ToolContext,
        question: str,
        k: int = DEFAULT_K,
        conversation_context: ConversationContext | None = None,
    ) -> QAResult:
        """Like `run`, but return the full result. Access is checked first."""
        result = no_result(self.config, Status.DENIED)
        if self.config.admits(ctx):
            conversation = ctx.conversation if conversation_context is None else conversation_context
            result = await self.answer_question(question, self.config.scope_of(ctx), k, conversation, asker=ctx)
        if result.status is Status.DENIED:
            # Log ids, no content; the answer does not reveal whether there are documents.
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
        """Answer without checking `config.admits`. Raises only if the call is cancelled. `asker`: denied if the
        collection belongs to another guild; None: not checked.
        """
        begun = time.perf_counter()  # real time: measured for people, and no result depends on it
        purges, filters = self.cache.purges, filters or {}
        invalid = self._invalid(question, scope_id, filters)
        if invalid:
            return QAResult(invalid, Status.INVALID)
        scope = await self._open_scope(scope_id or "", filters, asker, self._phrases(question))
        if isinstance(scope, QAResult):
            return scope
        conversation = with_citations(conversation_context, scope.documents)
        resolved = await rewriting.resolve(question.strip(), conversation, self.rewriter)
        asked = _PlannedQuestion(
            scope=scope,
            resolved=resolved,
            plan=plan(resolved.query, scope.documents),
            k=min(max(k, 1), MAX_K),
            filters=filters,
        )
        key = self._key(asked)
        result = self.cache.get(key) or await self._calls.share(
            key, lambda: self._answer_anew(key, asked, begun, purges)
        )
        return with_posters(result, scope)

    async def scope_for(self, ctx: ToolContext) -> SearchScope | QAResult:
        """Open the search scope of this person, with the access rules of `ask`; or say why there is none."""
        if not self.config.admits(ctx):
            return no_result(self.config, Status.DENIED)
        try:
            return await self._open_scope(self.config.scope_of(ctx), {}, ctx, self._phrases(""))
        except ValueError:
            return no_result(self.config, Status.INVALID)

    async def _open_scope(
        self, scope_id: str, filters: Mapping[str, str], asker: ToolContext | None, wording: Phrases
    ) -> SearchScope | QAResult:
        """Open a search scope, or say why there is none. Raises ValueError as `KBConfig.get_collection_name`."""
        opened = await self.with_retries(lambda: self.shelf.open(self.config, scope_id, filters, asker))
        if isinstance(opened, Status):
            return no_result(self.config, opened)
        return opened if isinstance(opened, QAResult) else unready_result(opened.visible, wording) or opened

    async def with_retries(self, search: Callable[[], Awaitable[T]]) -> T | QAResult:
        """Run a search with time limit, retries and breaker. Returns a `QAResult` if the store does not answer."""
        if not self.breaker.is_open:
            for left in range(STORE_RETRIES, -1, -1):
                try:
                    async with asyncio.timeout(self.store_seconds):
                        result = await search()
                except (StoreUnavailable, TimeoutError) as error:
                    log.warning("%s: search failed (%s), tries left: %d", self.config.name, type(error).__name__, left)
                else:
                    self.breaker.note_success()
                    return result
            self.breaker.note_failure()
        return no_result(self.config, Status.RETRIEVAL_ERROR)

    def response(self, result: QAResult) -> str:
        """Return a result as text for the model: the answer with its sources, cut at the limit of the library."""
        if result.status not in {Status.OK, Status.SYNTHESIS_ERROR}:
            return result.answer
        whole = self.config.format_response(result.answer, result.sources, result.chunk_count, result.confidence)
        most = min(self.config.answer_char_allowance or RESULT_CHARS, RESULT_CHARS)
        if len(whole) <= most:
            return whole
        tail = self.config.format_response("", result.sources, result.chunk_count, result.confidence)
        room = most - len(tail) - 2
        return f"{result.answer[: max(room, 0)].rstrip()} …{tail}"[:most]

    async def _answer_anew(self, key: Hashable, asked: _PlannedQuestion, begun: float, purges: int) -> QAResult:
        search_began = time.perf_counter()
        vectors: list[tuple[Vectors, str] | None] = []  # made once, on demand; None: that failed

        async def vector() -> tuple[Vectors, str] | None:
            if self.embedder is not None and not vectors:
                try:
                    vectors.append(((await self.embedder.embed([asked.plan.text]))[0], self.embedder.id))
                except EmbeddingFailed as error:
                    log.warning("%s: keyword search only: %s", self.config.name, error)
                    vectors.append(None)
            return vectors[0] if vectors else None

        found = await self.with_retries(lambda: asked.scope.retrieve(asked.plan, asked.resolved, asked.k, vector))
        if isinstance(found, QAResult):
            return replace(found, query_used=asked.resolved.query)
        retrieved = time.perf_counter()
        wording = self._phrases(asked.resolved.question)
        result = await _judge(self.config, self.synthesiser, asked, found, wording)
        done = time.perf_counter()
        spans = {"retrieval": (search_began, retrieved), "synthesis": (retrieved, done), "total": (begun, done)}
        result = replace(
            result,
            query_used=asked.resolved.query,
            plan={**asked.plan.as_dict(), "how": asked.resolved.how, "notes": list(found.notes), **result.plan},
            timings_ms={span: (end - start) * 1000 for span, (start, end) in spans.items()},
        )
        purged = self.cache.purges != purges
        # An answer that may be better in a moment is not cached.
        if not (asked.resolved.refused or count_pending(asked.scope.visible) or purged or None in vectors):
            self.cache.put(key, asked.scope.name, result, self.config.cache_ttl)
        return result

    def _invalid(self, question: str, scope_id: str | None, filters: Mapping[str, str]) -> str:
        """Say what is wrong with a call; empty: nothing."""
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

    def _key(self, asked: _PlannedQuestion) -> Hashable:
        """Return the cache key: everything that an answer depends on."""
        resolved, embedder = asked.resolved, "" if self.embedder is None else self.embedder.id
        # Letter case matters in a plan: `ERROR` may be a level where `error` is a word.
        understood = normalise(repr(replace(asked.plan, question="", text="")))
        anchors = tuple((anchor.doc_id, anchor.line_start, anchor.line_end) for anchor in resolved.anchors)
        questions = normalise(resolved.question), normalise(resolved.query), resolved.how, understood, anchors
        settings = self.config.name, asked.k, tuple(sorted(asked.filters.items())), self.synthesiser.id, embedder
        return asked.scope.name, asked.scope.version, *questions, *settings
