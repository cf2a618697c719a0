"""Captured conversations, and a curator that says what a test wants."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from clock import now, rfc3339
from model.conversations import Conversation
from services.assistant.curator import ClassificationResult, ImageSummary, ImageSummaryResult, IntegrationResult
from services.knowledge.index_file import IndexEntry
from services.llm.usage import Usage
from services.team import archive
from services.team.archive import Pair, PairTurn, Speaker
from services.team.decisions import Actor

R = TypeVar("R")

START = 1_771_200_000.0
"""2026-02-16, the first second of a UTC day."""


def pair(number: int, asked: str = "why?", answered: str = "so.", *, conversation: int | None = None) -> Pair:
    """The conversation captured in second `number` of the day."""
    timestamp = rfc3339(START + number, digits=6)
    first = 1000 * (number if conversation is None else conversation)
    return Pair(
        id=archive.qa_id(timestamp),
        timestamp=timestamp,
        said_at=timestamp,
        conversation_id=f"reply_{first}",
        message_ids=(first, first + number),
        author_ids=(1, 50),
        turns=(PairTurn(Speaker.USER, asked), PairTurn(Speaker.TEAM, answered)),
    )


def named(topic: str) -> ClassificationResult:
    return ClassificationResult(skip=False, topic_name=topic)


def kept(*remove_ids: str, skip: bool = False) -> IntegrationResult:
    return IntegrationResult(skip=skip, remove_ids=list(remove_ids))


SKIP = ClassificationResult(skip=True, topic_name="")


@dataclass
class ScriptedCurator:
    """Implements `services.assistant.curator.Curator`; an exception instead of a result is raised."""

    topic_for: Callable[[Pair], ClassificationResult | Exception] = lambda _pair: named("things")
    integrated: Callable[[Pair, Sequence[Pair]], IntegrationResult | Exception] = lambda _pair, _held: kept()
    pictured: Callable[[Conversation, Sequence[int]], ImageSummaryResult | Exception] = lambda conversation, ids: (
        ImageSummaryResult(
            summaries=[
                ImageSummary(message_id=str(message_id), image_index=index, summary=f"{image.name} in words")
                for turn, message_id in zip(conversation.turns, ids, strict=True)
                for index, image in enumerate(turn.images)
            ]
        )
    )
    seconds: float = 0.0
    actor: Actor = Actor.LLM
    asked: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Step and pair, in order."""
    at: list[float] = field(default_factory=list[float])
    busy: int = 0
    indices: list[Sequence[IndexEntry]] = field(default_factory=list[Sequence[IndexEntry]])
    shown: list[list[str]] = field(default_factory=list[list[str]])
    """What topics held when a pair was integrated."""

    async def classify(self, pair: Pair, index: Sequence[IndexEntry], usage: Usage) -> ClassificationResult:
        self.indices.append(index)
        await self._work("classify", pair.id, usage)
        return result_of(self.topic_for(pair))

    async def integrate(self, pair: Pair, topic: str, topic_pairs: Sequence[Pair], usage: Usage) -> IntegrationResult:
        self.shown.append([each.id for each in topic_pairs])
        await self._work("integrate", pair.id, usage)
        return result_of(self.integrated(pair, topic_pairs))

    async def summarise_images(
        self, conversation: Conversation, message_ids: Sequence[int], usage: Usage
    ) -> ImageSummaryResult:
        await self._work("summarise_images", ",".join(map(str, message_ids)), usage)
        return result_of(self.pictured(conversation, message_ids))

    async def _work(self, step: str, what: str, usage: Usage) -> None:
        assert not self.busy or step == "summarise_images", "one pair at a time"
        self.busy += 1
        self.asked.append((step, what))
        self.at.append(now())
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.busy -= 1
        usage.add(step, prompt_tokens=10, completion_tokens=1)


def result_of(said: R | Exception) -> R:
    if isinstance(said, Exception):
        raise said
    return said
