"""The files of a thread: downloaded, split and made searchable; deleted with the messages that brought them or when
the thread is over.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypedDict

from clock import FairTurns, WorkRunner, WorkStopped, finish_even_if_cancelled, from_rfc3339, now
from model.messages import Message, Place, snowflake_time
from services.discord import AttachmentFailed, Attachments, LookupFailed
from services.documents import (
    PLACE_ID,
    Candidate,
    DocumentRedactors,
    FileLimits,
    FileRefused,
    IngestJob,
    ThreadFiles,
    check_file,
    check_share,
    display_name,
    embed_document,
    is_closed,
    prepare_document,
    refusal_text,
)
from services.documents.store import DiskFull, Document, DocumentStore, Origin, State, StoreUnavailable, protocol
from services.search.embedding import Embedder
from services.telemetry import number_of

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestResult:
    """The result of reading one file.

    Attributes:
        document: None: there is nothing to search, since reading failed or was cancelled.
        failure: why the file cannot be read and what to do, in one line of English.
        refusal: the same, for people in their language; None if they know already.
        is_new: True if people do not know this result yet.
    """

    job: IngestJob
    document: Document | None = None
    failure: str = ""
    refusal: FileRefused | None = None
    is_new: bool = True


class MessageFiles(NamedTuple):
    """The files of one message that have been read, the newest result last. `is_complete`: none is still being read."""

    results: tuple[IngestResult, ...]
    is_complete: bool

    @property
    def case_id(self) -> int:
        return self.results[-1].job.case_id


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestServices:
    """The services and limits for reading files: the source of their bytes, the process that parses them, redactors,
    and the store. `turns`: decides whose file is read next.
    """

    store: DocumentStore
    attachments: Attachments
    run: WorkRunner
    turns: FairTurns = field(default_factory=FairTurns)
    limits: FileLimits = field(default_factory=FileLimits)
    redactors: DocumentRedactors = field(default_factory=DocumentRedactors)


def chunk(services: IngestServices) -> Callable[[IngestJob], Coroutine[Any, Any, IngestResult]]:
    """Check a file, download it, take it apart and make it searchable by words.

    A file that cannot be read is kept as failed, with the reason. Nothing is written once its thread is closed.
    """
    store = services.store

    async def chunked(job: IngestJob) -> IngestResult:
        candidate = job.candidate
        try:
            described = await store.describe(candidate.collection.name)
            documents = () if described is None else described.documents
            known = next((doc for doc in documents if candidate.is_in(doc)), None)
            if known is not None and known.state is not State.PENDING:
                document = known if known.state.searchable else None
                return IngestResult(job=job, document=document, failure=known.error, is_new=False)
            return await read(job, [doc for doc in documents if doc is not known])
        except StoreUnavailable as error:
            log.error("evidence: %s", error)  # noqa: TRY400 (one line for the operator)
            return _refused_result(job, FileRefused("not_stored", name=display_name(candidate.filename)))

    async def read(job: IngestJob, others: Sequence[Document]) -> IngestResult:
        candidate = job.candidate
        collection, origin, size = candidate.collection, candidate.origin, candidate.attachment.size
        held, read_bytes = [doc for doc in others if doc.state is not State.FAILED], 0

        def check_with_others(size: int) -> None:
            check_limits(size, **room_taken(others))
            if candidate.is_guest:
                own = [doc for doc in others if doc.origin.poster_id == candidate.uploader_id]
                check_share(candidate.filename, size, services.limits, **room_taken(own))

        check_limits = partial(check_file, candidate.filename, limits=services.limits)
        # Never cancelled: it may make the collection, and deletions wait for it.
        expected = await finish_even_if_cancelled(store.expect(collection, origin))
        try:
            # A copy of an earlier file takes no room.
            copies = [doc for doc in held if (doc.filename, doc.size) == (candidate.filename, size)]
            (check_limits if copies else check_with_others)(size)
            async with services.turns.turn(candidate.uploader_id):
                await store.check_room(origin)
                if candidate.text is None:
                    data = await services.attachments.content(candidate.attachment, services.limits.max_file_bytes)
                else:
                    data = candidate.text.encode()
                digest = hashlib.sha256(data).hexdigest()
                # It may be larger than was announced.
                is_copy = any(doc.sha256 == digest for doc in copies)
                (check_limits if is_copy else check_with_others)(len(data))
                read_bytes, redactors = len(data), services.redactors
                document = await services.run(prepare_document, origin, data, services.limits, None, redactors)
        except FileRefused as refused:
            refusal = refused
        except AttachmentFailed as error:
            log.warning("evidence: %s", error)
            refusal = FileRefused("download_failed", name=display_name(candidate.filename))
        except WorkStopped as stopped:
            log.warning("evidence: attachment %d cannot be read: %s", candidate.attachment.id, stopped)
            refusal = FileRefused("too_hard", name=display_name(candidate.filename))
        except DiskFull as full:
            log.error("evidence: %s", full)  # noqa: TRY400 (one line for the operator)
            refusal = FileRefused("not_stored", name=display_name(candidate.filename))
        except StoreUnavailable:
            raise
        except Exception:
            log.exception("evidence: attachment %d cannot be read", candidate.attachment.id)
            refusal = FileRefused("fault", name=display_name(candidate.filename))
        else:
            # Not cut off: a deletion of the file waits for the end of the write.
            stored = await finish_even_if_cancelled(store.add(collection, [document], create=False))
            return IngestResult(job=job, document=stored[0] if stored else None, is_new=bool(stored))
        await store.fail(collection.name, expected.doc_id, refusal_text(refusal), read_bytes)
        return _refused_result(job, refusal)

    return chunked


class Room(TypedDict):
    """The room that documents take: their number and their bytes, as `check_file` wants them."""

    files: int
    total_bytes: int


def room_taken(documents: Collection[Document]) -> Room:
    """Count what documents take of the room of their place."""
    # Those that failed after their download (size > 0) count as files like the others.
    files = sum(doc.state is not State.FAILED or doc.size > 0 for doc in documents)
    return Room(files=files, total_bytes=sum(doc.size for doc in documents if doc.state is not State.FAILED))


def _refused_result(job: IngestJob, refusal: FileRefused) -> IngestResult:
    return IngestResult(job=job, failure=refusal_text(refusal), refusal=refusal)


def embed(store: DocumentStore, embedder: Embedder) -> Callable[[IngestResult], Coroutine[Any, Any, IngestResult]]:
    """Give a file its vectors. Without them it stays searchable by words."""

    async def embedded(result: IngestResult) -> IngestResult:
        if result.document is not None:
            name = result.job.candidate.collection.name
            try:
                await embed_document(store, embedder, name, result.document.doc_id)
            except StoreUnavailable as error:
                log.warning("evidence: %s: keyword search only: %s", name, error)
        return result

    return embedded


MILLISECOND = 0.001
"""`Origin.uploaded_at` is rounded down to it."""


@dataclass(frozen=True, slots=True)
class CloseThread:
    """Close the case of a thread, that is delete its files, now or later; or cancel a planned closing.

    Attributes:
        in_seconds: 0: at once; None: cancel the planned closing.
        guild_id: close it only if its collection belongs to this guild.
        may_reopen: whether the thread still exists, so that people may miss the files.
    """

    case_id: int
    in_seconds: float | None = 0.0
    guild_id: int | None = None
    may_reopen: bool = False

    def cancel_reads(self, cases: ThreadFiles) -> None:
        if self.guild_id is None:
            cases.close(self.case_id)


@dataclass(frozen=True, slots=True)
class DropFiles:
    """Delete the files of deleted messages, or of edited ones but for the attachments that are `kept`."""

    case_id: int
    message_ids: frozenset[int]
    kept: frozenset[int] = frozenset()

    def cancel_reads(self, cases: ThreadFiles) -> None:
        cases.cancel_reads(lambda candidate: candidate.case_id == self.case_id and self.covers(candidate))

    def covers(self, file: Origin | Candidate) -> bool:
        """Return True if the file came with one of these messages and is not among the attachments that are kept."""
        attachment_id = file.attachment.id if isinstance(file, Candidate) else file.attachment_id
        return file.message_id in self.message_ids and attachment_id not in self.kept


Deletion = CloseThread | DropFiles


def discard(
    store: DocumentStore, cases: ThreadFiles, forget_answers: Callable[[str], object]
) -> Callable[[Deletion], Coroutine[Any, Any, None]]:
    """Delete a thread's collection, or single documents of it, and the cached answers from them.

    A store that cannot be written is logged: the sweep tries again.
    """

    async def discarded(item: Deletion) -> None:
        name = protocol.case_collection(str(item.case_id))
        try:
            await (close(item, name) if isinstance(item, CloseThread) else drop(item, name))
        except (StoreUnavailable, OSError) as error:
            cases.note_collection(item.case_id)
            log.error("evidence: thread %d: not deleted: %s", item.case_id, error)  # noqa: TRY400 (a line for the operator)
        forget_answers(name)

    async def close(closing: CloseThread, name: str) -> None:
        described = await store.describe(name)
        if closing.guild_id is not None:
            if described is None or described.collection.guild_id != closing.guild_id:
                return
            cases.close(closing.case_id)
        if described is not None and closing.may_reopen and any(doc.state.searchable for doc in described.documents):
            posted_at = last_upload_time(described.documents, cases.unread(closing.case_id))
            await cases.tombstones.close(closing.case_id, posted_at)
        if await store.delete_collection(name):
            log.info("evidence: thread %d is closed: its files are deleted", closing.case_id)

    async def drop(dropping: DropFiles, name: str) -> None:
        await cases.tombstones.forget_messages(dropping.message_ids if not dropping.kept else ())
        described = await store.describe(name)
        for doc in () if described is None else described.documents:
            if any(map(dropping.covers, doc.origins)):
                await store.withdraw(name, doc.doc_id, dropping.covers)

    return discarded


def last_upload_time(documents: Iterable[Document], unread: Iterable[Candidate]) -> float:
    """Return when the last of these files was posted, by Discord's clock: ours may be set back, or have been ahead."""
    uploaded = (origin.uploaded_at for doc in documents for origin in doc.origins)
    read = (from_rfc3339(at) + MILLISECOND for at in uploaded if at)
    return max([*read, *(candidate.at for candidate in unread)], default=now())


@dataclass(frozen=True, slots=True, kw_only=True)
class Threads:
    """Look-ups about threads on Discord. Each raises LookupFailed if its answer would be incomplete.

    Attributes:
        left: whether the bot has left a server.
        active: the threads of a server that are not archived.
        find: a thread; None: it is gone.
    """

    left: Callable[[int], bool]
    active: Callable[[int], Awaitable[Collection[int]]]
    find: Callable[[int], Awaitable[Place | None]]


def sweep(
    store: DocumentStore,
    threads: Threads,
    discard: Callable[[int], Awaitable[None]],
    *,
    solved_tags: frozenset[str],
    grace_seconds: float,
    unopened_seconds: float,
) -> Callable[[object], Coroutine[Any, Any, int]]:
    """Delete the files of threads that are gone, closed, or archived for longer than the grace; count these threads.

    `unopened_seconds`: for so long after the question there may be no thread yet, as its answer waits for approval.
    Files go only if the previous sweep found the thread over too. If Discord does not answer about a server or a
    single thread, nothing at all is deleted.
    """
    suspects: set[int] = set()

    async def swept(_: object) -> int:
        nonlocal suspects
        try:
            over = await threads_over()
        except (LookupFailed, StoreUnavailable) as error:
            log.warning("evidence: nothing is swept: %s", error)
            return 0
        again = sorted(over & suspects)
        for case_id in again:
            await discard(case_id)
        suspects = over - set(again)
        gone = number_of(len(again), "thread")
        log.info("evidence: swept: %s deleted, %d seen for the first time", gone, len(suspects))
        return len(again)

    async def threads_over() -> set[int]:
        cases = await threads_with_files()
        guilds = {guild_id for guild_id in cases.values() if guild_id is not None}
        left: set[int | None] = {guild_id for guild_id in sorted(guilds) if threads.left(guild_id)}
        active: set[int] = set()
        for guild_id in sorted(guilds - left):
            active.update(await threads.active(guild_id))
        return {
            case_id
            for case_id, guild_id in sorted(cases.items())
            if case_id not in active
            # Discord does not say anything about threads of a server that the bot has left.
            and (guild_id in left or is_over(case_id, await threads.find(case_id)))
        }

    async def threads_with_files() -> dict[int, int | None]:
        """Return the threads that have files, with their servers."""
        described = [await store.describe(name) for name in await store.list_collections(protocol.CASE_PREFIX)]
        found = [each.collection for each in described if each is not None]
        return {int(each.name.removeprefix(protocol.CASE_PREFIX)): each.guild_id for each in found}

    def is_over(case_id: int, place: Place | None) -> bool:
        if place is None:
            return snowflake_time(case_id) + unopened_seconds <= now()
        if is_closed(place, solved_tags):
            return True
        return place.archived and place.archived_at is not None and place.archived_at + grace_seconds <= now()

    return swept


def withdraw_missing(
    store: DocumentStore,
    find: Callable[[int, int], Awaitable[Message | None]],
    drop: Callable[[DropFiles], Awaitable[None]],
) -> Callable[[], Coroutine[Any, Any, None]]:
    """Delete the files whose message was deleted, or lost the attachment, while the bot was away.

    `find` gives a message by its place and its id. If that raises LookupFailed, the files of the thread stay.
    """

    async def withdrawn() -> None:
        try:
            for name in await store.list_collections(protocol.CASE_PREFIX):
                await withdrawn_of(name, int(name.removeprefix(protocol.CASE_PREFIX)))
        except StoreUnavailable as error:
            log.warning("evidence: files of deleted messages are not looked for: %s", error)

    async def withdrawn_of(name: str, case_id: int) -> None:
        described = await store.describe(name)
        origins = [] if described is None else [each for doc in described.documents for each in doc.origins]
        for message_id in sorted({each.message_id for each in origins if each.message_id is not None}):
            mine = [each for each in origins if each.message_id == message_id]
            try:
                message = await find(int(mine[0].extra.get(PLACE_ID, case_id)), message_id)
            except LookupFailed as error:
                log.info("evidence: thread %d: whether its messages are there is unknown: %s", case_id, error)
                return
            # A code block that counts as a file has its message's id as attachment id.
            kept = frozenset[int]() if message is None else {message_id, *(each.id for each in message.attachments)}
            lost = DropFiles(case_id, frozenset({message_id}), frozenset(kept))
            if any(map(lost.covers, mine)):
                await drop(lost)

    return withdrawn
