"""What answers the questions put to a language model: an endpoint, recorded exchanges, or none."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path

from assembly.redaction import redactor_of
from assembly.searching import addresses_of
from services.assistant import Assistant, ModelAssistant, Tasks
from services.assistant.extractive import ExtractiveAssistant
from services.knowledge import Search
from services.llm import (
    DiscreetEndpoint,
    Endpoint,
    EndpointSettings,
    FewAtOnce,
    RecordingEndpoint,
    ReplayEndpoint,
    StructuredLLM,
    ToolLimits,
    image_adapter,
    open_endpoint,
)
from settings import AnswerSettings, LLMSettings, Settings

Observe = Callable[[str, float], None]
"""Called with the step and the real seconds of each LLM call."""


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
async def open_llm(
    settings: Settings,
    llm: LLMSettings | None,
    *,
    record: Path | None = None,
    replay: Path | None = None,
    observe: Observe | None = None,
    at_once: int | None = None,
) -> AsyncGenerator[StructuredLLM | None]:
    """The model behind `llm`, one of the `settings`, closed at the end of the block; None where there is none.

    `replay` answers from recorded exchanges instead of an endpoint, whether or not one is configured; `record`
    appends the exchanges of either.

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
    if at_once is not None:
        endpoint = FewAtOnce(endpoint, at_once)
    redact = redactor_of(settings).documentation_text
    endpoint = DiscreetEndpoint(endpoint, redact)
    if record is not None:
        # The recording is to hold no secret either, neither of what is asked nor of what is replied.
        endpoint = DiscreetEndpoint(RecordingEndpoint(endpoint, record), redact)
    async with aclosing(endpoint):
        method = "function_calling" if llm is None else llm.structured_output_method
        adapter = image_adapter(settings.ai_response.llm_image_adapter)
        yield StructuredLLM(endpoint, method, image_adapter=adapter, observe=observe)


@asynccontextmanager
async def open_llms(
    settings: Settings,
    *,
    record: Path | None = None,
    replay: Path | None = None,
    observe: Observe | None = None,
    at_once: int | None = None,
) -> AsyncGenerator[tuple[StructuredLLM | None, StructuredLLM | None]]:
    """The model for answering and the one for knowledge work, closed at the end of the block; None where there is none.

    They are one, unless `kb.llm` is set; with `replay` always, and there is no network. `at_once`: calls at a time of
    each; None: as many as there are. Raises as `open_llm`.
    """

    def client(llm: LLMSettings | None) -> AbstractAsyncContextManager[StructuredLLM | None]:
        return open_llm(settings, llm, record=record, replay=replay, observe=observe, at_once=at_once)

    async with AsyncExitStack() as stack:
        answering = knowledge = await stack.enter_async_context(client(settings.ai_response.llm))
        if settings.kb.llm is not None and replay is None:
            knowledge = await stack.enter_async_context(client(settings.kb.llm))
        yield answering, knowledge


def assistant_of(
    settings: Settings, search: Search, llm: StructuredLLM | None, shared: Settings | None = None
) -> Assistant:
    """Make the assistant over `llm`, or the extractive assistant over `search` where there is no model. `shared`: as
    for `addresses_of`.
    """
    if llm is None:
        addresses = addresses_of(settings, shared)
        return ExtractiveAssistant(search, addresses, reply_language=settings.ai_response.reply_language)
    files = settings.documents
    limits = ToolLimits(files.max_tool_calls, files.max_repeated_questions, files.tools_timeout_seconds)
    hint = settings.ai_response.out_of_scope_hint
    return ModelAssistant(llm, tasks_of(settings.ai_response), limits, out_of_scope_hint=hint)


def tasks_of(settings: AnswerSettings) -> Tasks:
    return Tasks(
        gate=settings.gating_prompt,
        select=settings.selection_prompt,
        generate=settings.answer_prompt,
        verify=settings.verification_prompt,
        project_introduction=settings.project_introduction,
    )
