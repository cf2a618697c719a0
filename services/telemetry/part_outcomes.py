"""The record of how parts ended, one JSON object a line. Reports, cost figures and the dashboard are made from it. Only
this module knows its format.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from clock import from_rfc3339, rfc3339
from model.messages import AuthorType, discord_address
from model.outcomes import Outcome, OutcomeKind, traits_of
from model.steps import DECISIONS, Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class PartOutcome:
    """The record of how one part ended.

    Attributes:
        at, seconds: when that was decided, since 1970; how long after its window closed.
        channel: the name of the channel; empty in a thread, whose name may be a question.
        place_id: the channel or thread where it was written; reply_place_id: the thread that the reply went to.
        question, reply: without secrets; empty for what was no question, and where there is no reply. A reply may quote
            somebody's file, which is deleted with its thread: so it stays in memory, and the line has none.
        sources: cited, else selected.
        tokens: by step, in prompts and completions.
        path: what the steps decided. Of a line, without the words of a model.
    """

    at: float
    result: OutcomeKind
    channel_id: int
    place_id: int
    message_ids: tuple[int, ...]
    author_id: int
    author_type: AuthorType
    reason: str | None = None
    guild_id: int | None = None
    channel: str = ""
    reply_place_id: int | None = None
    question: str = ""
    reply: str = ""
    level: str | None = None
    sources: tuple[str, ...] = ()
    qa_id: str | None = None
    llm_calls: int = 0
    seconds: float = 0.0
    tokens: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    path: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def day(self) -> str:
        """The date in UTC, such as `2026-11-22`."""
        return rfc3339(self.at)[:10]

    @property
    def link(self) -> str | None:
        """The address of the first message in Discord; None where no server is known."""
        if self.guild_id is None:
            return None
        return discord_address(self.guild_id, self.place_id, self.message_ids[0])


def ended(outcome: Outcome, redact: Callable[[str], str]) -> PartOutcome:
    """Make the record of an outcome; `redact` removes secrets from a text."""
    part, steps = outcome.part, {step for step, _ in outcome.tokens}
    return PartOutcome(
        at=outcome.at,
        result=outcome.result,
        channel_id=part.place.channel_id,
        place_id=part.place.id,
        message_ids=part.message_ids,
        author_id=part.author.id,
        author_type=part.author_type,
        reason=outcome.reason,
        guild_id=part.place.guild_id,
        channel="" if part.place.is_thread else part.place.name,
        reply_place_id=outcome.reply_place_id,
        question=redact("\n".join(message.text for message in part.messages)).strip() if _asks(outcome) else "",
        reply=redact(outcome.reply_text or ""),
        level=outcome.level,
        sources=outcome.sources,
        qa_id=outcome.qa_id,
        llm_calls=outcome.llm_calls,
        seconds=round(outcome.at - part.closed_at, 3),
        tokens={
            step: (outcome.tokens.get((step, "prompt"), 0), outcome.tokens.get((step, "completion"), 0))
            for step in sorted(steps)
        },
        path=outcome.decisions,
    )


def _asks(outcome: Outcome) -> bool:
    """True if somebody asked the bot something, as far as the gate could tell."""
    traits = traits_of(outcome.reason)
    if outcome.part.author_type is AuthorType.TEAM_MEMBER or traits.is_textless:
        return False
    if outcome.result is OutcomeKind.REPLIED:
        return True
    gate = cast("Mapping[str, object]", outcome.decisions.get("gate", {}))
    return bool(gate.get("question", traits.is_asked))


def render_part_outcome(entry: PartOutcome) -> bytes:
    """Write a record as one line. Empty fields are left out."""
    fields: dict[str, object] = {
        "at": rfc3339(entry.at),
        "outcome": entry.result,
        "reason": entry.reason,
        "guild_id": _id(entry.guild_id),
        "channel_id": str(entry.channel_id),
        "channel": entry.channel,
        "place_id": str(entry.place_id),
        "reply_place_id": _id(entry.reply_place_id),
        "message_ids": [str(each) for each in entry.message_ids],
        "author_id": str(entry.author_id),
        "author_type": entry.author_type,
        "question": entry.question,
        "level": entry.level,
        "sources": list(entry.sources),
        "qa_id": entry.qa_id,
        "llm_calls": entry.llm_calls,
        "seconds": entry.seconds,
        "tokens": {step: list(counts) for step, counts in entry.tokens.items()},
        "path": {
            name: decided
            for name, decision in DECISIONS.items()
            if decision.recorded and (decided := _recorded(decision, entry.path.get(name)))
        },
    }
    kept = {name: value for name, value in fields.items() if value not in (None, "", [], {}, 0)}
    return json.dumps(kept, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def parse_part_outcome(line: bytes) -> PartOutcome | None:
    """Read one line; None if it is damaged, which costs only that line."""
    try:
        return _parsed(json.loads(line))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError):
        return None


def _parsed(row: dict[str, Any]) -> PartOutcome:
    return PartOutcome(
        at=from_rfc3339(row["at"]),
        result=OutcomeKind(row["outcome"]),
        channel_id=int(row["channel_id"]),
        place_id=int(row["place_id"]),
        message_ids=tuple(int(each) for each in row["message_ids"]),
        author_id=int(row["author_id"]),
        author_type=AuthorType(row["author_type"]),
        reason=_text_or_none(row.get("reason")),
        guild_id=_number_or_none(row.get("guild_id")),
        channel=str(row.get("channel", "")),
        reply_place_id=_number_or_none(row.get("reply_place_id")),
        question=str(row.get("question", "")),
        level=_text_or_none(row.get("level")),
        sources=tuple(str(each) for each in row.get("sources", ())),
        qa_id=_text_or_none(row.get("qa_id")),
        llm_calls=int(row.get("llm_calls", 0)),
        seconds=float(row.get("seconds", 0.0)),
        tokens={str(step): (int(prompt), int(written)) for step, (prompt, written) in row.get("tokens", {}).items()},
        path={str(step): decided for step, decided in row.get("path", {}).items()},
    )


def _recorded(decision: Decision, decided: object) -> object:
    """Return what is recorded of a step's decision: without a model's own words, which may repeat a file, or a person
    who is forgotten later.
    """
    return decision.without_words(cast("dict[str, Any]", decided)) if isinstance(decided, dict) else decided


def _id(number: int | None) -> str | None:
    return None if number is None else str(number)


def _number_or_none(value: object) -> int | None:
    return None if value is None else int(str(value))


def _text_or_none(value: object) -> str | None:
    return None if value is None else str(value)
