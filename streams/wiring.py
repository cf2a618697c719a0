"""The services, sinks and rules that the graph takes as arguments."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from clock import DAY
from dataflow.metering import Gauge
from model.events import Reaction
from model.messages import Message
from model.outcomes import Outcome, Result
from model.servers import Servers
from operators.answering import AnswerRules
from operators.evidence import IngestServices
from operators.inferred_votes import InferredVote
from operators.screen import ScreenRules
from services.assistant import Inquiry
from services.conversations import (
    Context,
    ConversationTracker,
    DraftRequest,
    Drafts,
    History,
    InFlight,
    Outbox,
    People,
    Posts,
    Router,
    StartedReply,
    TeamActivity,
    ThreadAccess,
    TypingTracker,
    Watermarks,
)
from services.discord import Access
from services.documents import ThreadFiles
from services.llm import ImageSource
from services.search.embedding import Embedder
from services.team import Capture, Pair, Revision
from sinks.evidence import FileNotes
from streams.alerts import AlertParts
from streams.chain import ServerContext
from streams.conversations import WindowRules
from streams.curation import CurationResult, CurationRules


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRules:
    """Limits of the evidence branch.

    Attributes:
        block_lines: code blocks of at least this many lines count as files; None: no code block does.
        solved_tags: forum tags that close a thread, casefolded.
        grace_seconds: how long the files of an archived thread are kept.
    """

    block_lines: int | None = None
    solved_tags: frozenset[str] = frozenset({"solved"})
    grace_seconds: float = DAY
    embed_at_once: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceParts:
    """The services of the evidence branch.

    Attributes:
        forget_answers: called with each collection whose cached answers are out of date.
        withheld: whether a message's author has opted out.
        notes: shows people what becomes of their files.
        embedder: None: keyword search only.
    """

    history: History
    people: People
    posts: Posts
    cases: ThreadFiles
    ingest_services: IngestServices
    forget_answers: Callable[[str], object]
    withheld: Callable[[Message], bool]
    notes: FileNotes
    embedder: Embedder | None
    gauge: Gauge | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The services that the graph uses, a field each. Live, replay and tests differ in these arguments alone.

    Attributes:
        access: None: nothing keeps the bot from posting.
        images: None: images stay placeholders in questions.
        evidence: None: files are ignored.
        alerts: None: nobody is told when something is wrong.
    """

    servers: Servers[ServerContext]
    history: History
    people: People
    tracker: ConversationTracker
    team: TeamActivity
    router: Router
    context: Context
    posts: Posts
    outbox: Outbox
    drafts: Drafts
    in_flight: InFlight
    watermarks: Watermarks
    typists: TypingTracker
    viewing: ThreadAccess
    access: Access | None = None
    images: ImageSource | None = None
    evidence: EvidenceParts | None = None
    alerts: AlertParts | None = None
    gauge: Gauge | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sinks:
    """The ends of the streams.

    Attributes:
        revise: captures again, in a server, the conversations of messages that were edited or deleted.
        finish: completes a reply that an earlier run has half posted; returns None if it had posted nothing.
        draft: carries out a request about a draft; returns the outcome of a draft that has ended by it.
        results: each called with every result as it comes; must not fail.
        on_decided: called with each decision about a pair and each description of a topic; must not fail.
    """

    reply: Callable[[Inquiry], Coroutine[Any, Any, Outcome]]
    archive: Callable[[Capture], Coroutine[Any, Any, Outcome]]
    revise: Callable[[int | None, Sequence[Revision]], Coroutine[Any, Any, Sequence[Pair]]]
    feedback: Callable[[Reaction | InferredVote], Coroutine[Any, Any, None]]
    finish: Callable[[StartedReply], Coroutine[Any, Any, Outcome | None]]
    draft: Callable[[DraftRequest], Coroutine[Any, Any, Outcome | None]]
    results: Sequence[Callable[[Result], object]] = ()
    on_decided: Callable[[CurationResult], None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The settings of the graph, all times in seconds. `captures_may_wait`: for a disk that cannot be written."""

    screen: ScreenRules
    answers: AnswerRules
    window: WindowRules
    evidence: EvidenceRules
    curation: CurationRules
    captures_may_wait: bool
