"""The arguments and results of the document tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from services.documents.askers_files import AskersFiles


class Status(StrEnum):
    OK = "ok"
    NOT_FOUND = "not_found"
    NOT_INDEXED = "not_indexed"
    INDEXING = "indexing"
    REFUSED_IRRELEVANT = "refused_irrelevant"
    DENIED = "denied"
    RETRIEVAL_ERROR = "retrieval_error"
    SYNTHESIS_ERROR = "synthesis_error"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True)
class Citation:
    doc_id: str
    source: str
    line_start: int
    line_end: int
    timestamp: str | None
    chunk_id: str


@dataclass(frozen=True, slots=True)
class ConversationContext:
    """Earlier questions and answers, which a follow-up question refers to."""

    turns: tuple[tuple[str, str], ...] = ()  # pairs of question and answer, oldest first
    citations: tuple[Citation, ...] = ()  # of the last tool result; "what came right after it?" refers to them


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The asker of a question and its place. Set by the bot, never by the model."""

    guild_id: int | None
    thread_id: int | None
    asker_id: int
    team_id: str | None = None
    conversation: ConversationContext = field(default_factory=ConversationContext)
    execution_id: str = ""  # the id of the answer in log lines
    thread_is_public: bool = True
    asker_can_view: bool = False  # True if the asker can view the thread now; a private one only as its member
    files: AskersFiles | None = None  # chooses the files that may be used; None: all of the thread

    @property
    def is_read_by_others(self) -> bool:
        """Return True if people other than the asker can read the answer."""
        return self.thread_id is not None and self.thread_is_public


@dataclass(frozen=True, slots=True)
class QAResult:
    """An answer, or the reason why there is none."""

    answer: str
    status: Status
    sources: tuple[str, ...] = ()  # names, each once, the best first
    chunk_count: int = 0
    confidence: float = 0.0  # mean cosine of the passages used, between 0 and 1; 0 when nothing was found
    citations: tuple[Citation, ...] = ()
    query_used: str = ""
    plan: Mapping[str, Any] = field(default_factory=dict[str, Any])
    cached: bool = False
    timings_ms: Mapping[str, float] = field(default_factory=dict[str, float])
    posters: Mapping[str, int] = field(default_factory=dict[str, int])
    """Who posted each file, by source, if that is neither the asker nor a team member."""
    unverified: int = 0  # the number of the model's citations and quotes that are in no passage
