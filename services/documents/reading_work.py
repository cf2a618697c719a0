"""The work on a file in a process of its own (`clock.worker`), which imports this module and what it needs.

The result is rows for SQLite: two objects for each line of a log would block every thread of the bot's process for half
a second while they are unpickled, and again during garbage collection.
"""

from __future__ import annotations

from dataclasses import replace

from services.documents.limits import FileLimits
from services.documents.reading import DocumentRedactors, prepare
from services.documents.store.protocol import NewDocument, Origin
from services.documents.store.schema import rows_of


def prepare_document(
    origin: Origin, data: bytes, limits: FileLimits, title: str | None, redactors: DocumentRedactors
) -> NewDocument:
    """Read `data` into a document with its rows and without its text. Raises FileRefused: as `prepare`."""
    prepared = prepare(origin.filename, data, limits=limits, title=title, redactors=redactors)
    return NewDocument(origin, replace(prepared, text="", chunks=(), lines=()), rows=rows_of(origin, prepared))
