"""The thinking steps of the answer chain, with a model behind them or without one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pydantic import BaseModel

from model.conversations import Conversation
from services.knowledge.library import IndexEntry, Source
from services.llm.tools import Toolset


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


class Counting(Protocol):
    """Whoever wants to hear of each call that was answered."""

    def add(self, step: str, *, prompt_tokens: int, completion_tokens: int) -> None: ...


@dataclass(slots=True)
class Usage:
    """Counts the calls to a model, and their tokens, of one part; and tells its parent, such as that of the run."""

    parent: Counting | None = None
    calls: Counter[str] = field(default_factory=Counter[str])
    """By step."""
    tokens: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """By step and kind (`prompt`, `completion`)."""

    def add(self, step: str, *, prompt_tokens: int, completion_tokens: int) -> None:
        calls, tokens = self.calls, self.tokens
        prompt, completion = (step, "prompt"), (step, "completion")
        # A part meets each step once: to look first is faster than to have the Counter find out that it is new.
        calls[step] = calls.get(step, 0) + 1
        tokens[prompt] = tokens.get(prompt, 0) + prompt_tokens
        tokens[completion] = tokens.get(completion, 0) + completion_tokens
        if self.parent is not None:
            self.parent.add(step, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens)


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
