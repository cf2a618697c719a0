"""What one library of documents is, told to the one core that serves them all (DOCUMENT_QA 2.3)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from services.documents.results import Status
from services.documents.store.protocol import SearchMode, Weights

Metadata = Mapping[str, str]


class KBConfig(ABC):
    """A library: where it lies, how its passages and answers look, and how long answers keep."""

    search_mode: SearchMode = SearchMode.HYBRID
    exact_paths: bool = False
    """Whether lines, times and levels are looked up instead of ranked."""
    spread: bool = True
    """Whether no document may give more than two passages before others had their turn."""
    relevance_threshold: float | None = None
    """The least cosine of the best passage. For one embedder only; see `benchmarks/documents`."""
    keyword_threshold: float | None = None
    """The same where only words are compared: the share of the question's words that the best passage holds."""
    answer_char_allowance: int | None = None
    max_answer_tokens: int = 1200
    filterable_fields: frozenset[str] = frozenset({"internal"})
    weights: Weights = Weights()

    @property
    @abstractmethod
    def requires_scope_id(self) -> bool: ...

    @property
    @abstractmethod
    def cache_ttl(self) -> int:
        """In seconds."""

    @property
    @abstractmethod
    def system_prompt(self) -> str: ...

    @abstractmethod
    def get_collection_name(self, scope_id: str | None) -> str:
        """Raises:
        ValueError: a scope is needed, and `scope_id` is none.
        """

    @abstractmethod
    def format_chunk_metadata(self, metadata: Metadata, score: float | None) -> str:
        """What stands in a passage's header: parts without a value are left out."""

    @abstractmethod
    def extract_source_name(self, metadata: Metadata) -> str: ...

    @abstractmethod
    def get_citation_format(self) -> str:
        """What the model is shown as an example of a citation."""

    @abstractmethod
    def format_response(self, answer: str, sources: Sequence[str], chunk_count: int, confidence: float) -> str: ...

    def is_internal(self, metadata: Metadata) -> bool:
        """Whether a document is shown to the team only."""
        return metadata.get("internal") == "true"

    def cite(self, metadata: Metadata) -> str:
        """A passage, cited in a sentence, where no model writes it."""
        return self.extract_source_name(metadata)

    def no_result_message(self, reason: Status) -> str:
        """What is said when there is no answer, for each reason another; without the details that the core adds."""
        return NO_RESULT[reason]


NO_RESULT: Mapping[Status, str] = {
    Status.NOT_INDEXED: "Nothing has been stored here yet.",
    Status.INDEXING: "The documents are still being indexed; ask again in a moment.",
    Status.NOT_FOUND: "No entry was found.",
    Status.REFUSED_IRRELEVANT: "The search returned nothing close enough to this question; another tool may know.",
    Status.DENIED: "This is not available here.",
    Status.RETRIEVAL_ERROR: "The search is temporarily unavailable; try again later.",
    Status.SYNTHESIS_ERROR: "The passages could not be condensed; the best of them follow as they are.",
    Status.INVALID: "This tool cannot be used here.",
    Status.OK: "",
}


def parts(*named: tuple[str, str | None]) -> str:
    """`Score: 0.94, Source: app.log`, without what has no value."""
    return ", ".join(f"{name}: {value}" for name, value in named if value)


def score_part(score: float | None) -> tuple[str, str | None]:
    return "Score", None if score is None else f"{score:.2f}"


def footer(opening: str, sources: Sequence[str], chunk_count: int, confidence: float, most: int) -> str:
    """`📎 Sources: a.log, b.yaml (+2 more) (5 chunks, 94% relevance)`; nothing where there are no sources.

    The wording is given (DOCUMENT_QA 7), and holds for a single chunk, too: `(1 chunks, …)`.
    """
    if not sources:
        return ""
    more = f" (+{len(sources) - most} more)" if len(sources) > most else ""
    relevance = round(min(max(confidence, 0.0), 1.0) * 100)
    return f"\n\n{opening} {', '.join(sources[:most])}{more} ({chunk_count} chunks, {relevance}% relevance)"


def first_tags(tags: str | None) -> str | None:
    """The first two."""
    kept = [tag.strip() for tag in (tags or "").split(",") if tag.strip()][:2]
    return ", ".join(kept) or None
