"""The curator with a language model behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel

from model.conversations import Conversation
from services.assistant import prompts
from services.assistant.curator import ClassificationResult, ImageSummaryResult, IntegrationResult
from services.knowledge import IndexEntry, narrow
from services.llm import Asker, Prompt, Usage
from services.storage import in_thread
from services.team import By, Pair

M = TypeVar("M", bound=BaseModel)


class ModelCurator:
    """Implements `Curator`: composes the prompts, and leaves calls and retries to the asker."""

    by = By.LLM

    def __init__(self, asker: Asker, tasks: prompts.Tasks, *, max_index_chars: int = 60_000) -> None:
        """`max_index_chars`: an index longer than that is narrowed to the topics that rank best for the pair, and what
        a topic holds, with all its files, to the conversations that do.
        """
        self._asker = asker
        self._tasks = tasks
        self._max_index_chars = max_index_chars

    async def summarise_images(
        self, conversation: Conversation, message_ids: Sequence[int], usage: Usage
    ) -> ImageSummaryResult:
        prompt = prompts.summarise_images(self._tasks, conversation, message_ids)
        return await self._ask("summarise_images", prompt, ImageSummaryResult, usage)

    async def classify(self, pair: Pair, index: Sequence[IndexEntry], usage: Usage) -> ClassificationResult:
        shown = await in_thread(narrow, index, _said(pair), self._max_index_chars)
        return await self._ask("classify", prompts.classify(self._tasks, pair, shown), ClassificationResult, usage)

    async def integrate(self, pair: Pair, topic: str, held: Sequence[Pair], usage: Usage) -> IntegrationResult:
        shown = await in_thread(_nearest, held, pair, self._max_index_chars)
        prompt = prompts.integrate(self._tasks, pair, topic, shown)
        return await self._ask("integrate", prompt, IntegrationResult, usage)

    async def _ask(self, step: str, prompt: Prompt, model: type[M], usage: Usage) -> M:
        return await self._asker.ask(step, prompt.system, prompt.user, model, usage, images=prompt.images)


def _said(pair: Pair) -> str:
    return "\n".join(turn.text for turn in pair.turns)


def _nearest(held: Sequence[Pair], pair: Pair, max_chars: int) -> list[Pair]:
    """Of what a topic holds, as much as fits, in its order; blocking."""
    entries = tuple(IndexEntry(each.id, _said(each)) for each in held)
    shown = {entry.id for entry in narrow(entries, _said(pair), max_chars)}
    return [each for each in held if each.id in shown]
