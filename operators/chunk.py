"""A file, from the message that brings it until it can be searched by words."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from services.discord import AttachmentFailed, Attachments
from services.documents import (
    DocumentRedactors,
    FileLimits,
    FileRefused,
    IngestJob,
    check_file,
    prepare,
    shown,
)
from services.documents.store import Document, DocumentStore, NewDocument, State, StoreUnavailable
from services.storage import in_thread

T = TypeVar("T")

NOT_DOWNLOADED = "could not be downloaded from Discord. Post it again."
NOT_STORED = "could not be kept just now. Post it again in a few minutes."
NOT_READ = "could not be read, through a fault of the bot. Its people will see it in the log."

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestResult:
    """What became of a file.

    Attributes:
        document: None: there is nothing to search, since it failed or was called off.
        failure: why it cannot be read and what to do, in one line for people.
        is_new: whether people have not been told of it.
    """

    job: IngestJob
    document: Document | None = None
    failure: str = ""
    is_new: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """Where files come from, how many and how large, and where they go."""

    store: DocumentStore
    attachments: Attachments
    limits: FileLimits = field(default_factory=FileLimits)
    redactors: DocumentRedactors = field(default_factory=DocumentRedactors)


def chunk(intake: Intake) -> Callable[[IngestJob], Coroutine[Any, Any, IngestResult]]:
    """Check a file, download it, take it apart and make it searchable by words.

    A file that cannot be read is kept as failed, with the reason. Nothing is written once its thread is closed.
    """
    store = intake.store

    async def ingested(job: IngestJob) -> IngestResult:
        candidate = job.candidate
        try:
            described = await store.describe(candidate.collection.name)
            documents = () if described is None else described.documents
            known = next((doc for doc in documents if candidate.is_in(doc)), None)
            if known is not None and known.state is not State.PENDING:
                document = known if known.state.searchable else None
                return IngestResult(job=job, document=document, failure=known.error, is_new=False)
            return await read(job, [doc for doc in documents if doc is not known and doc.state is not State.FAILED])
        except StoreUnavailable as error:
            log.error("evidence: %s", error)  # noqa: TRY400 (one line for the operator)
            return IngestResult(job=job, failure=f"{shown(candidate.filename)} {NOT_STORED}")

    async def read(job: IngestJob, others: Sequence[Document]) -> IngestResult:
        candidate = job.candidate
        collection, origin, size = candidate.collection, candidate.origin, candidate.attachment.size
        # Finished even when called off: it may make the collection, and deleting that waits for it.
        expected = await to_its_end(store.expect(collection, origin))
        try:
            alone = partial(check_file, candidate.filename, limits=intake.limits)
            beside = partial(alone, files=len(others), total_bytes=sum(doc.size for doc in others))
            # The same file again takes no room.
            again = [doc for doc in others if (doc.filename, doc.size) == (candidate.filename, size)]
            (alone if again else beside)(size)
            if candidate.text is None:
                data = await intake.attachments.content(candidate.attachment, intake.limits.max_file_bytes)
            else:
                data = candidate.text.encode()
            digest = hashlib.sha256(data).hexdigest()
            # It may be larger than was announced.
            (alone if any(doc.sha256 == digest for doc in again) else beside)(len(data))
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
            # As above: deleting the file waits for what is being written of it.
            stored = await to_its_end(store.add(collection, [NewDocument(origin, prepared)], create=False))
            return IngestResult(job=job, document=stored[0] if stored else None, is_new=bool(stored))
        await store.fail(collection.name, expected.doc_id, failure)
        return IngestResult(job=job, failure=failure)

    return ingested


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Await `work`; when cancelled, wait for it all the same."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
