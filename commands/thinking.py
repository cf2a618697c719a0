"""Which backend does the thinking: a model, a recording of one, or none."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from services.assistant import Assistant
from services.extractive import ExtractiveAssistant
from services.library import Library
from services.llm.endpoint import Endpoint, EndpointSettings
from services.llm.images import image_adapter
from services.llm.opening import open_endpoint
from services.llm.recording import RecordingEndpoint
from services.llm.replaying import ReplayEndpoint
from services.llm.structured import StructuredLLM
from services.model_assistant import ModelAssistant
from services.prompts import Tasks
from settings import AnswerSettings, LLMSettings

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
async def assistant_for(
    settings: AnswerSettings,
    library: Library,
    *,
    record: Path | None = None,
    replay: Path | None = None,
    observe: Observe = unobserved,
) -> AsyncGenerator[Assistant]:
    """The assistant for `ai_response.llm`, closed at the end of the block; the extractive one where that is null.

    `replay` answers from recorded exchanges instead of an endpoint, whether or not one is configured; `record`
    appends the exchanges of whichever answers.

    Raises:
        UnreadableExchanges: `replay` holds no exchange.
        OSError: `record` cannot be written.
    """
    llm = settings.llm
    endpoint: Endpoint
    if replay is not None:
        endpoint = ReplayEndpoint(replay)
    elif llm is not None:
        endpoint = open_endpoint(endpoint_settings(llm))
    else:
        yield ExtractiveAssistant(library)
        return
    if record is not None:
        endpoint = RecordingEndpoint(endpoint, record)
    try:
        method = "function_calling" if llm is None else llm.structured_output_method
        yield ModelAssistant(
            StructuredLLM(endpoint, method, image_adapter=image_adapter(settings.llm_image_adapter), observe=observe),
            tasks_of(settings),
        )
    finally:
        await endpoint.aclose()


def tasks_of(settings: AnswerSettings) -> Tasks:
    return Tasks(
        gate=settings.gating_prompt,
        select=settings.selection_prompt,
        generate=settings.answer_prompt,
        verify=settings.verification_prompt,
        project_introduction=settings.project_introduction,
    )
