"""The files of a thread: deleted, with the messages that brought them or when the thread is over."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any

from clock import from_rfc3339, now
from model.messages import Place
from services.discord import LookupFailed
from services.documents import Candidate, Cases, is_closed
from services.documents.store import Document, DocumentStore, Origin, StoreUnavailable, naming
from services.telemetry import number_of

log = logging.getLogger(__name__)

MILLISECOND = 0.001
"""What the time of a file's origin may be short of."""


@dataclass(frozen=True, slots=True)
class CloseThread:
    """Close the case of a thread, that is delete its files, now or later; or call such a plan off.

    Attributes:
        in_seconds: 0: at once; None: not after all.
        guild_id: close it only if its collection belongs to this guild.
        may_reopen: whether the thread is still there, so that people may miss the files.
    """

    case_id: int
    in_seconds: float | None = 0.0
    guild_id: int | None = None
    may_reopen: bool = False

    def call_off(self, cases: Cases) -> None:
        if self.guild_id is None:
            cases.close(self.case_id)


@dataclass(frozen=True, slots=True)
class DropFiles:
    """Delete the files of deleted messages, or of edited messages that lost attachments. `kept`: attachments that are
    still there.
    """

    case_id: int
    message_ids: frozenset[int]
    kept: frozenset[int] = frozenset()

    def call_off(self, cases: Cases) -> None:
        cases.take_back(lambda candidate: candidate.case_id == self.case_id and self.brought(candidate))

    def brought(self, file: Origin | Candidate) -> bool:
        """True if the file came with one of these messages and is not among the attachments that are kept."""
        attachment_id = file.attachment.id if isinstance(file, Candidate) else file.attachment_id
        return file.message_id in self.message_ids and attachment_id not in self.kept


Deletion = CloseThread | DropFiles


def discard(
    store: DocumentStore, cases: Cases, forget_answers: Callable[[str], object]
) -> Callable[[Deletion], Coroutine[Any, Any, None]]:
    """Delete a thread's collection, or single documents of it, and the answers that were given from them.

    A store that cannot be written is logged: the sweep tries again.
    """

    async def discarded(item: Deletion) -> None:
        name = naming.case(str(item.case_id))
        try:
            await (close(item, name) if isinstance(item, CloseThread) else drop(item, name))
        except (StoreUnavailable, OSError) as error:
            cases.know(item.case_id)
            log.error("evidence: thread %d: not deleted: %s", item.case_id, error)  # noqa: TRY400 (a line for the operator)
        forget_answers(name)

    async def close(closing: CloseThread, name: str) -> None:
        described = await store.describe(name)
        if closing.guild_id is not None:
            if described is None or described.collection.guild_id != closing.guild_id:
                return
            cases.close(closing.case_id)
        if described is not None and closing.may_reopen and any(doc.state.searchable for doc in described.documents):
            await cases.gone.close(closing.case_id, newest(described.documents, cases.unread(closing.case_id)))
        if await store.delete_collection(name):
            log.info("evidence: thread %d is closed: its files are deleted", closing.case_id)

    async def drop(dropping: DropFiles, name: str) -> None:
        await cases.gone.forget_messages(dropping.message_ids if not dropping.kept else ())
        described = await store.describe(name)
        for doc in () if described is None else described.documents:
            if any(map(dropping.brought, doc.origins)):
                await store.withdraw(name, doc.doc_id, dropping.brought)

    return discarded


def newest(documents: Iterable[Document], unread: Iterable[Candidate]) -> float:
    """When the last of these files was posted, by Discord's clock: ours may be set back, or have been ahead."""
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
) -> Callable[[object], Coroutine[Any, Any, int]]:
    """Delete the files of threads that are gone, closed, or archived for longer than the grace; gives their number
    (DOCUMENT_QA 8.3).

    A thread is deleted only if the sweep before found it over as well. If anything cannot be asked about, the threads
    of a server or a single one, nothing at all is deleted.
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
            and (guild_id in left or is_over(await threads.find(case_id)))
        }

    async def threads_with_files() -> dict[int, int | None]:
        """With their servers."""
        described = [await store.describe(name) for name in await store.list_collections(naming.CASE_PREFIX)]
        found = [each.collection for each in described if each is not None]
        return {int(each.name.removeprefix(naming.CASE_PREFIX)): each.guild_id for each in found}

    def is_over(place: Place | None) -> bool:
        if place is None or is_closed(place, solved_tags):
            return True
        return place.archived and place.archived_at is not None and place.archived_at + grace_seconds <= now()

    return swept
