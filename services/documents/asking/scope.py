"""Which documents a question is asked of."""

from __future__ import annotations

from dataclasses import dataclass

from services.documents.asking.plan import Plan
from services.documents.store.protocol import Document, DocumentStore
from services.documents.units import DocumentKind

RECORDS = {DocumentKind.LOG, DocumentKind.ERROR_REPORT}


@dataclass(frozen=True, slots=True)
class Scope:
    """What is asked: one collection, and the documents of it that may answer."""

    store: DocumentStore
    name: str
    documents: tuple[Document, ...]
    """Current and searchable, those the question names first."""

    def document(self, doc_id: str) -> Document:
        return next(doc for doc in self.documents if doc.doc_id == doc_id)

    @property
    def logs(self) -> tuple[Document, ...]:
        return tuple(doc for doc in self.documents if doc.kind in RECORDS)


def chosen(plan: Plan, scope: Scope) -> tuple[Document, ...]:
    """The documents that the question names; all of them where it names none."""
    return tuple(doc for doc in scope.documents if doc.doc_id in plan.doc_ids) or scope.documents
