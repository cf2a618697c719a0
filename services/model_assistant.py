"""The assistant with a language model behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from pydantic import BaseModel

from model.conversations import Conversation, Image
from services import prompts
from services.assistant import AnswerResult, GatingResult, SelectionResult, Usage, VerificationResult
from services.library import IndexEntry, Source

M = TypeVar("M", bound=BaseModel)


class Asker(Protocol):
    """Puts one question to a model and gives back its validated answer."""

    async def ask(
        self, step: str, system: str, user: str, model: type[M], usage: Usage, *, images: Sequence[Image] = ()
    ) -> M:
        """`step` names the call in metrics, recordings and errors; `model`'s class name is the schema's on the wire.

        Raises:
            LLMError: there is no usable answer (services.llm.errors says which kinds there are).
        """
        ...


class ModelAssistant:
    """Implements `services.assistant.Assistant`: composes the prompts, and leaves calls and retries to the asker."""

    def __init__(self, asker: Asker, tasks: prompts.Tasks) -> None:
        self._asker = asker
        self._tasks = tasks

    async def gate(self, conversation: Conversation, usage: Usage) -> GatingResult:
        return await self._ask("gate", prompts.gate(self._tasks, conversation), GatingResult, usage)

    async def select(self, query: str, index: Sequence[IndexEntry], max_sources: int, usage: Usage) -> SelectionResult:
        return await self._ask("select", prompts.select(self._tasks, query, index, max_sources), SelectionResult, usage)

    async def generate(
        self,
        conversation: Conversation,
        query: str,
        sources: Sequence[Source],
        usage: Usage,
        *,
        max_chars: int,
        shorten: bool = False,
    ) -> AnswerResult:
        prompt = prompts.generate(self._tasks, conversation, query, sources, max_chars=max_chars, shorten=shorten)
        return await self._ask("generate", prompt, AnswerResult, usage)

    async def verify(
        self, conversation: Conversation, draft: str, sources: Sequence[Source], usage: Usage
    ) -> VerificationResult:
        prompt = prompts.verify(self._tasks, conversation, draft, sources)
        return await self._ask("verify", prompt, VerificationResult, usage)

    async def _ask(self, step: str, prompt: prompts.Prompt, model: type[M], usage: Usage) -> M:
        return await self._asker.ask(step, prompt.system, prompt.user, model, usage, images=prompt.images)
