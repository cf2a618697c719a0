"""Turns a file from outside into a document that a store can take in; the work is done in another process.

What comes back is rows, for SQLite: two objects for each line of a log would keep every thread of this process standing
for half a second while they are unpickled, and again when the garbage collector looks at them.
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
    """`data` as a document: `prepare` and `rows_of`, done by `run`; what `prepared` says of text is in `rows` only.

    Raises:
        FileRefused: the file is too large, of a kind that is not taken, or not text.
        WorkStopped: it takes too long or too much memory.
    """
    return await run(_read, origin, data, limits, title, redactors)


def _read(
    origin: Origin, data: bytes, limits: FileLimits, title: str | None, redactors: DocumentRedactors
) -> NewDocument:
    prepared = prepare(origin.filename, data, limits=limits, title=title, redactors=redactors)
    return NewDocument(origin, replace(prepared, text="", chunks=(), lines=()), rows=rows_of(origin, prepared))
