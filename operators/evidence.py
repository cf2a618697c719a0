"""The files of a thread: read, and made searchable."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from clock import Run, WorkStopped
from services.discord import AttachmentFailed, Attachments
from services.documents import (
    DocumentRedactors,
    FileLimits,
    FileRefused,
    IngestJob,
    check_file,
    fill,
    ingested,
    shown,
)
from services.documents.store import Document, DocumentStore, State, StoreUnavailable
from services.search.embedding import Embedder

T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestResult:
    """The result of reading one file.

    Attributes:
        document: None: there is nothing to search, since it failed or was called off.
        failure: why it cannot be read and what to do, in one line of English.
        refusal: the same, for people in their language; None where they have been told.
        is_new: whether people have not been told of it.
    """

    job: IngestJob
    document: Document | None = None
    failure: str = ""
    refusal: FileRefused | None = None
    is_new: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """What reading files needs: the source of their bytes, limits, the process that parses them, redactors, and the
    store.
    """

    store: DocumentStore
    attachments: Attachments
    run: Run
    limits: FileLimits = field(default_factory=FileLimits)
    redactors: DocumentRedactors = field(default_factory=DocumentRedactors)


def chunk(intake: Intake) -> Callable[[IngestJob], Coroutine[Any, Any, IngestResult]]:
    """Check a file, download it, take it apart and make it searchable by words.

    A file that cannot be read is kept as failed, with the reason. Nothing is written once its thread is closed.
    """
    store = intake.store

    async def taken_in(job: IngestJob) -> IngestResult:
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
            return _refused(job, FileRefused("not_stored", name=shown(candidate.filename)))

    async def read(job: IngestJob, others: Sequence[Document]) -> IngestResult:
        candidate = job.candidate
        collection, origin, size = candidate.collection, candidate.origin, candidate.attachment.size
        # Finished even when called off: it may make the collection, and deleting that waits for it.
        expected = await finish_even_if_cancelled(store.expect(collection, origin))
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
            limits, redactors = intake.limits, intake.redactors
            document = await ingested(intake.run, origin, data, limits=limits, redactors=redactors)
        except FileRefused as refused:
            refusal = refused
        except AttachmentFailed as error:
            log.warning("evidence: %s", error)
            refusal = FileRefused("download_failed", name=shown(candidate.filename))
        except WorkStopped as stopped:
            log.warning("evidence: attachment %d cannot be read: %s", candidate.attachment.id, stopped)
            refusal = FileRefused("too_hard", name=shown(candidate.filename))
        except StoreUnavailable:
            raise
        except Exception:
            log.exception("evidence: attachment %d cannot be read", candidate.attachment.id)
            refusal = FileRefused("fault", name=shown(candidate.filename))
        else:
            # As above: deleting the file waits for what is being written of it.
            stored = await finish_even_if_cancelled(store.add(collection, [document], create=False))
            return IngestResult(job=job, document=stored[0] if stored else None, is_new=bool(stored))
        await store.fail(collection.name, expected.doc_id, str(refusal))
        return _refused(job, refusal)

    return taken_in


def _refused(job: IngestJob, refusal: FileRefused) -> IngestResult:
    return IngestResult(job=job, failure=str(refusal), refusal=refusal)


async def finish_even_if_cancelled(work: Coroutine[Any, Any, T]) -> T:
    """Await `work`; if cancelled meanwhile, wait for its end first and then raise CancelledError."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


def embed(store: DocumentStore, embedder: Embedder) -> Callable[[IngestResult], Coroutine[Any, Any, IngestResult]]:
    """Give a file its vectors. Without them it stays searchable by words."""

    async def embedded(result: IngestResult) -> IngestResult:
        if result.document is not None:
            name = result.job.candidate.collection.name
            try:
                await fill(store, embedder, name, result.document.doc_id)
            except StoreUnavailable as error:
                log.warning("evidence: %s: keyword search only: %s", name, error)
        return result

    return embedded
