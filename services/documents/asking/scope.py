"""What is asked: one collection, and the documents of it that may answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.documents.asking.plan import Plan
from services.documents.store.protocol import Document, DocumentStore, StoredLine
from services.documents.units import DocumentKind

RECORDS = {DocumentKind.LOG, DocumentKind.ERROR_REPORT}

MOST_NAMED = 3
"""Of more files only the number is told."""


@dataclass(frozen=True, slots=True)
class Scope:
    store: DocumentStore
    name: str
    documents: tuple[Document, ...]
    """Current and searchable."""

    def document(self, doc_id: str) -> Document:
        return next(doc for doc in self.documents if doc.doc_id == doc_id)

    @property
    def logs(self) -> tuple[Document, ...]:
        return logs_of(self.documents)


def chosen(plan: Plan, scope: Scope) -> tuple[Document, ...]:
    """The documents that the question names; all of them where it names none."""
    return tuple(doc for doc in scope.documents if doc.doc_id in plan.doc_ids) or scope.documents


def logs_of(documents: Sequence[Document]) -> tuple[Document, ...]:
    return tuple(doc for doc in documents if doc.kind in RECORDS)


def ids_of(documents: Sequence[Document]) -> tuple[str, ...]:
    return tuple(doc.doc_id for doc in documents)


def stamp_of(line: StoredLine) -> str | None:
    """The time of a line as people compare it: normalised where that was possible, else as written."""
    return line.ts_utc or line.ts


def listed(names: Sequence[str]) -> str:
    return ", ".join(names)


def files_listed(documents: Sequence[Document]) -> str:
    """By name while they are few."""
    if len(documents) > MOST_NAMED:
        return f"{len(documents)} files"
    return listed([doc.filename for doc in documents])
