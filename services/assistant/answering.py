"""The steps of the answer chain: `Assistant`, and the one with a language model behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Protocol, TypeVar

from pydantic import BaseModel, Field

from services.assistant import prompts
from services.assistant.citations import resolve_conversations
from services.llm import LongText, ShortText, ShortTexts, at_most

if TYPE_CHECKING:  # the tools for files take a fifth of the time that an answer needs to start
    from model.conversations import Conversation
    from services.assistant.prompts import Choice, ConfiguredTasks
    from services.documents import Toolset
    from services.knowledge import Source
    from services.llm import Asker, Prompt, ToolLimits, Usage

M = TypeVar("M", bound=BaseModel)


class GatingResult(BaseModel):
    reason: ShortText  # first, so that what follows is decided by it
    is_question: bool
    is_answerable: bool
    rewrite_query: Annotated[str, at_most(20_000)] | None  # without a model, it holds whole messages


class SelectionResult(BaseModel):
    selected_source_ids: ShortTexts


class AnswerResult(BaseModel):
    """An answer. `to_read`: headings that excerpts leave out, which the model wants to read and answer again."""

    answer: LongText | None
    citations: ShortTexts
    to_read: ShortTexts = Field(default_factory=list[str])


class VerificationResult(BaseModel):
    is_good_enough: bool
    issues: ShortTexts
    suggested_fix: ShortText | None


class Assistant(Protocol):
    """Decides for the steps of an answer. Each method raises an `LLMError` if it has no usable result."""

    async def gate(
        self, conversation: Conversation, usage: Usage, *, files: Sequence[str] = (), addressed: bool = False
    ) -> GatingResult:
        """Decide whether the last turns ask a question that can be answered, and how to word it for the search.
        `files`: those that can be searched besides the sources. `addressed`: the bot was mentioned or replied to.
        """
        ...

    async def select(
        self,
        query: str,
        request: str,
        choices: Sequence[Choice],
        max_sources: int,
        usage: Usage,
        *,
        files: Sequence[str] = (),
    ) -> SelectionResult:
        """Choose the sources to answer from. `request`: what the person wrote now, in full. `choices`: the entries of
        the index that may be selected. `files`: as for `gate`.
        """
        ...

    async def generate(
        self,
        conversation: Conversation,
        query: str,
        sources: Sequence[Source],
        usage: Usage,
        *,
        max_chars: int,
        was_too_long: bool = False,
        toolset: Toolset | None = None,
    ) -> AnswerResult:
        """Answer from the sources. Citations name sources, or the ids of conversations in sources of the team.
        `was_too_long`: an earlier draft was longer than `max_chars`. `toolset`: the tools that may be called before
        answering.
        """
        ...

    async def ask(
        self, step: str, prompt: Callable[[ConfiguredTasks], Prompt], result: type[M], usage: Usage
    ) -> M | None:
        """Return the model's result of a step after `generate`; None where there is no model."""
        ...


class ModelAssistant:
    """An `Assistant` that asks a model. `limits`: of the tool calls of one answer."""

    def __init__(self, asker: Asker, tasks: ConfiguredTasks, limits: ToolLimits | None = None) -> None:
        self._asker = asker
        self._tasks = tasks
        self._limits = limits

    async def gate(
        self, conversation: Conversation, usage: Usage, *, files: Sequence[str] = (), addressed: bool = False
    ) -> GatingResult:
        _ = addressed  # the conversation shows it
        return await self._asker.ask("gate", prompts.gate(self._tasks, conversation, files), GatingResult, usage)

    async def select(
        self,
        query: str,
        request: str,
        choices: Sequence[Choice],
        max_sources: int,
        usage: Usage,
        *,
        files: Sequence[str] = (),
    ) -> SelectionResult:
        prompt = prompts.select(self._tasks, query, request, choices, max_sources, files)
        return await self._asker.ask("select", prompt, SelectionResult, usage)

    async def generate(
        self,
        conversation: Conversation,
        query: str,
        sources: Sequence[Source],
        usage: Usage,
        *,
        max_chars: int,
        was_too_long: bool = False,
        toolset: Toolset | None = None,
    ) -> AnswerResult:
        files, tools = (None, ()) if toolset is None else (toolset.files, toolset.tools)
        prompt = prompts.generate(
            self._tasks, conversation, query, sources, max_chars=max_chars, was_too_long=was_too_long, files=files
        )
        result = await self._asker.ask("generate", prompt, AnswerResult, usage, tools=tools, limits=self._limits)
        shown = prompts.conversations_in(sources)
        cited = [next(iter(resolve_conversations([each], shown)[0]), each) for each in result.citations]
        return result.model_copy(update={"citations": cited})

    async def ask(
        self, step: str, prompt: Callable[[ConfiguredTasks], Prompt], result: type[M], usage: Usage
    ) -> M | None:
        return await self._asker.ask(step, prompt(self._tasks), result, usage)
