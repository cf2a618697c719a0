"""A file, from its offer until it can be searched by words."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from clock import rfc3339
from services.discord import AttachmentFailed, Attachments
from services.documents import (
    Candidate,
    DocumentRedactors,
    FileLimits,
    FileRefused,
    IngestJob,
    check_offer,
    prepare,
    shown,
)
from services.documents.store import (
    Collection,
    Document,
    DocumentStore,
    NewDocument,
    Origin,
    State,
    StoreUnavailable,
    naming,
)
from services.storage import in_thread

T = TypeVar("T")

NOT_DOWNLOADED = "could not be downloaded from Discord. Post it again."
NOT_STORED = "could not be kept just now. Post it again in a few minutes."
NOT_READ = "could not be read, through a fault of the bot. Its people will see it in the log."
PLACE_ID = "place_id"
"""Metadata of a document: where its message stands."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IngestResult:
    """What became of a file."""

    filing: IngestJob
    document: Document | None = None
    """None: there is nothing to search: it failed, or was called off."""
    failure: str = ""
    """Why it cannot be read and what to do, in one line for people."""
    is_new: bool = True
    """Whether there is anything to tell about it."""


@dataclass(frozen=True, slots=True)
class Intake:
    """Where files come from, how many and how large, and where they go."""

    store: DocumentStore
    attachments: Attachments
    limits: FileLimits = field(default_factory=FileLimits)
    redactors: DocumentRedactors = field(default_factory=DocumentRedactors)


def chunk(intake: Intake) -> Callable[[IngestJob], Coroutine[Any, Any, IngestResult]]:
    """Check a file, download it, take it apart and make it searchable by words.

    A file that cannot be taken in is kept as failed, with its reason. What a closed thread's collection has lost
    meanwhile is not written again.
    """
    store = intake.store

    async def filed(filing: IngestJob) -> IngestResult:
        candidate = filing.candidate
        try:
            documents = await _held(store, candidate)
            known = next((doc for doc in documents if is_of(doc, candidate)), None)
            if known is not None and known.state is not State.PENDING:
                return IngestResult(filing, known if known.state.searchable else None, known.error, is_new=False)
            others = [doc for doc in documents if doc is not known and doc.state is not State.FAILED]
            return await taken(filing, others)
        except StoreUnavailable as error:
            log.error("evidence: %s", error)  # noqa: TRY400 (one line for the operator)
            return IngestResult(filing, failure=f"{shown(candidate.filename)} {NOT_STORED}")

    async def taken(filing: IngestJob, others: Sequence[Document]) -> IngestResult:
        candidate = filing.candidate
        collection, origin = collection_of(candidate), origin_of(candidate)
        # To its end even when it is called off: it may make the collection, and who deletes that waits for it.
        expected = await to_its_end(store.expect(collection, origin))
        try:
            alone = partial(check_offer, candidate.filename, limits=intake.limits)
            check = partial(alone, files=len(others), total_bytes=sum(doc.size for doc in others))
            # The same file again takes no room.
            again = [
                doc for doc in others if (doc.filename, doc.size) == (candidate.filename, candidate.attachment.size)
            ]
            (alone if again else check)(candidate.attachment.size)
            data = await content(candidate)
            digest = hashlib.sha256(data).hexdigest()
            # It may be larger than was announced.
            (alone if any(doc.sha256 == digest for doc in again) else check)(len(data))
            work = partial(prepare, candidate.filename, data, limits=intake.limits, redactors=intake.redactors)
            prepared = await in_thread(work)
        except FileRefused as refused:
            failure = str(refused)
        except AttachmentFailed as error:
            log.warning("evidence: %s", error)
            failure = f"{shown(candidate.filename)} {NOT_DOWNLOADED}"
        except StoreUnavailable:
            raise
        except Exception:
            log.exception("evidence: attachment %d cannot be read", candidate.attachment.id)
            failure = f"{shown(candidate.filename)} {NOT_READ}"
        else:
            # As above: who deletes the file waits for what is being written of it.
            stored = await to_its_end(store.add(collection, [NewDocument(origin, prepared)], create=False))
            return IngestResult(filing, stored[0] if stored else None, is_new=bool(stored))
        await store.fail(collection.name, expected.doc_id, failure)
        return IngestResult(filing, failure=failure)

    async def content(candidate: Candidate) -> bytes:
        if candidate.text is not None:
            return candidate.text.encode()
        return await intake.attachments.content(candidate.attachment, intake.limits.max_file_bytes)

    return filed


def collection_of(candidate: Candidate) -> Collection:
    case_id = str(candidate.case_id)
    return Collection(naming.case(case_id), "case", case_id, candidate.guild_id)


def origin_of(candidate: Candidate) -> Origin:
    return Origin(
        candidate.filename,
        uploader_id=candidate.uploader_id,
        message_id=candidate.message_id,
        attachment_id=candidate.attachment.id,
        uploaded_at=rfc3339(candidate.at),
        extra={PLACE_ID: str(candidate.place_id)},
    )


def is_of(doc: Document, candidate: Candidate) -> bool:
    return doc.filename == candidate.filename and doc.came_as(candidate.attachment.id)


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Await `work`; cancelled, wait for it all the same."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


async def _held(store: DocumentStore, candidate: Candidate) -> Sequence[Document]:
    described = await store.describe(naming.case(str(candidate.case_id)))
    return () if described is None else described.documents
