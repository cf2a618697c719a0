"""The steps of filing team knowledge: `Curator`, and the one with a language model behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pydantic import BaseModel

from model.conversations import Conversation
from services.assistant import prompts
from services.knowledge import IndexEntry, narrow
from services.llm import Asker, Usage
from services.storage import in_thread
from services.team import By, Pair


class ImageSummary(BaseModel):
    message_id: str
    image_index: int
    summary: str


class ImageSummaryResult(BaseModel):
    summaries: list[ImageSummary]


class ClassificationResult(BaseModel):
    skip: bool
    topic_name: str


class IntegrationResult(BaseModel):
    skip: bool
    remove_ids: list[str]


class Curator(Protocol):
    """Each step raises an `LLMError` (services.llm.errors) if it has no usable result."""

    @property
    def by(self) -> By:
        """The name under which its decisions are logged."""
        ...

    async def summarise_images(
        self, conversation: Conversation, message_ids: Sequence[int], usage: Usage
    ) -> ImageSummaryResult:
        """`message_ids`: one for each turn of the conversation."""
        ...

    async def classify(self, pair: Pair, index: Sequence[IndexEntry], usage: Usage) -> ClassificationResult:
        """`index`: the team's topics, with their descriptions."""
        ...

    async def integrate(self, pair: Pair, topic: str, held: Sequence[Pair], usage: Usage) -> IntegrationResult:
        """`held`: the pairs of the topic, without earlier captures of the same conversation."""
        ...


class ModelCurator:
    """Composes the prompts, and leaves calls and retries to the asker.

    `max_index_chars`: a longer index is narrowed to the topics, and a longer topic to the pairs, that rank best.
    """

    by = By.LLM

    def __init__(self, asker: Asker, tasks: prompts.Tasks, *, max_index_chars: int = 60_000) -> None:
        self._asker = asker
        self._tasks = tasks
        self._max_index_chars = max_index_chars

    async def summarise_images(
        self, conversation: Conversation, message_ids: Sequence[int], usage: Usage
    ) -> ImageSummaryResult:
        prompt = prompts.summarise_images(self._tasks, conversation, message_ids)
        return await self._asker.ask("summarise_images", prompt, ImageSummaryResult, usage)

    async def classify(self, pair: Pair, index: Sequence[IndexEntry], usage: Usage) -> ClassificationResult:
        shown = await in_thread(narrow, index, _text(pair), self._max_index_chars)
        prompt = prompts.classify(self._tasks, pair, shown)
        return await self._asker.ask("classify", prompt, ClassificationResult, usage)

    async def integrate(self, pair: Pair, topic: str, held: Sequence[Pair], usage: Usage) -> IntegrationResult:
        shown = await in_thread(_nearest, held, pair, self._max_index_chars)
        prompt = prompts.integrate(self._tasks, pair, topic, shown)
        return await self._asker.ask("integrate", prompt, IntegrationResult, usage)


def _text(pair: Pair) -> str:
    return "\n".join(turn.text for turn in pair.turns)


def _nearest(held: Sequence[Pair], pair: Pair, max_chars: int) -> list[Pair]:
    """As many of `held` as fit, in their order; blocking."""
    entries = tuple(IndexEntry(each.id, _text(each)) for each in held)
    shown = {entry.id for entry in narrow(entries, _text(pair), max_chars)}
    return [each for each in held if each.id in shown]
