"""Which backend does the thinking: a model, a recording of one, or none."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from services.assistant import Assistant, ModelAssistant, Tasks
from services.assistant.extractive import ExtractiveAssistant
from services.knowledge import Library
from services.llm import (
    Endpoint,
    EndpointSettings,
    RecordingEndpoint,
    ReplayEndpoint,
    StructuredLLM,
    ToolLimits,
    image_adapter,
    open_endpoint,
)
from settings import AnswerSettings, DocumentSettings, LLMSettings, Settings

Observe = Callable[[str, float], None]


def unobserved(_step: str, _seconds: float) -> None:
    """Nobody measures."""


def endpoint_settings(llm: LLMSettings) -> EndpointSettings:
    return EndpointSettings(
        base_url=llm.base_url,
        api_key=llm.api_key.get_secret_value(),
        model=llm.model,
        vram_limit=llm.vram_limit,
        method=llm.structured_output_method,
        timeout_seconds=llm.timeout_seconds,
        max_retries=llm.max_retries,
        retry_timeouts=llm.retry_timeouts,
    )


@asynccontextmanager
async def asker_for(
    llm: LLMSettings | None,
    *,
    adapter: str,
    record: Path | None = None,
    replay: Path | None = None,
    observe: Observe = unobserved,
) -> AsyncGenerator[StructuredLLM | None]:
    """Whom to put questions to that a model answers, closed at the end of the block; None where there is no model.

    `replay` answers from recorded exchanges instead of an endpoint, whether or not one is configured; `record`
    appends the exchanges of whichever answers. `adapter`: `ai_response.llm_image_adapter`.

    Raises:
        UnreadableExchanges: `replay` holds no exchange.
        OSError: `record` cannot be written.
    """
    endpoint: Endpoint
    if replay is not None:
        endpoint = ReplayEndpoint(replay)
    elif llm is not None:
        endpoint = open_endpoint(endpoint_settings(llm))
    else:
        yield None
        return
    if record is not None:
        endpoint = RecordingEndpoint(endpoint, record)
    try:
        method = "function_calling" if llm is None else llm.structured_output_method
        yield StructuredLLM(endpoint, method, image_adapter=image_adapter(adapter), observe=observe)
    finally:
        await endpoint.aclose()


@dataclass(frozen=True, slots=True)
class Askers:
    """Whom questions are put to; None where there is no model."""

    answering: StructuredLLM | None
    knowledge: StructuredLLM | None
    """The same as for answering, unless `kb.llm` is set."""


@asynccontextmanager
async def askers_for(
    settings: Settings, *, record: Path | None = None, replay: Path | None = None, observe: Observe = unobserved
) -> AsyncGenerator[Askers]:
    """One client for each setting, closed at the end of the block; with `replay` one for both, and no network.

    Raises:
        UnreadableExchanges, OSError: as `asker_for`.
    """
    adapter = settings.ai_response.llm_image_adapter

    def asker(llm: LLMSettings | None) -> AbstractAsyncContextManager[StructuredLLM | None]:
        return asker_for(llm, adapter=adapter, record=record, replay=replay, observe=observe)

    async with AsyncExitStack() as stack:
        answering = knowledge = await stack.enter_async_context(asker(settings.ai_response.llm))
        if settings.kb.llm is not None and replay is None:
            knowledge = await stack.enter_async_context(asker(settings.kb.llm))
        yield Askers(answering, knowledge)


@asynccontextmanager
async def assistant_for(
    settings: AnswerSettings,
    library: Library,
    *,
    record: Path | None = None,
    replay: Path | None = None,
    observe: Observe = unobserved,
) -> AsyncGenerator[Assistant]:
    """The assistant for `ai_response.llm`, with a client of its own, closed at the end of the block.

    Raises:
        UnreadableExchanges, OSError: as `asker_for`.
    """
    adapter = settings.llm_image_adapter
    async with asker_for(settings.llm, adapter=adapter, record=record, replay=replay, observe=observe) as asker:
        yield assistant_of(settings, library, asker)


def assistant_of(
    settings: AnswerSettings, library: Library, asker: StructuredLLM | None, limits: ToolLimits | None = None
) -> Assistant:
    """The assistant behind whom `asker` is; the extractive one where there is none. `limits`: of its tool calls."""
    return ExtractiveAssistant(library) if asker is None else ModelAssistant(asker, tasks_of(settings), limits)


def tool_limits(documents: DocumentSettings) -> ToolLimits:
    return ToolLimits(documents.max_tool_calls, documents.max_repeated_questions, documents.tools_timeout_seconds)


def tasks_of(settings: AnswerSettings) -> Tasks:
    return Tasks(
        gate=settings.gating_prompt,
        select=settings.selection_prompt,
        generate=settings.answer_prompt,
        verify=settings.verification_prompt,
        project_introduction=settings.project_introduction,
    )
