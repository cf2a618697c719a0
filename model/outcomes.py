"""The result of each message and part: the one stream that terminal, logs, metrics and tests read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from model.messages import Part


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
    DUPLICATE = "duplicate"
    NOTHING_TO_LEARN = "nothing to learn"
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


class Said(StrEnum):
    """Replies to private questions without an answer. The values are names in `services.conversations.Phrases`."""

    NO_ANSWER = "no_answer"
    NOT_ANSWERABLE = "not_answerable"
    USED_UP = "used_up"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonTraits:
    """What follows from a reason, for all that tell people of it.

    Attributes:
        is_gap: a question that reached the gate got no answer that more or better pages might have given.
        is_textless: nobody asked the bot, or they took it back; the words are none of the record's business.
        is_left_alone: routing did not let the bot answer.
        is_asked: the bot was asked, as far as can be told without the gate.
        is_chatter: most of a chat, of which a terminal shows the number and some examples.
        said: the reply to a private question.
        captures: words of `--import` for captures that ended so; empty: it does not count them.
        messages: words of `--import` for messages that were ignored so; empty: it does not count them.
    """

    is_gap: bool = False
    is_textless: bool = False
    is_left_alone: bool = False
    is_asked: bool = False
    is_chatter: bool = False
    said: Said = Said.NO_ANSWER
    captures: str = ""
    messages: str = ""


_PLAIN = ReasonTraits()

REASONS: Mapping[Reason, ReasonTraits] = {
    Reason.NOT_ANSWERABLE: ReasonTraits(is_gap=True, is_chatter=True, said=Said.NOT_ANSWERABLE),
    Reason.NO_SOURCES: ReasonTraits(is_gap=True),
    Reason.SOURCES_UNAVAILABLE: ReasonTraits(is_gap=True),
    Reason.NO_ANSWER_IN_SOURCES: ReasonTraits(is_gap=True),
    Reason.UNSURE: ReasonTraits(is_gap=True),
    Reason.NO_CITATION: ReasonTraits(is_gap=True),
    Reason.TOO_LONG: ReasonTraits(is_gap=True),
    Reason.REJECTED: ReasonTraits(is_gap=True),
    Reason.BUDGET: ReasonTraits(is_asked=True, said=Said.USED_UP),
    Reason.OVERLOADED: ReasonTraits(is_asked=True, said=Said.USED_UP),
    Reason.TEAM_IS_ANSWERING: ReasonTraits(is_textless=True, is_left_alone=True),
    Reason.REPLY_MODE: ReasonTraits(is_textless=True, is_left_alone=True),
    Reason.CANNOT_POST: _PLAIN,
    Reason.DUPLICATE: ReasonTraits(captures="captures that the archive holds already"),
    Reason.NOTHING_TO_LEARN: ReasonTraits(is_textless=True, captures="with nothing to learn from"),
    Reason.DELETED: ReasonTraits(is_textless=True),
    Reason.TEAM_ANSWERED: _PLAIN,
    Reason.SHUTDOWN: _PLAIN,
    Reason.BOT: _PLAIN,
    Reason.SYSTEM: _PLAIN,
    Reason.NOT_ADDRESSED: _PLAIN,
    Reason.OPTED_OUT: ReasonTraits(messages="left out as their authors wish"),
    Reason.EMPTY: _PLAIN,
}
"""A new reason is a member of `Reason` and a row here. `--import` prints its words in this order."""


def traits_of(reason: str | None) -> ReasonTraits:
    """Give the traits of an outcome's reason; plain ones for none, for a failure, and for one of another version."""
    return _PLAIN if reason is None else _BY_WORDS.get(reason, _PLAIN)


_BY_WORDS: Mapping[str, ReasonTraits] = {reason.value: traits for reason, traits in REASONS.items()}


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


OF_A_FILE = "file"
_LINES = re.compile(r":\d+(?:-\d+)?$")


def is_of_library(source: str) -> bool:
    """Return whether an answer cites a document or a topic by this, and not a file that somebody has posted. The name
    of a file may begin as their ids do, but a file is cited with its lines.
    """
    return source.startswith(("kb:", "team:")) and not _LINES.search(source)


def lasting_sources(sources: Iterable[str]) -> tuple[str, ...]:
    """Return sources as they may be written down. A file that somebody has posted is cited by its name, and deleted
    with its thread: of it there is only that it was one.
    """
    return tuple(dict.fromkeys(each if is_of_library(each) else OF_A_FILE for each in sources))
