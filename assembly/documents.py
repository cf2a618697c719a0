"""Files of threads and people's runbooks: what is opened for them, and what looks after them beside the graph."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assembly.llm import Observe, open_llm
from assembly.redaction import secrets_of
from operators.chunk import Intake
from operators.retrieve import BeforeAsking, Lookup
from services.conversations import Viewing
from services.discord import Attachments
from services.documents import (
    Candidate,
    Cases,
    FileLimits,
    Runbooks,
    Tombstones,
    fill,
    forget_evidence,
)
from services.documents.store import (
    ChromaStore,
    DocumentStore,
    EmbeddedStore,
    Folders,
    StoreUnavailable,
    Weights,
    naming,
)
from services.documents.tools import AnswerCache, Lifetimes, Toolbox, build
from services.llm import StructuredLLM, Usage
from services.search.embedding import Embedder, EmbeddingEndpoint, EndpointEmbedder, PackagedEmbedder, installed
from services.storage import DataFolder
from settings import DocumentSettings, Settings
from streams.wiring import EvidenceRules

EMBEDDED = "embedded"
"""The value of `documents.store` that needs no server."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Documents:
    """What is open for as long as the bot runs."""

    store: DocumentStore
    embedder: Embedder | None
    asker: StructuredLLM | None
    """Who condenses passages; None: they are quoted."""
    model: str
    cases: Cases
    runbooks: Runbooks
    intake: Intake
    settings: DocumentSettings
    forget_answers: Callable[[str], object] = lambda _: None
    """Told of each collection whose answers must not be given again."""
    background: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    def toolbox(self, usage: Usage, internal_topics: Collection[str] = ()) -> Toolbox:
        """The tools over the store; what they use counts towards `usage`. `internal_topics`: for the team only."""
        cache, ranking = self.settings.cache, self.settings.ranking
        toolbox = build(
            store=self.store,
            embedder=self.embedder,
            asker=self.asker,
            model=self.model,
            usage=usage,
            cache=AnswerCache(
                max_entries=cache.max_entries,
                max_bytes=cache.max_bytes,
                not_found_seconds=cache.not_found_seconds,
            ),
            weights=Weights(
                prose=ranking.prose_weight,
                window=ranking.window_weight,
                pattern=ranking.pattern_weight,
                leaf=ranking.leaf_weight,
                identifier=ranking.identifier_weight,
                identifier_bonus=ranking.identifier_bonus,
                bm25_k1=ranking.bm25_k1,
                bm25_b=ranking.bm25_b,
            ),
            lifetimes=Lifetimes(
                int(cache.case_seconds), int(cache.user_seconds), int(cache.team_seconds), int(cache.global_seconds)
            ),
            shares=self.runbooks.shown_in_threads,
            internal_topics=internal_topics,
            store_seconds=self.settings.store_timeout_seconds,
        )
        assert toolbox is not None  # noqa: S101 (there is a store)
        self.forget_answers = self.runbooks.forget_answers = toolbox.forget
        return toolbox

    def lookup(self, toolbox: Toolbox, viewing: Viewing, before_asking: BeforeAsking | None = None) -> Lookup:
        """`before_asking`: awaited before an answer looks anything up."""
        chosen = self.settings
        return Lookup(
            self.store,
            toolbox,
            self.cases,
            self.runbooks,
            viewing,
            chosen.ready_wait_seconds,
            chosen.team_name.strip(),
            before_asking,
        )

    async def call_off(self, gone: Callable[[Candidate], bool]) -> None:
        """Stop reading the files of which `gone` is true; afterwards nothing of them is written any more."""
        for case_id in self.cases.take_back(gone):
            await self.cases.wait(case_id, self.settings.ready_wait_seconds)

    async def leave_alone(self, user_id: int) -> None:
        """Take in nothing of a person's any more; what can be searched stays."""
        try:
            await self.call_off(lambda candidate: candidate.uploader_id == user_id)
            await forget_evidence(self.store, user_id, None, self.forget_answers, only_unread=True)
        except StoreUnavailable as error:
            log.error("documents: %s; a file may stay listed as being read", error)  # noqa: TRY400 (for the operator)

    async def forget(self, user_id: int) -> tuple[int, int]:
        """Remove a person's files and runbooks, also such as are being read, and the answers from them.

        How many files and runbooks there were. Raises StoreUnavailable, OSError.
        """
        await self.call_off(lambda candidate: candidate.uploader_id == user_id)
        files = await forget_evidence(self.store, user_id, self.cases.gone, self.forget_answers)
        return files, await self.runbooks.forget(user_id)

    def embed_soon(self, name: str, doc_id: str) -> None:
        """Give a document its vectors, beside everything else."""
        if self.embedder is not None:
            self.beside(self._embed(self.embedder, name, doc_id))

    def beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something beside everything else; given up at the end."""
        task = asyncio.get_running_loop().create_task(work)
        self.background.add(task)
        task.add_done_callback(self.background.discard)

    async def _embed(self, embedder: Embedder, name: str, doc_id: str) -> None:
        try:
            await fill(self.store, embedder, name, doc_id)
        except StoreUnavailable as error:
            log.warning("%s: a document can be searched by words only: %s", name, error)

    async def close(self) -> None:
        for task in self.background:
            task.cancel()
        await asyncio.gather(*self.background, return_exceptions=True)
        await self.store.close()
        if self.embedder is not None:
            await self.embedder.close()


@asynccontextmanager
async def documents_for(
    settings: Settings,
    asker: StructuredLLM | None,
    attachments: Attachments,
    *,
    record: Path | None = None,
    replay: Path | None = None,
    observe: Observe | None = None,
    rehearsed: bool = False,
) -> AsyncGenerator[Documents | None]:
    """Open the store and whoever works on it; None where `documents.enabled` is false, or the store cannot be read.

    `rehearsed`: only the data folder is touched, wherever documents are kept otherwise.
    `asker` is the one of `ai_response.llm`; where `documents.synthesis_llm` is set, a client for that is opened.
    """
    chosen = settings.documents
    if not chosen.enabled:
        yield None
        return
    async with AsyncExitStack() as stack:
        llm = settings.ai_response.llm
        if chosen.synthesis_llm is not None:
            llm = chosen.synthesis_llm
            asker = await stack.enter_async_context(
                open_llm(settings, llm, record=record, replay=replay, observe=observe)
            )
        folder = DataFolder(settings.app.data_dir)
        store = store_of(folder, EMBEDDED if rehearsed else chosen.store)
        redactors = DocumentRedactors(secrets_of(settings))
        runbooks = Runbooks(
            store,
            folder.shown_runbooks,
            FileLimits(
                max_file_bytes=chosen.max_runbook_bytes,
                max_lines=chosen.max_lines_per_file,
                max_line_chars=chosen.max_line_chars,
            ),
            chosen.max_runbooks_per_user,
            redactors,
        )
        try:
            names = await store.list_collections(naming.CASE_PREFIX)
            await runbooks.open()
        except StoreUnavailable as error:
            log.error("documents: %s; files are left alone until the next start", error)  # noqa: TRY400 (for the operator)
            yield None
            return
        documents = Documents(
            store,
            embedder_of(chosen),
            asker,
            "" if llm is None else llm.model,
            Cases((int(name.removeprefix(naming.CASE_PREFIX)) for name in names), Tombstones(folder.tombstones)),
            runbooks,
            Intake(store, attachments, limits_of(chosen), redactors),
            chosen,
        )
        runbooks.embed_soon = documents.embed_soon
        stack.push_async_callback(documents.close)
        yield documents


def store_of(folder: DataFolder, address: str = EMBEDDED) -> DocumentStore:
    """The files in `folder`, or the Chroma server at `address`, of which copies are kept there."""
    if address == EMBEDDED:
        return EmbeddedStore(Folders(folder.evidence, folder.runbooks, folder.documents))
    return ChromaStore(address, folder.documents / "copies")


def embedder_of(chosen: DocumentSettings) -> Embedder | None:
    """The endpoint that is configured, else the packaged model where it is installed; None: documents are searched by
    words only.
    """
    asked = chosen.embeddings
    if asked is not None:
        return EndpointEmbedder(EmbeddingEndpoint(asked.base_url, asked.model, asked.api_key.get_secret_value()))
    return PackagedEmbedder() if installed() else None


def limits_of(chosen: DocumentSettings) -> FileLimits:
    return FileLimits(
        max_file_bytes=chosen.max_file_bytes,
        max_lines=chosen.max_lines_per_file,
        max_line_chars=chosen.max_line_chars,
        max_files=chosen.max_files_per_thread,
        max_total_bytes=chosen.max_thread_bytes,
    )


def evidence_rules(chosen: DocumentSettings) -> EvidenceRules:
    return EvidenceRules(
        block_lines=chosen.code_block_min_lines if chosen.code_blocks else None,
        solved_tags=solved_tags(chosen),
        grace_seconds=chosen.evidence_grace_hours * 3600,
        embed_at_once=chosen.embed_concurrency,
    )


def solved_tags(chosen: DocumentSettings) -> frozenset[str]:
    return frozenset(tag.strip().casefold() for tag in chosen.solved_tags)
