"""The assistant with a language model behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel

from model.conversations import Conversation
from services.assistant import prompts
from services.assistant.protocol import AnswerResult, GatingResult, SelectionResult, VerificationResult
from services.documents import Toolset
from services.knowledge import IndexEntry, Source
from services.llm import Conversing, Prompt, ToolLimits, Usage

M = TypeVar("M", bound=BaseModel)


class ModelAssistant:
    """Implements `Assistant`: composes the prompts, and leaves calls and retries to the asker."""

    def __init__(self, asker: Conversing, tasks: prompts.Tasks, limits: ToolLimits | None = None) -> None:
        """`limits`: of the tool calls of one answer."""
        self._asker = asker
        self._tasks = tasks
        self._limits = limits or ToolLimits()

    async def gate(self, conversation: Conversation, usage: Usage, *, files: Sequence[str] = ()) -> GatingResult:
        return await self._ask("gate", prompts.gate(self._tasks, conversation, files), GatingResult, usage)

    async def select(
        self,
        query: str,
        index: Sequence[IndexEntry],
        max_sources: int,
        usage: Usage,
        *,
        files: Sequence[str] = (),
    ) -> SelectionResult:
        prompt = prompts.select(self._tasks, query, index, max_sources, files)
        return await self._ask("select", prompt, SelectionResult, usage)

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
        files = None if toolset is None else toolset.files
        prompt = prompts.generate(
            self._tasks, conversation, query, sources, max_chars=max_chars, shorten=shorten, files=files
        )
        if toolset is None:
            return await self._ask("generate", prompt, AnswerResult, usage)
        return await self._asker.converse(
            "generate",
            prompt.system,
            prompt.user,
            AnswerResult,
            usage,
            tools=toolset.tools,
            limits=self._limits,
            images=prompt.images,
        )

    async def verify(
        self, conversation: Conversation, draft: str, sources: Sequence[Source], usage: Usage
    ) -> VerificationResult:
        prompt = prompts.verify(self._tasks, conversation, draft, sources)
        return await self._ask("verify", prompt, VerificationResult, usage)

    async def _ask(self, step: str, prompt: Prompt, model: type[M], usage: Usage) -> M:
        return await self._asker.ask(step, prompt.system, prompt.user, model, usage, images=prompt.images)
