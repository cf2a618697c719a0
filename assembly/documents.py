"""Opens the store of files and runbooks, the tools over it, and the background work that reads files and computes
vectors.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from assembly.answering import AS_CONFIGURED, ModelOptions, open_embedder, open_llm
from clock import HOUR, BackgroundTasks, FairTurns, Processes
from operators.evidence import IngestServices
from services.conversations import People, ThreadAccess
from services.discord import Attachments
from services.documents import (
    Candidate,
    DocumentRedactors,
    FileLimits,
    Lookup,
    Runbooks,
    ThreadFiles,
    Tombstones,
    embed_document,
    forget_evidence,
)
from services.documents.store import (
    DiskSpace,
    DocumentStore,
    Folders,
    SharedDocuments,
    SqliteCollections,
    StoreUnavailable,
    Weights,
    chroma_store,
    personal_files,
    protocol,
    sqlite_store,
)
from services.documents.tools import CASE, GLOBAL, LIBRARIES, TEAM, USER, AnswerCache, KBConfig, ToolModel, build
from services.knowledge import LibrarySearch, Search
from services.llm import StructuredLLM, Usage
from services.search.embedding import Embedder
from services.storage import DataFolder
from settings import EMBEDDED, DocumentSettings, Settings
from streams.wiring import EvidenceRules


def libraries_of(chosen: DocumentSettings) -> list[KBConfig]:
    """Return the libraries with the weights and the lifetimes of answers that the settings give them."""
    ranking, cache = chosen.ranking, chosen.cache
    weights = Weights(
        prose=ranking.prose_weight,
        window=ranking.window_weight,
        pattern=ranking.pattern_weight,
        leaf=ranking.leaf_weight,
        identifier=ranking.identifier_weight,
        identifier_bonus=ranking.identifier_bonus,
        bm25_k1=ranking.bm25_k1,
        bm25_b=ranking.bm25_b,
    )
    seconds = {
        CASE: cache.case_seconds,
        USER: cache.user_seconds,
        TEAM: cache.team_seconds,
        GLOBAL: cache.global_seconds,
    }
    return [replace(library, weights=weights, cache_ttl=seconds[library.name]) for library in LIBRARIES]


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Background:
    """Runs work beside the graph, such as computing vectors of documents."""

    store: DocumentStore
    embedder: Embedder | None
    tasks: BackgroundTasks = field(default_factory=BackgroundTasks, init=False)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    def embed_soon(self, name: str, doc_id: str) -> None:
        """Give a document its vectors, by the names of its collection and its own."""
        if self.embedder is not None:
            self.tasks.start(self._embed(name, doc_id))

    async def _embed(self, name: str, doc_id: str) -> None:
        try:
            async with self._turn:  # one at a time: else a question waits for a batch of each document
                await embed_document(self.store, self.embedder, name, doc_id)
        except StoreUnavailable as error:
            log.warning("%s: keyword search only for a document: %s", name, error)


async def follow_other_processes(
    shared: SharedDocuments,
    cases: ThreadFiles,
    runbooks: Runbooks,
    background: Background,
    forget_answers: Callable[[str], object],
) -> None:
    """Keep the lists of files, deleted files and runbooks current when other processes change them.

    Raises StoreUnavailable.
    """

    def on_flag(name: str, there: bool) -> None:
        if name.startswith(protocol.CASE_PREFIX):
            (cases.note_collection if there else cases.forget)(int(name.removeprefix(protocol.CASE_PREFIX)))
            if not there:
                forget_answers(name)
        else:
            background.tasks.start(look_again(name))

    async def look_again(name: str) -> None:
        try:
            await runbooks.reload(name)
        except StoreUnavailable as error:
            log.warning("%s: what another process has changed is not known yet: %s", name, error)

    await cases.share(shared.notes)
    await shared.store.follow(on_flag)


async def flush_shared_store(shared: SharedDocuments) -> None:
    """Write pending documents to where other processes read them; log an error if that fails."""
    try:
        await shared.store.flush()
    except StoreUnavailable as error:
        log.error("documents: what was written last is not kept: %s", error)  # noqa: TRY400 (a line for the operator)


PUBLISHED_BEFORE = ("team_", "global_")
"""The prefixes of collections that earlier releases made."""

READING_SECONDS = 60.0
"""The limit for reading one file: several times the time for the largest log allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Documents:
    """The open document store with the tools, caches and background work over it.

    Attributes:
        asker: condenses passages; None: they are quoted. `model`: its name.
        answers: the cache of earlier answers, which are dropped when their documents change or are deleted.
        shared: the store that processes share; None: only this process has files and runbooks.
    """

    settings: DocumentSettings
    store: DocumentStore
    embedder: Embedder | None
    asker: StructuredLLM | None
    model: str
    cases: ThreadFiles
    runbooks: Runbooks
    ingest_services: IngestServices
    answers: AnswerCache
    background: Background
    shared: SharedDocuments | None = None

    def lookup(
        self,
        viewing: ThreadAccess,
        people: People,
        usage: Usage,
        search: Search,
        *,
        server: int | None,
        reply_language: str,
    ) -> Lookup:
        """Make the tools over the store and `search`; their calls and tokens count towards `usage`. `server`: that of
        the tools, if it has knowledge of its own.
        """
        tools = build(
            store=self.store,
            search=search if isinstance(search, LibrarySearch) else None,
            embedder=self.embedder,
            model=None if self.asker is None else ToolModel(self.asker, self.model, usage),
            cache=self.answers,
            configs=libraries_of(self.settings),
            shares=self.runbooks.shown_in_threads,
            store_seconds=self.settings.store_timeout_seconds,
            reply_language=reply_language,
        )
        return Lookup(
            store=self.store,
            tools=tools,
            cases=self.cases,
            runbooks=self.runbooks,
            viewing=viewing,
            is_team=people.is_team_member,
            ready_wait_seconds=self.settings.ready_wait_seconds,
            team_name=self.settings.team_name.strip() if server is None else "",
        )

    async def holds(self, documents: Iterable[tuple[str, str]]) -> bool:
        """Return True if the store has all of these, each by its collection and its id, and the owners of those that
        are runbooks show them in threads. Raises StoreUnavailable.
        """
        for name, doc_id in documents:
            owner_id = protocol.owner_of_runbooks(name)
            if owner_id is not None and not self.runbooks.shown_in_threads(owner_id):
                return False
            described = await self.store.describe(name)
            if described is None or doc_id not in {each.doc_id for each in described.documents}:
                return False
        return True

    async def cancel_reads(self, gone: Callable[[Candidate], bool]) -> None:
        """Stop reading the files for which `gone` is true, and wait until no write for them is running."""
        for case_id in self.cases.cancel_reads(gone):
            await self.cases.wait(case_id, self.settings.ready_wait_seconds)

    async def stop_reading_of(self, user_id: int) -> None:
        """Stop reading the files of a person who has opted out. Files that are searchable already stay."""
        try:
            await self.cancel_reads(lambda candidate: candidate.uploader_id == user_id)
            await forget_evidence(self.store, user_id, None, self.answers.purge, only_unread=True)
        except StoreUnavailable as error:
            log.error("documents: %s; a file may stay listed as being read", error)  # noqa: TRY400 (for the operator)

    async def forget(self, user_id: int) -> tuple[int, int]:
        """Remove a person's files and runbooks, also those being read, and the answers from them.

        Gives how many files and runbooks there were. Raises StoreUnavailable, OSError.
        """
        await self.cancel_reads(lambda candidate: candidate.uploader_id == user_id)
        files = await forget_evidence(self.store, user_id, self.cases.tombstones, self.answers.purge)
        return files, await self.runbooks.forget(user_id)

    async def close(self) -> None:
        await self.background.tasks.close()
        await (self.store.close() if self.shared is None else flush_shared_store(self.shared))


@asynccontextmanager
async def documents_for(
    settings: Settings,
    asker: StructuredLLM | None,
    attachments: Attachments,
    embedder: Embedder | None,
    models: ModelOptions = AS_CONFIGURED,
    *,
    store_in_folder: bool = False,
    shared: SharedDocuments | None = None,
) -> AsyncGenerator[Documents | None]:
    """Open the store and the tools over it; None if `documents.enabled` is false, or the store cannot be read.

    `embedder`: that of `search.embeddings`, used unless `documents.embeddings` is set. `asker`: that of
    `ai_response.llm`. Neither is closed here. If `documents.synthesis_llm` is set, a client for that is opened.
    `store_in_folder`: use the data folder, even if `documents.store` names a server. `shared`: the store that processes
    share; it is flushed here, but not closed.
    """
    chosen = settings.documents
    if not chosen.enabled:
        yield None
        return
    async with AsyncExitStack() as stack:
        llm = settings.ai_response.llm
        if chosen.synthesis_llm is not None:
            llm = chosen.synthesis_llm
            asker = await stack.enter_async_context(open_llm(settings, llm, replace(models, at_once=None)))
        folder = DataFolder(settings.app.data_dir)
        store = shared.store if shared else store_of(folder, EMBEDDED if store_in_folder else chosen.store)
        kept_in = folder.evidence, folder.runbooks, folder.chroma_copies
        store.disk = DiskSpace(kept_in, chosen.max_disk_bytes)
        if chosen.embeddings is not None:
            embedder = await stack.enter_async_context(open_embedder(settings.document_embeddings))
        background = Background(store=store, embedder=embedder)
        processes, turns = Processes(seconds=READING_SECONDS), FairTurns()
        stack.push_async_callback(processes.close)
        redactors = DocumentRedactors(settings.secrets)
        answers = AnswerCache(
            max_entries=chosen.cache.max_entries,
            max_bytes=chosen.cache.max_bytes,
            not_found_seconds=chosen.cache.not_found_seconds,
        )
        runbooks = Runbooks(
            store=store,
            shown_path=folder.shown_runbooks,
            run=processes.run,
            turns=turns,
            limits=FileLimits(
                max_file_bytes=chosen.max_runbook_bytes,
                max_lines=chosen.max_lines_per_file,
                max_line_chars=chosen.max_line_chars,
            ),
            max_runbooks=chosen.max_runbooks_per_user,
            redactors=redactors,
            forget_answers=answers.purge,
            embed_soon=background.embed_soon,
        )
        cases = await _open_files(store, folder, runbooks, background, answers, shared)
        if cases is None:
            if shared is None:
                with suppress(StoreUnavailable):
                    await store.close()
            yield None
            return
        documents = Documents(
            settings=chosen,
            store=store,
            embedder=embedder,
            asker=asker,
            model="" if llm is None else llm.model,
            cases=cases,
            runbooks=runbooks,
            ingest_services=IngestServices(
                store=store,
                attachments=attachments,
                run=processes.run,
                turns=turns,
                limits=limits_of(chosen),
                redactors=redactors,
            ),
            answers=answers,
            background=background,
            shared=shared,
        )
        stack.push_async_callback(documents.close)
        yield documents


async def _open_files(
    store: DocumentStore,
    folder: DataFolder,
    runbooks: Runbooks,
    background: Background,
    answers: AnswerCache,
    shared: SharedDocuments | None,
) -> ThreadFiles | None:
    """Open the runbooks. Returns the files of threads that the store has; None: it cannot be read, which is logged."""
    try:
        await remove_published(store, folder)
        names = await store.list_collections(protocol.CASE_PREFIX)
        tombstones = Tombstones(None if shared else folder.tombstones)
        await runbooks.open(None if shared is None else shared.notes)
        cases = ThreadFiles((int(name.removeprefix(protocol.CASE_PREFIX)) for name in names), tombstones)
        if shared is not None:
            await follow_other_processes(shared, cases, runbooks, background, answers.purge)
    except (StoreUnavailable, OSError) as error:
        log.error("documents: %s; files are left alone until the next start", error)  # noqa: TRY400 (for the operator)
        return None
    return cases


def document_files(settings: Settings) -> SqliteCollections:
    """Return the collections in the data folder."""
    return SqliteCollections(_embedded_in(DataFolder(settings.app.data_dir)))


def _embedded_in(folder: DataFolder) -> Folders:
    return Folders(folder.evidence, folder.runbooks)


def _copies_in(folder: DataFolder) -> Folders:
    copies = folder.chroma_copies / "copies"
    return Folders(copies, copies)


def store_of(folder: DataFolder, address: str = EMBEDDED, *, read_only_with: Path | None = None) -> DocumentStore:
    """Make the store of files in `folder`, or of the Chroma server at `address` with copies in `folder`.
    `read_only_with`: write nothing else than copies in this folder.
    """
    if address == EMBEDDED:
        return sqlite_store(_embedded_in(folder), read_only=read_only_with is not None)
    return chroma_store(address, read_only_with or _copies_in(folder).cases)


@dataclass(frozen=True, slots=True)
class NamedStore:
    """A store that is open nowhere else, and its place in words for the operator."""

    place: str
    store: DocumentStore


def named_store(folder: DataFolder, address: str) -> NamedStore:
    """Make the store at `address`, as `store_of`."""
    place = f"{folder.evidence} and {folder.runbooks}" if address == EMBEDDED else "files in threads and runbooks"
    return NamedStore(place, store_of(folder, address))


def unused_stores(folder: DataFolder, address: str | None) -> list[NamedStore]:
    """Find other stores than that at `address` with files in the data folder: `documents.store` was changed, or a
    process over Chroma was killed. `address` None: no store is in use. Blocking. Raises OSError.
    """
    found = list[NamedStore]()
    if address != EMBEDDED and personal_files(_embedded_in(folder)):
        found.append(named_store(folder, EMBEDDED))
    copies = _copies_in(folder)
    if address in {EMBEDDED, None} and personal_files(copies):
        found.append(NamedStore(f"{copies.cases}", sqlite_store(copies)))
    return found


def stored_files(folder: DataFolder) -> list[Path]:
    """List the files of all stores in the data folder, in use or not. Blocking. Raises OSError."""
    return [*personal_files(_embedded_in(folder)), *personal_files(_copies_in(folder))]


async def remove_published(store: DocumentStore, folder: DataFolder) -> int:
    """Delete the collections in which earlier releases kept documentation and the team's topics for the tools, and
    return their number: the tools ask search now. Raises StoreUnavailable, OSError.
    """
    names = [name for prefix in PUBLISHED_BEFORE for name in await store.list_collections(prefix)]
    for name in names:
        await store.delete_collection(name)
    files = published_files(folder)
    for path in files:
        path.unlink(missing_ok=True)
    return len(names) + sum(path.suffix == ".sqlite" for path in files)


def published_files(folder: DataFolder) -> list[Path]:
    """List the files of such collections beside the stores. Blocking. Raises OSError."""
    return [path for prefix in PUBLISHED_BEFORE for path in folder.chroma_copies.glob(f"{prefix}*.sqlite*")]


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
        grace_seconds=chosen.evidence_grace_hours * HOUR,
        embed_at_once=chosen.embed_concurrency,
    )


def solved_tags(chosen: DocumentSettings) -> frozenset[str]:
    return frozenset(tag.strip().casefold() for tag in chosen.solved_tags)
