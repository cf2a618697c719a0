"""The curator with a language model behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel

from model.conversations import Conversation
from services import prompts
from services.archive import Pair
from services.assistant import Usage
from services.curator import ClassificationResult, ImageSummaryResult, IntegrationResult
from services.decisions import By
from services.files import in_thread
from services.library import IndexEntry
from services.model_assistant import Asker
from services.ranking import narrow

M = TypeVar("M", bound=BaseModel)


class ModelCurator:
    """Implements `services.curator.Curator`: composes the prompts, and leaves calls and retries to the asker."""

    by = By.LLM

    def __init__(self, asker: Asker, tasks: prompts.Tasks, *, max_index_chars: int = 60_000) -> None:
        """`max_index_chars`: an index longer than that is narrowed to the topics that rank best for the pair."""
        self._asker = asker
        self._tasks = tasks
        self._max_index_chars = max_index_chars

    async def summarise_images(
        self, conversation: Conversation, message_ids: Sequence[int], usage: Usage
    ) -> ImageSummaryResult:
        prompt = prompts.summarise_images(self._tasks, conversation, message_ids)
        return await self._ask("summarise_images", prompt, ImageSummaryResult, usage)

    async def classify(self, pair: Pair, index: Sequence[IndexEntry], usage: Usage) -> ClassificationResult:
        said = "\n".join(turn.text for turn in pair.turns)
        shown = await in_thread(narrow, index, said, self._max_index_chars)
        return await self._ask("classify", prompts.classify(self._tasks, pair, shown), ClassificationResult, usage)

    async def integrate(self, pair: Pair, topic: str, held: Sequence[Pair], usage: Usage) -> IntegrationResult:
        return await self._ask("integrate", prompts.integrate(self._tasks, pair, topic, held), IntegrationResult, usage)

    async def _ask(self, step: str, prompt: prompts.Prompt, model: type[M], usage: Usage) -> M:
        return await self._asker.ask(step, prompt.system, prompt.user, model, usage, images=prompt.images)
