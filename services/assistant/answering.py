"""The steps of the answer chain: `Assistant`, and the one with a language model behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Protocol

from pydantic import BaseModel, Field

from model.conversations import Conversation
from services.assistant import prompts
from services.assistant.citations import resolve_conversations
from services.assistant.prompts import Given, Offered
from services.knowledge import Source
from services.llm import Asker, LongText, ShortText, ShortTexts, ToolLimits, Usage, at_most

if TYPE_CHECKING:  # the tools for files take a fifth of the time that an answer needs to start
    from services.documents import Toolset


class GatingResult(BaseModel):
    reason: ShortText  # first, so that what follows is decided by it
    is_question: bool
    is_answerable: bool
    rewrite_query: Annotated[str, at_most(20_000)] | None  # without a model, it holds whole messages


class SelectionResult(BaseModel):
    selected_source_ids: ShortTexts


class AnswerResult(BaseModel):
    """`to_read`: headings of sections that excerpts leave out and that are wanted before this answer stands."""

    answer: LongText | None
    citations: ShortTexts
    to_read: ShortTexts = Field(default_factory=list[str])


class VerificationResult(BaseModel):
    is_good_enough: bool
    issues: ShortTexts
    suggested_fix: ShortText | None


class Assistant(Protocol):
    """Each step raises an `LLMError` (services.llm.endpoint) if it has no usable result."""

    async def gate(
        self, conversation: Conversation, usage: Usage, *, files: Sequence[str] = (), addressed: bool = False
    ) -> GatingResult:
        """`files`: what can be searched besides the sources, each in a few words. `addressed`: the bot is asked."""
        ...

    async def select(
        self,
        query: str,
        request: str,
        offered: Sequence[Offered],
        max_sources: int,
        usage: Usage,
        *,
        files: Sequence[str] = (),
    ) -> SelectionResult:
        """`request`: what the person wrote now, in full. `offered`: the entries of the index that may be named.
        `files`: as for `gate`.
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
        """Citations name sources, or the ids of conversations in sources of the team.

        `was_too_long`: an earlier draft was longer than `max_chars`, and the prompt says so. `toolset`: what may be
        looked up before answering.
        """
        ...

    async def verify(
        self, conversation: Conversation, draft: str, sources: Sequence[Source], usage: Usage
    ) -> VerificationResult: ...


class ModelAssistant:
    """Composes the prompts, and leaves calls and retries to the asker. `limits`: of the tool calls of one answer;
    `out_of_scope_hint`: where to ask what is out of scope, as the operator says it.
    """

    def __init__(
        self, asker: Asker, tasks: prompts.Tasks, limits: ToolLimits | None = None, *, out_of_scope_hint: str = ""
    ) -> None:
        self._asker = asker
        self._out_of_scope_hint = out_of_scope_hint
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
        offered: Sequence[Offered],
        max_sources: int,
        usage: Usage,
        *,
        files: Sequence[str] = (),
    ) -> SelectionResult:
        prompt = prompts.select(self._tasks, query, request, offered, max_sources, files)
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
        given = _given(sources)
        files, tools = (None, ()) if toolset is None else (toolset.files, toolset.tools)
        prompt = prompts.generate(
            self._tasks,
            conversation,
            query,
            given,
            max_chars=max_chars,
            was_too_long=was_too_long,
            files=files,
            out_of_scope_hint=self._out_of_scope_hint,
        )
        result = await self._asker.ask("generate", prompt, AnswerResult, usage, tools=tools, limits=self._limits)
        shown = prompts.conversations_in(given)
        cited = [next(iter(resolve_conversations([each], shown)[0]), each) for each in result.citations]
        return result.model_copy(update={"citations": cited})

    async def verify(
        self, conversation: Conversation, draft: str, sources: Sequence[Source], usage: Usage
    ) -> VerificationResult:
        prompt = prompts.verify(self._tasks, conversation, draft, _given(sources), self._out_of_scope_hint)
        return await self._asker.ask("verify", prompt, VerificationResult, usage)


def _given(sources: Sequence[Source]) -> list[Given]:
    return [Given(source.id, source.title, source.text, source.is_excerpt) for source in sources]
