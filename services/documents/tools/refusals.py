"""What is said where there is no answer: each situation in words of its own (DOCUMENT_QA 8.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.documents.asking.passages import MOST_NAMED, Retrieved
from services.documents.results import QAResult, Status
from services.documents.store.protocol import CollectionSummary, Document, State
from services.documents.tools.config import KBConfig
from services.documents.unreadable import unreadable
from services.telemetry import number_of

MAX_QUESTION_CHARS = 1000


@dataclass(frozen=True, slots=True)
class Refusals:
    """Those of one library."""

    config: KBConfig

    def nothing(self, status: Status) -> QAResult:
        return QAResult(self.config.no_result_message(status), status)

    def invalid(self, question: str, scope_id: str | None, filters: Mapping[str, str] | None) -> str:
        """What is wrong with the call; empty where nothing is."""
        if self.config.requires_scope_id and not scope_id:
            return self.config.no_result_message(Status.INVALID)
        try:
            self.config.get_collection_name(scope_id)
        except ValueError:
            return self.config.no_result_message(Status.INVALID)
        if not question.strip():
            return "The question is empty."
        if len(question) > MAX_QUESTION_CHARS:
            return f"The question has {len(question)} characters; {MAX_QUESTION_CHARS} is the most."
        unknown = sorted(set(filters or ()) - self.config.filterable_fields)
        return f"There is no filter {', '.join(unknown)} here." if unknown else ""

    def unready(self, described: CollectionSummary | None) -> QAResult | None:
        """Nothing to search: never posted, still on its way, or unreadable, each said as it is."""
        if described is None or not described.documents:
            return self.nothing(Status.NOT_INDEXED)
        if any(doc.state.searchable for doc in described.documents):
            return None
        pending = [doc for doc in described.documents if doc.state is State.PENDING]
        if pending:
            return self.indexing(described, pending, searched=False)
        reasons = [f"{unreadable(doc)}." for doc in described.documents]
        return QAResult("\n".join(reasons), Status.NOT_INDEXED)

    def indexing(self, described: CollectionSummary, pending: Sequence[Document], *, searched: bool) -> QAResult:
        text = f"{len(pending)} of {number_of(len(described.documents), 'file')} being indexed; ask again in a moment."
        if searched:
            text += " Nothing was found in the others so far."
        return QAResult(text, Status.INDEXING)

    def not_found(self, documents: Sequence[Document], found: Retrieved, asked: str) -> QAResult:
        """`asked`: the question in its own words, whatever was looked for."""
        names = found.searched or tuple(doc.filename for doc in documents)
        listed = f" ({', '.join(names)})" if len(names) <= MOST_NAMED else ""
        what = f"{number_of(len(names), 'file')}{listed}"
        text = f'Searched {what} for "{asked}": {found.missing or "no entry matched"}.'
        text += "".join(f" Note: {note}." for note in found.notes if note not in found.missing)
        if found.count is None:
            return QAResult(text, Status.NOT_FOUND)
        counted = f"{number_of(found.count, 'entry', 'entries')}, computed over the whole file"
        return QAResult(f"{text} That makes {counted}.", Status.NOT_FOUND, plan={"count": found.count})
