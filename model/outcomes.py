"""The result of each message and part: the one stream that terminal, logs, metrics and tests read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from model.batches import Part


class OutcomeKind(StrEnum):
    REPLIED = "replied"
    CAPTURED = "captured"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"
    FAILED = "failed"


class Reason(StrEnum):
    """Why a part ended early, or a message was ignored."""

    NOT_ANSWERABLE = "not answerable"
    NO_SOURCES = "no sources"
    SOURCES_UNAVAILABLE = "sources unavailable"
    NO_ANSWER_IN_SOURCES = "no answer in sources"
    UNSURE = "unsure"
    NO_CITATION = "no citation"
    TOO_LONG = "too long"
    REJECTED = "rejected"
    BUDGET = "budget"
    OVERLOADED = "overloaded"
    TEAM_IS_ANSWERING = "team is answering"
    REPLY_MODE = "reply mode"
    CANNOT_POST = "cannot post"
    NOTHING_TO_LEARN = "nothing to learn"
    # cancelled
    DELETED = "deleted"
    TEAM_ANSWERED = "team answered"
    SHUTDOWN = "shutdown"
    # ignored
    BOT = "bot"
    SYSTEM = "system"
    DUPLICATE = "duplicate"
    NOT_ADDRESSED = "not addressed"
    OPTED_OUT = "opted out"
    EMPTY = "empty"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of one part that was answered or captured, or was going to be."""

    part: Part
    at: float
    """When it was decided, in stream time."""
    result: OutcomeKind
    reason: str | None = None
    """A `Reason`; for `failed` the kind of error and the step."""
    reply_text: str | None = None
    level: str | None = None
    """Of a reply: `answer`, or `point` if it only says where to look."""
    sources: tuple[str, ...] = ()
    """Cited, else selected."""
    reply_place_id: int | None = None
    """The thread that the reply went to."""
    qa_id: str | None = None
    llm_calls: int = 0
    tokens: Mapping[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    """By step and kind (`prompt`, `completion`)."""
    decisions: dict[str, object] = field(default_factory=dict[str, object])
    """The path through the steps, for logs and `--ask`; never posted."""


@dataclass(frozen=True, slots=True)
class Ignored:
    """Messages that no branch wanted. `part_number` is set when they had become a part."""

    reason: Reason
    channel_id: int
    message_ids: tuple[int, ...]
    part_number: int | None = None


@dataclass(frozen=True, slots=True)
class Removed:
    """A message that was deleted while it waited for its window to close."""

    channel_id: int
    message_id: int


Result = Outcome | Ignored | Removed
"""Every message ends in exactly one of these."""
