"""Turns the bytes of a file into a document for a store, in another process.

The result is rows for SQLite: two objects for each line of a log would block every thread of this process for half a
second while they are unpickled, and again during garbage collection.
"""

from __future__ import annotations

from dataclasses import replace

from clock import Run
from services.documents.limits import FileLimits
from services.documents.reading import DocumentRedactors, prepare
from services.documents.store.protocol import NewDocument, Origin
from services.documents.store.schema import rows_of


async def ingested(
    run: Run,
    origin: Origin,
    data: bytes,
    *,
    limits: FileLimits,
    title: str | None = None,
    redactors: DocumentRedactors,
) -> NewDocument:
    """Read `data` into a document: `prepare` and `rows_of`, executed by `run`. The text is in `rows` only; `prepared`
    has neither text nor chunks.

    Raises:
        FileRefused: the file is too large, of a kind that is not accepted, or not text.
        WorkStopped: reading takes too long or too much memory.
    """
    return await run(_read, origin, data, limits, title, redactors)


def _read(
    origin: Origin, data: bytes, limits: FileLimits, title: str | None, redactors: DocumentRedactors
) -> NewDocument:
    prepared = prepare(origin.filename, data, limits=limits, title=title, redactors=redactors)
    return NewDocument(origin, replace(prepared, text="", chunks=(), lines=()), rows=rows_of(origin, prepared))
