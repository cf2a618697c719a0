"""Tier 2, in memory: stands in for the library on disk until that is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.archive import Pair, render
from services.decisions import Action, Decision
from services.library import IndexEntry


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    pairs: tuple[Pair, ...]

    @property
    def text(self) -> str:
        return "".join(map(render, self.pairs))

    @property
    def file(self) -> str:
        return f"{self.name}.txt"


class TeamLibrary:
    def __init__(self) -> None:
        self.pairs: list[Pair] = []
        self.decisions: list[Decision] = []
        self.described: dict[str, tuple[str, str, str]] = {}

    @property
    def topics(self) -> Sequence[str]:
        found: dict[str, None] = {}
        for each in self.decisions:
            if each.action is Action.ADDED and each.topic and self.held(each.topic):
                found[each.topic] = None
        return list(found)

    def undecided(self) -> Pair | None:
        decided = {each.qa_id for each in self.decisions}
        return next((pair for pair in self.pairs if pair.id not in decided), None)

    def held(self, topic: str) -> Sequence[Pair]:
        gone = {pair_id for each in self.decisions for pair_id in (*each.remove_ids, *each.replaces)}
        added = {each.qa_id for each in self.decisions if each.action is Action.ADDED and each.topic == topic}
        return [pair for pair in self.pairs if pair.id in added - gone]

    def index(self) -> Sequence[IndexEntry]:
        return [IndexEntry(f"team:{name}.txt", self.described.get(name, ("", name, ""))[1]) for name in self.topics]

    def decide(self, decision: Decision) -> frozenset[str]:
        self.decisions.append(decision)
        return frozenset({decision.topic} if decision.topic else ())

    def undescribed(self) -> Sequence[Topic]:
        topics = [Topic(name, tuple(self.held(name))) for name in self.topics]
        return [topic for topic in topics if self.described.get(topic.name, ("",))[0] != topic.text]

    def describe(self, topic: str, summary: str, key: str) -> None:
        self.described[topic] = Topic(topic, tuple(self.held(topic))).text, summary, key


def allowed_removals(pair: Pair, held: Sequence[Pair], remove_ids: Sequence[str]) -> tuple[str, ...]:
    there = {each.id for each in held if each.conversation_id != pair.conversation_id}
    return tuple(each for each in remove_ids if each in there)[: min(3, len(there) // 2)]


def replaced_by(pair: Pair, held: Sequence[Pair]) -> tuple[str, ...]:
    return tuple(each.id for each in held if each.conversation_id == pair.conversation_id and each.id < pair.id)


def topic_name(text: str) -> str:
    return "-".join(text.lower().split())
