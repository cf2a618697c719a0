"""The thinking steps of team knowledge, with a model behind them or without one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pydantic import BaseModel

from model.conversations import Conversation
from services.knowledge import IndexEntry
from services.llm import Usage
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
    """Each step raises an `LLMError` (services.llm.errors) when it has no usable result."""

    @property
    def by(self) -> By:
        """Under whose name its decisions are noted."""
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
        """`held`: what the topic holds, without earlier captures of the same conversation."""
        ...
