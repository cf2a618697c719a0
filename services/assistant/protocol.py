"""The thinking steps of the answer chain, with a model behind them or without one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pydantic import BaseModel

from model.conversations import Conversation
from services.documents import Toolset
from services.knowledge import IndexEntry, Source
from services.llm import Usage


class GatingResult(BaseModel):
    is_question: bool
    is_answerable: bool
    rewrite_query: str | None
    reason: str


class SelectionResult(BaseModel):
    selected_source_ids: list[str]


class AnswerResult(BaseModel):
    answer: str | None
    citations: list[str]


class VerificationResult(BaseModel):
    is_good_enough: bool
    issues: list[str]
    suggested_fix: str | None


class Assistant(Protocol):
    """Each step raises an `LLMError` (services.llm.errors) when it has no usable result."""

    async def gate(self, conversation: Conversation, usage: Usage, *, files: Sequence[str] = ()) -> GatingResult:
        """`files`: what can be searched besides the sources, each in a few words."""
        ...

    async def select(
        self,
        query: str,
        index: Sequence[IndexEntry],
        max_sources: int,
        usage: Usage,
        *,
        files: Sequence[str] = (),
    ) -> SelectionResult:
        """`index` fits into a prompt: whoever calls has narrowed it. `files`: as for `gate`."""
        ...

    async def generate(
        self,
        conversation: Conversation,
        query: str,
        sources: Sequence[Source],
        usage: Usage,
        *,
        max_chars: int,
        shorten: bool = False,
        toolset: Toolset | None = None,
    ) -> AnswerResult:
        """`shorten`: an earlier draft was longer than `max_chars`; say so, so that the prompt changes. `toolset`: what
        may be looked up on the way.
        """
        ...

    async def verify(
        self, conversation: Conversation, draft: str, sources: Sequence[Source], usage: Usage
    ) -> VerificationResult: ...
