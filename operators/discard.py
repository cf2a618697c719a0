"""Files that are to be deleted: with their thread, or with the message that brought them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from clock import now
from services.documents import Candidate, Cases
from services.documents.store import DocumentStore, Origin, StoreUnavailable, naming

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Closing:
    """A thread's case is closed, or will be.

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
class Dropping:
    """Messages were deleted, or some of their attachments; `kept`: attachments that are still there."""

    case_id: int
    message_ids: frozenset[int]
    kept: frozenset[int] = frozenset()

    def call_off(self, cases: Cases) -> None:
        cases.take_back(lambda candidate: candidate.case_id == self.case_id and self.brought(candidate))

    def brought(self, file: Origin | Candidate) -> bool:
        """Whether a file came with what is gone."""
        attachment_id = file.attachment.id if isinstance(file, Candidate) else file.attachment_id
        return file.message_id in self.message_ids and attachment_id not in self.kept


Discarding = Closing | Dropping


def discard(
    store: DocumentStore, cases: Cases, forget_answers: Callable[[str], object]
) -> Callable[[Discarding], Coroutine[Any, Any, None]]:
    """Delete a thread's collection, or single documents of it, and the answers that were given from them.

    A store that cannot be written is logged: the sweep tries again.
    """

    async def discarded(item: Discarding) -> None:
        name = naming.case(str(item.case_id))
        try:
            await (close(item, name) if isinstance(item, Closing) else drop(item, name))
        except (StoreUnavailable, OSError) as error:
            cases.know(item.case_id)
            log.error("evidence: thread %d: not deleted: %s", item.case_id, error)  # noqa: TRY400 (a line for the operator)
        forget_answers(name)

    async def close(closing: Closing, name: str) -> None:
        described = await store.describe(name)
        if closing.guild_id is not None:
            if described is None or described.collection.guild_id != closing.guild_id:
                return
            cases.close(closing.case_id)
        if described is not None and closing.may_reopen and any(doc.state.searchable for doc in described.documents):
            await cases.gone.close(closing.case_id, now())
        if await store.delete_collection(name):
            log.info("evidence: thread %d is closed: its files are deleted", closing.case_id)

    async def drop(dropping: Dropping, name: str) -> None:
        await cases.gone.forget_messages(dropping.message_ids if not dropping.kept else ())
        described = await store.describe(name)
        for doc in () if described is None else described.documents:
            if any(map(dropping.brought, doc.origins)):
                await store.withdraw(name, doc.doc_id, dropping.brought)

    return discarded
