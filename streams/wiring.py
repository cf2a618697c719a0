"""What the graph is wired to."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from model.events import Reaction
from model.messages import Message
from model.outcomes import Outcome, Result
from operators.chunk import IngestResult, Intake
from operators.retrieve import Lookup
from operators.route import Router
from operators.screen import ScreenRules
from operators.step import Gauge, ignore
from services.assistant import Assistant, Inquiry
from services.conversations import Context, History, InFlight, People, Posts, Seen, TeamActivity, Viewing
from services.documents import Cases, IngestJob
from services.knowledge import Library
from services.llm import Budget, ImageSource, Usage
from services.search.embedding import Embedder
from services.team import Capture
from streams.curation import CurationParts, CurationRules, Decided
from streams.lessons import Images


@dataclass(frozen=True, slots=True)
class EvidenceRules:
    block_lines: int | None = None
    """From how many lines on a code block counts as a file; None: none does."""
    solved_tags: frozenset[str] = frozenset({"solved"})
    """Folded, as `str.casefold` does."""
    grace_seconds: float = 86_400.0
    """How long the files of an archived thread are kept."""
    embed_at_once: int = 2


@dataclass(frozen=True, slots=True)
class EvidenceParts:
    """Whom the branch talks to."""

    history: History
    people: People
    posts: Posts
    cases: Cases
    intake: Intake
    forget_answers: Callable[[str], object]
    withheld: Callable[[Message], bool]
    begun: Callable[[IngestJob], Coroutine[Any, Any, None]]
    """Told of each file when it is begun, and …"""
    ended: Callable[[IngestResult], Coroutine[Any, Any, None]]
    reopened: Callable[[int], Coroutine[Any, Any, None]]
    """Told of each thread that is open again after its files were deleted."""
    """… when it can be searched, or has failed."""
    embedder: Embedder | None = None
    gauge: Gauge = ignore


@dataclass(frozen=True, slots=True)
class Services:
    """Whom the operators talk to. Live, replay and tests differ in these arguments alone."""

    assistant: Assistant
    library: Library
    history: History
    people: People
    team: TeamActivity
    router: Router
    context: Context
    posts: Posts
    budget: Budget
    in_flight: InFlight
    seen: Seen
    viewing: Viewing
    images: ImageSource | None = None
    evidence: EvidenceParts | None = None
    """None: files are not looked at."""
    lookup: Lookup | None = None
    """None: nothing is looked up in files or runbooks."""
    images_of_lessons: Images | None = None
    """None: placeholders stay as they are."""
    curation: CurationParts | None = None
    """None: what is captured is left to others to be sorted."""
    gauge: Gauge = ignore
    usage: Usage = field(default_factory=Usage)
    """What the whole run has used of the LLM."""


@dataclass(frozen=True, slots=True)
class Sinks:
    """Where the streams end."""

    reply: Callable[[Inquiry], Coroutine[Any, Any, Outcome]]
    archive: Callable[[Capture], Coroutine[Any, Any, Outcome]]
    feedback: Callable[[Reaction], Coroutine[Any, Any, None]]
    ends: Callable[[Result], None]
    """Told of every end, at once; must not fail."""
    decided: Callable[[Decided], None] | None = None
    """Called with what becomes of captured pairs and topics, as `ends`."""


@dataclass(frozen=True, slots=True)
class AnswerRules:
    chain_seconds: float = 200.0
    max_concurrent: int = 32
    max_waiting: int = 1000
    max_sources: int = 3
    max_index_chars: int = 60_000
    max_answer_chars: int = 3000
    require_citations: bool = False
    enable_verification: bool = False
    thread_reuse_seconds: float = 900.0


@dataclass(frozen=True, slots=True)
class Rules:
    """The figures the graph runs by, all times in seconds."""

    screen: ScreenRules
    answers: AnswerRules = AnswerRules()
    quiet_seconds: float = 60.0
    max_window_seconds: float = 600.0
    evidence: EvidenceRules = EvidenceRules()
    curation: CurationRules = field(default_factory=CurationRules)
