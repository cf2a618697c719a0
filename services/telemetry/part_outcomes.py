"""The record of outcomes, one JSON object a line. Only this module knows its format."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, cast

from pydantic import BeforeValidator, Field, PlainSerializer, TypeAdapter

from clock import from_rfc3339, rfc3339
from model.messages import AuthorType, discord_address
from model.outcomes import Outcome, OutcomeKind, recordable_sources, traits_of
from model.steps import DECISIONS


def _recorded(path: Mapping[str, Any]) -> dict[str, Any]:
    """Return the decisions of the steps for the record: without a model's own words, which may repeat a file, or the
    words of a person who is forgotten later.
    """
    found: dict[str, Any] = {}
    for name, decision in DECISIONS.items():
        decided: object = path.get(name)
        if isinstance(decided, dict):
            decided = dict(decision.for_record(cast("dict[str, Any]", decided)))
            if cited := decided.get("citations"):
                decided["citations"] = list(recordable_sources(cited))
        if decision.is_recorded and decided:
            found[name] = decided
    return found


_Id = Annotated[int, PlainSerializer(str)]  # a string, as no JSON number is safe with so many digits


@dataclass(frozen=True, slots=True, kw_only=True)
class PartOutcome:
    """The record of the outcome of one part. Its fields are in the order of the line.

    Attributes:
        at: the time of the outcome, in seconds since 1970; seconds: from the close of its window to that time.
        channel: the name of the channel; empty in a thread, whose name may be a question.
        place_id: the channel or thread of its messages; reply_place_id: the thread of the reply.
        question, reply: without secrets; empty if the part is no question, or has no reply. A reply may quote a
            person's file, which is deleted with its thread: so it stays in memory, and is not in the line.
        sources: the cited ones, else the selected ones; in the line without the names of people's files.
        tokens: by step, in prompts and completions.
        path: the decisions of the steps; in the line without the words of a model.
    """

    at: Annotated[float, BeforeValidator(from_rfc3339), PlainSerializer(rfc3339)]
    result: Annotated[OutcomeKind, Field(alias="outcome")]
    reason: str | None = None
    guild_id: _Id | None = None
    channel_id: _Id
    channel: str = ""
    place_id: _Id
    reply_place_id: _Id | None = None
    message_ids: tuple[_Id, ...]
    author_id: _Id
    author_type: AuthorType
    question: str = ""
    reply: Annotated[str, Field(exclude=True)] = ""
    level: str | None = None
    sources: Annotated[tuple[str, ...], PlainSerializer(recordable_sources)] = ()
    qa_id: str | None = None
    llm_calls: int = 0
    seconds: float = 0.0
    tokens: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    path: Annotated[Mapping[str, Any], PlainSerializer(_recorded)] = field(default_factory=dict[str, Any])

    @property
    def day(self) -> str:
        """The date in UTC, such as `2026-11-22`."""
        return rfc3339(self.at)[:10]

    @property
    def link(self) -> str | None:
        """The address of the first message in Discord; None if the server is unknown."""
        if self.guild_id is None:
            return None
        return discord_address(self.guild_id, self.place_id, self.message_ids[0])


def part_outcome_of(outcome: Outcome, redact: Callable[[str], str]) -> PartOutcome:
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
        question=recorded_question((each.text for each in part.messages), redact) if _asks(outcome) else "",
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


QUESTION_CHARS = 4_000
"""The most characters of a question that are recorded: those of one message."""


def recorded_question(texts: Iterable[str], redact: Callable[[str], str]) -> str:
    """Return the question of a record, made of the texts of its messages."""
    return redact("\n".join(texts)).strip()[:QUESTION_CHARS].rstrip()


def _asks(outcome: Outcome) -> bool:
    """Return True if somebody asked the bot something, as far as the gate could tell."""
    traits = traits_of(outcome.reason)
    if outcome.part.author_type is AuthorType.TEAM_MEMBER or traits.is_textless:
        return False
    if outcome.result is OutcomeKind.REPLIED:
        return True
    gate = cast("Mapping[str, object]", outcome.decisions.get("gate", {}))
    return bool(gate.get("question", traits.is_asked))


_LINE = TypeAdapter(PartOutcome)


def render_part_outcome(entry: PartOutcome) -> bytes:
    """Write a record as one line. Empty fields are left out."""
    fields = cast("dict[str, object]", _LINE.dump_python(entry, mode="json", by_alias=True))
    kept = {name: value for name, value in fields.items() if value not in (None, "", [], {}, 0)}
    return json.dumps(kept, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def parse_part_outcome(line: bytes) -> PartOutcome | None:
    """Read one line; None if it is damaged, which costs only that line."""
    try:
        return _LINE.validate_python(json.loads(line))
    except (TypeError, ValueError, AttributeError, OverflowError, RecursionError):
        return None
