"""The result of each message and part, which terminal, logs, metrics and tests read as one stream."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from model.messages import Part
from model.source_ids import has_namespace


class OutcomeKind(StrEnum):
    REPLIED = "replied"
    HELD = "held"
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
    DUPLICATE = "duplicate"
    NOTHING_TO_LEARN = "nothing to learn"
    # held, and how it ends unless it is posted or cancelled
    HELD_FOR_APPROVAL = "held for approval"
    DISCARDED = "discarded by a person"
    EXPIRED = "nobody decided"
    # cancelled
    DELETED = "deleted"
    TEAM_ANSWERED = "team answered"
    SHUTDOWN = "shutdown"
    # ignored
    BOT = "bot"
    SYSTEM = "system"
    NOT_ADDRESSED = "not addressed"
    OPTED_OUT = "opted out"
    EMPTY = "empty"


Approval = Literal["off", "all", "unsure"]
"""The answers that wait until a person approves them."""


class PrivateReply(StrEnum):
    """A reply to a private question that has no answer. The values are fields of `services.conversations.Phrases`."""

    NO_ANSWER = "no_answer"
    NOT_ANSWERABLE = "not_answerable"
    USED_UP = "used_up"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonTraits:
    """The traits of a reason, by which reports, the record, metrics, private questions and `--import` treat it.

    Attributes:
        is_gap: a question reached the gate and got no answer; more or better pages might have given one.
        is_textless: the record leaves out the text, as nobody asked the bot, or the question was deleted.
        is_not_routed: routing did not let the bot answer.
        is_asked: the bot was asked, as far as is known without the gate.
        is_chatter: most messages of a chat end so; a terminal shows their number and some examples.
        private_reply: the reply to a private question.
        import_captures: the words of `--import` for captures with this reason; empty: it does not count them.
        import_messages: the words of `--import` for messages ignored with this reason; empty: it does not count them.
    """

    is_gap: bool = False
    is_textless: bool = False
    is_not_routed: bool = False
    is_asked: bool = False
    is_chatter: bool = False
    private_reply: PrivateReply = PrivateReply.NO_ANSWER
    import_captures: str = ""
    import_messages: str = ""


_PLAIN = ReasonTraits()

REASONS: Mapping[Reason, ReasonTraits] = {
    Reason.NOT_ANSWERABLE: ReasonTraits(is_gap=True, is_chatter=True, private_reply=PrivateReply.NOT_ANSWERABLE),
    Reason.NO_SOURCES: ReasonTraits(is_gap=True),
    Reason.SOURCES_UNAVAILABLE: ReasonTraits(is_gap=True),
    Reason.NO_ANSWER_IN_SOURCES: ReasonTraits(is_gap=True),
    Reason.UNSURE: ReasonTraits(is_gap=True),
    Reason.NO_CITATION: ReasonTraits(is_gap=True),
    Reason.TOO_LONG: ReasonTraits(is_gap=True),
    Reason.REJECTED: ReasonTraits(is_gap=True),
    Reason.BUDGET: ReasonTraits(is_asked=True, private_reply=PrivateReply.USED_UP),
    Reason.OVERLOADED: ReasonTraits(is_asked=True, private_reply=PrivateReply.USED_UP),
    Reason.TEAM_IS_ANSWERING: ReasonTraits(is_textless=True, is_not_routed=True),
    Reason.REPLY_MODE: ReasonTraits(is_textless=True, is_not_routed=True),
    Reason.CANNOT_POST: _PLAIN,
    Reason.DUPLICATE: ReasonTraits(import_captures="captures that the archive holds already"),
    Reason.NOTHING_TO_LEARN: ReasonTraits(is_textless=True, import_captures="with nothing to learn from"),
    Reason.HELD_FOR_APPROVAL: _PLAIN,
    Reason.DISCARDED: ReasonTraits(is_gap=True),
    Reason.EXPIRED: ReasonTraits(is_gap=True),
    Reason.DELETED: ReasonTraits(is_textless=True),
    Reason.TEAM_ANSWERED: _PLAIN,
    Reason.SHUTDOWN: _PLAIN,
    Reason.BOT: _PLAIN,
    Reason.SYSTEM: _PLAIN,
    Reason.NOT_ADDRESSED: _PLAIN,
    Reason.OPTED_OUT: ReasonTraits(import_messages="left out as their authors wish"),
    Reason.EMPTY: _PLAIN,
}
"""A new reason is a member of `Reason` and a row here. `--import` prints its words in this order."""


def traits_of(reason: str | None) -> ReasonTraits:
    """Return the traits of an outcome's reason; plain ones for None, for a failure, and for an unknown reason."""
    return _PLAIN if reason is None else _BY_VALUE.get(reason, _PLAIN)


_BY_VALUE: Mapping[str, ReasonTraits] = {reason.value: traits for reason, traits in REASONS.items()}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of one part that was routed to an answer or a capture.

    A part whose answer waits for a person ends as `HELD`. When its draft has ended, another outcome follows, with
    `ends_draft`: it counts no message again.
    """

    part: Part
    at: float
    """When it was decided, in stream time."""
    result: OutcomeKind
    reason: str | None = None
    """A `Reason`; of a failure, the type of the error and the step."""
    reply_text: str | None = None
    level: str | None = None
    """The level of a reply: `answer`, or `point` if it only says where to look."""
    sources: tuple[str, ...] = ()
    """Cited, else selected."""
    reply_place_id: int | None = None
    """The thread that the reply went to."""
    qa_id: str | None = None
    llm_calls: int = 0
    tokens: Mapping[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    """The tokens that models took, by step and kind (`prompt`, `completion`)."""
    decisions: dict[str, object] = field(default_factory=dict[str, object])
    """The path through the steps, for logs and `--ask`; never posted."""
    ends_draft: bool = False


@dataclass(frozen=True, slots=True)
class Ignored:
    """Messages that no branch handles. `part_number` is set if they had become a part."""

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


FILE_SOURCE = "file"
_LINES = re.compile(r":\d+(?:-\d+)?$")


def is_library_source(source: str) -> bool:
    """Return True if a citation names a document or a topic, and False if it names a file that somebody has posted. The
    name of a file may begin like an id of a document, but a file is cited with its lines.
    """
    return has_namespace(source) and not _LINES.search(source)


def recordable_sources(sources: Iterable[str]) -> tuple[str, ...]:
    """Return sources as they may be recorded. The name of a file that somebody has posted becomes `file`, as the name
    must not outlive the thread of the file.
    """
    return tuple(dict.fromkeys(each if is_library_source(each) else FILE_SOURCE for each in sources))
