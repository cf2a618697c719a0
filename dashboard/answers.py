"""How parts ended, as rows and with their paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from dashboard.meter import StepDuration
from dashboard.showing import DisplayRules, link_to, minute, plain, seconds
from model.messages import AuthorType
from model.outcomes import OutcomeKind
from services.telemetry import Ended

SHOWN = 100
"""Rows of one page."""
_EXCERPT = 160


class AnswerRow(NamedTuple):
    """One part in the list."""

    id: str
    at: str
    result: str
    reason: str
    kind: str
    who: str
    where: str
    sources: tuple[str, ...]
    took: str
    tokens: int
    excerpt: str


class Fact(NamedTuple):
    name: str
    value: str


class Ranked(NamedTuple):
    source: str
    score: str
    chosen: bool


class StepView(NamedTuple):
    """A step of a path: what it decided, and how long it took, where that is known."""

    name: str
    facts: tuple[Fact, ...]
    ranked: tuple[Ranked, ...]
    took: str
    tokens: str


@dataclass(frozen=True, slots=True)
class AnswerView:
    """One part with its path.

    Attributes:
        question, reply: None where texts are not shown; empty where there is none.
        asked_at, sent_to: addresses in Discord.
    """

    row: AnswerRow
    question: str | None
    reply: str | None
    asked_at: str
    sent_to: str
    level: str
    qa_id: str
    calls: int
    steps: Sequence[StepView]


_ORDER = ("gather", "permit", "files", "announce", "gate", "select", "load", "tools", "retrieve", "generate", "point")
_LATER = ("verify", "hold", "reply", "extract", "summarise_images", "archive")


def rows(entries: Sequence[Ended], showing: DisplayRules, query: str = "", result: str = "") -> list[AnswerRow]:
    """The newest first, that hold all words of `query` in what is shown of them."""
    words = query.casefold().split()
    found: list[AnswerRow] = []
    for entry in reversed(entries):
        if result and entry.result != result:
            continue
        row = row_of(entry, showing)
        if all(word in _searchable(row, entry, showing) for word in words):
            found.append(row)
    return found


def _searchable(row: AnswerRow, entry: Ended, showing: DisplayRules) -> str:
    shown = (row.id, row.result, row.reason, row.kind, row.who, row.where, *row.sources, entry.qa_id or "")
    return " ".join((*shown, showing.text(entry.question), showing.text(entry.reply))).casefold()


def row_of(entry: Ended, showing: DisplayRules) -> AnswerRow:
    text = " ".join(showing.text(entry.question).split())
    return AnswerRow(
        id_of(entry),
        minute(entry.at),
        str(entry.result),
        entry.reason or ("only points" if entry.level == "point" else ""),
        "capture" if entry.author_type is AuthorType.TEAM_MEMBER else "question",
        showing.person(entry.author_id),
        showing.place(entry.place_id),
        tuple(map(showing.source, entry.sources)),
        seconds(entry.seconds),
        sum(map(sum, entry.tokens.values())),
        text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}…",
    )


def id_of(entry: Ended) -> str:
    """Give the id of an outcome in addresses of the dashboard."""
    return f"{entry.message_ids[0] if entry.message_ids else 0:x}"


def find(entries: Sequence[Ended], answer_id: str) -> Ended | None:
    """The newest with this id."""
    return next((entry for entry in reversed(entries) if id_of(entry) == answer_id), None)


def view(entry: Ended, took: Sequence[StepDuration], showing: DisplayRules) -> AnswerView:
    """`took`: how long its steps took, if that is known."""
    reply_place = entry.reply_place_id
    return AnswerView(
        row_of(entry, showing),
        showing.text(entry.question) if showing.texts else None,
        showing.text(entry.reply) if showing.texts else None,
        link_to(entry.guild_id, entry.place_id, entry.message_ids[-1] if entry.message_ids else None),
        "" if reply_place is None else link_to(entry.guild_id, reply_place),
        entry.level or "",
        entry.qa_id or "",
        entry.llm_calls,
        steps_of(entry, took, showing),
    )


def steps_of(entry: Ended, took: Sequence[StepDuration], showing: DisplayRules) -> list[StepView]:
    """List every step with a decision or a known duration, in the order of the flow."""
    spent: dict[str, float] = {}
    for each in took:
        spent[each.step] = spent.get(each.step, 0.0) + each.seconds
    known = {*entry.path, *spent, *entry.tokens}
    order = [name for name in (*_ORDER, *_LATER) if name in known]
    order += sorted(known.difference(order))
    return [_step(name, entry, spent.get(name), showing) for name in order]


def _step(name: str, entry: Ended, spent: float | None, showing: DisplayRules) -> StepView:
    decided: object = entry.path.get(name)
    facts: list[Fact] = []
    ranked: tuple[Ranked, ...] = ()
    if isinstance(decided, Mapping):
        known = cast("Mapping[str, Any]", decided)
        if name == "select":
            ranked = ranked_of(entry, showing)
        facts = [Fact(key, _said(name, key, value, showing)) for key, value in known.items() if key != "ranked"]
    elif isinstance(decided, (list, tuple)):
        facts = [Fact(name, _said(name, name, cast("Sequence[object]", decided), showing))]
    prompt, completion = entry.tokens.get(name, (0, 0))
    tokens = f"{prompt:,} + {completion:,}" if prompt or completion else ""
    return StepView(name, tuple(facts), ranked, "" if spent is None else seconds(spent), tokens)


def ranked_of(entry: Ended, showing: DisplayRules) -> tuple[Ranked, ...]:
    """Read what search ranked for the question, best first. Malformed parts of the record are left out."""
    found: list[Ranked] = []
    match entry.path.get("select"):
        case {"ranked": [*pairs], **rest}:
            chosen = cast("object", rest.get("selected"))
            for pair in cast("Sequence[object]", pairs):
                match pair:
                    case [str() as source, (int() | float()) as score]:
                        picked = isinstance(chosen, (list, tuple)) and source in chosen
                        found.append(Ranked(showing.source(source), f"{score:.2f}", picked))
                    case _:
                        pass
        case _:
            pass
    return tuple(found)


def _said(step: str, key: str, value: object, showing: DisplayRules) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        values = [str(each) for each in cast("Sequence[object]", value)]
        if step == "verify" and not showing.texts:  # they may quote the question
            return str(len(values))
        if step != "tools" and key != "issues":
            values = list(map(showing.source, values))
        return ", ".join(map(plain, values)) or "none"
    return plain(str(value))


def results() -> list[str]:
    return [str(each) for each in OutcomeKind]
