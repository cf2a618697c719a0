"""Calls through ChatCrynux and the OpenAI SDK, whose errors become `LLMError`s.

The only module that imports these libraries (1.1 s, 91 MB): import it only when a call is made.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Any, cast

import openai
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.tool import invalid_tool_call, tool_call
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_crynux import ChatCrynux  # pyright: ignore[reportMissingTypeStubs] (it ships no types)
from openai.types import CompletionUsage
from openai.types.chat import ChatCompletion
from pydantic import SecretStr

import clock
from services.llm.bounded import BoundedClient, UnusableReply
from services.llm.endpoint import (
    BadOutput,
    ContentPart,
    EndpointSettings,
    Function,
    LLMError,
    PromptRefused,
    Rejected,
    Reply,
    Request,
    RequestedCall,
    Round,
    TimedOut,
    Unavailable,
)
from services.storage import json_object

log = logging.getLogger(__name__)

_RETRY_STATUSES = frozenset({408, 409, 429})

MAX_TOKENS_OF_ONE_CALL = 100_000_000
"""More cannot be meant: no model reads a hundredth of it."""

_INVALID = "finds the request invalid; check model and structured_output_method"
_HINTS = {
    400: _INVALID,
    401: "does not accept the key; check api_key",
    402: "has no credits left; top up the account",
    403: "does not allow this key to use the model; check api_key and model",
    404: "does not know this address or model; check base_url and model",
    413: "finds the request too large; lower max_index_entries or max_source_chars, or send fewer images",
    422: _INVALID,
}


class CountingChat(ChatCrynux):
    """Replaces numbers of usage that are no counts by 0, and sends messages past the SDK's own validation."""

    def _get_request_payload(
        self, input_: LanguageModelInput, *, stop: list[str] | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        made = super()._get_request_payload(input_, stop=stop, **kwargs)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] (plain dicts)
        payload = cast("dict[str, Any]", made)
        # The SDK compares each message with every kind that it knows (a seventh of a call), and changes none of ours.
        payload["extra_body"] = {"messages": payload["messages"], **payload["extra_body"]}
        return {**payload, "messages": []}

    def _create_chat_result(
        self, response: dict[str, Any] | openai.BaseModel, generation_info: dict[str, Any] | None = None
    ) -> ChatResult:
        if isinstance(response, ChatCompletion):
            prompt, completion = (
                _count(getattr(response.usage, name, None)) for name in ("prompt_tokens", "completion_tokens")
            )
            response.usage = CompletionUsage(
                prompt_tokens=prompt, completion_tokens=completion, total_tokens=prompt + completion
            )
        return super()._create_chat_result(response, generation_info)  # pyright: ignore[reportUnknownMemberType] (plain dicts)


class Chat:
    """One client of one endpoint. Its connections belong to the loop that makes the first call."""

    def __init__(self, settings: EndpointSettings) -> None:
        self._settings = settings
        # The default client is shared by the whole process: closing one would close all.
        self._http = BoundedClient(timeout=settings.timeout_seconds)
        self._model = CountingChat(
            model=settings.model,
            base_url=settings.base_url,
            # The SDK requires a key, local servers have none.
            api_key=SecretStr(settings.api_key or "none"),
            vram_limit=settings.vram_limit,
            timeout=settings.timeout_seconds,
            max_retries=0,
            max_completion_tokens=settings.max_tokens,
            use_responses_api=False,
            http_async_client=self._http,
            cache=False,
        )

    async def ask(self, request: Request) -> Reply:
        """Make one attempt. Raises an `LLMError` for every failure."""
        messages: list[BaseMessage] = [SystemMessage(request.system), HumanMessage(_content(request.user))]
        messages += [message for each in request.rounds for message in _messages(each)]
        options: dict[str, Any] = {}
        if request.options is not None:
            options = {"temperature": request.options.temperature, "max_completion_tokens": request.options.max_tokens}
        try:
            # Not `ainvoke`: LangSmith's environment variables would have it send prompts to a third party, and its
            # callbacks, of which there are none, cost a sixth of a call.
            body = self._extra_body(request)
            result = await self._model._agenerate(messages, extra_body=body, **options)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] (what every model of LangChain implements)
            return _reply(result.generations[0], with_calls=bool(request.tools))
        except (openai.OpenAIError, ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            log.debug("%s, step %s: %s", self._settings.name, request.step, self._redacted(error))
            # Without its cause: the original holds the request's headers and echoes of the prompt.
            raise self._to_llm_error(error, request.step) from None

    async def aclose(self) -> None:
        await self._http.aclose()

    def _extra_body(self, request: Request) -> dict[str, object]:
        # Given as its own arguments, the SDK would parse the reply itself, and a bad one would be lost.
        # This replaces the model's own extra_body, so it has to repeat the VRAM limit.
        most = self._settings.max_tokens if request.options is None else request.options.max_tokens
        limits: dict[str, object] = {"vram_limit": self._settings.vram_limit, "max_tokens": most}
        if request.method == "json_schema" and not request.tools:
            schema = {"name": request.schema_name, "schema": request.schema, "strict": True}
            return {**limits, "response_format": {"type": "json_schema", "json_schema": schema}}
        wanted = Function(request.schema_name, f"Gives the {request.schema_name}.", request.schema)
        tools = [{"type": "function", "function": _as_dict(each)} for each in (*request.tools, wanted)]
        choice = {"type": "function", "function": {"name": request.schema_name}}
        # Not every server knows "required"; a reply in plain words is read as well.
        return {**limits, "tools": tools, "tool_choice": "auto" if request.tools else choice}

    def _redacted(self, error: Exception) -> str:
        key = self._settings.api_key
        text = f"{type(error).__name__}: {error}"
        return text.replace(key, "***") if key else text

    def _to_llm_error(self, error: Exception, step: str) -> LLMError:
        who = f"{self._settings.name}, step {step}:"
        if isinstance(error, openai.APITimeoutError):
            return TimedOut(f"{who} no answer within {self._settings.timeout_seconds:g} s; raise timeout_seconds")
        if isinstance(error, UnusableReply):
            return BadOutput(f"{who} sent a reply that {error}; check base_url and the server")
        if isinstance(error, openai.APIConnectionError):
            return Unavailable(f"{who} cannot be reached; check base_url and that the server runs")
        if isinstance(error, openai.APIStatusError):
            return _of_status(error, who)
        return BadOutput(f"{who} answered with something that is no chat completion; check base_url")


def _as_dict(function: Function) -> dict[str, object]:
    """Like `asdict`, but without a copy of the parameters."""
    return {"name": function.name, "description": function.description, "parameters": function.parameters}


def _count(figure: object) -> int:
    """Return a number of usage as a count; 0 if it is none."""
    # Some servers write 12.0.
    if isinstance(figure, bool) or not isinstance(figure, int | float):
        return 0
    return int(figure) if 0 <= figure <= MAX_TOKENS_OF_ONE_CALL and figure == int(figure) else 0


def _of_status(error: openai.APIStatusError, who: str) -> LLMError:
    status = error.status_code
    code = f", {error.code}" if re.fullmatch(r"[a-z_]{1,40}", error.code or "") else ""
    said = f"(HTTP {status}{code})"
    if error.response.has_redirect_location:
        return Rejected(f"{who} leads to another server, which is sent no prompt {said}; set base_url to the right one")
    if status == 504:  # noqa: PLR2004 (Gateway Timeout; its name in http.HTTPStatus says no more)
        return TimedOut(f"{who} gave up waiting for the model {said}; try later, or a smaller model")
    if status in _RETRY_STATUSES or status >= 500:  # noqa: PLR2004 (the class of server errors)
        retry_after = _seconds(error.response.headers.get("Retry-After"))
        return Unavailable(f"{who} is overloaded or broken {said}; try later", retry_after=retry_after)
    refused = PromptRefused if status == 400 else Rejected  # noqa: PLR2004 (Bad Request)
    return refused(f"{who} {_HINTS.get(status, 'refuses the request; check base_url and model')} {said}")


def _seconds(retry_after: str | None) -> float | None:
    """Return `Retry-After`, a number of seconds or an HTTP date (RFC 9110, 10.2.3), as seconds from now."""
    if retry_after is None:
        return None
    if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", retry_after.strip()):
        return float(retry_after)
    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - clock.now())
    except ValueError:
        return None


def _content(parts: tuple[ContentPart, ...]) -> str | list[str | dict[Any, Any]]:
    """Return a text if all parts are texts, as some servers take no lists; without empty ones, which Crynux refuses."""
    texts = [part["text"] for part in parts if part.get("type") == "text"]
    if len(texts) == len(parts):
        return "\n\n".join(str(text) for text in texts if text)
    return [dict(part) for part in parts if part.get("text") != ""]


def _messages(tool_round: Round) -> Iterator[BaseMessage]:
    """Return a round as messages: the model's own one and the results of its calls."""
    calls = [(call, json_object(call.arguments)) for call in tool_round.calls]
    valid = [tool_call(name=call.name, args=args, id=call.id) for call, args in calls if args is not None]
    invalid = [
        invalid_tool_call(name=call.name, args=call.arguments, id=call.id, error=None)
        for call, args in calls
        if args is None
    ]
    yield AIMessage(tool_round.text, tool_calls=valid, invalid_tool_calls=invalid)
    for call, result in zip(tool_round.calls, tool_round.results, strict=True):
        yield ToolMessage(result, tool_call_id=call.id)


def _reply(generation: ChatGeneration, *, with_calls: bool) -> Reply:
    message = cast("AIMessage", generation.message)
    calls = [
        RequestedCall(call["id"] or "", call["name"], json.dumps(call["args"], ensure_ascii=False))
        for call in message.tool_calls
    ]
    # Calls whose arguments are no JSON, because they are cut or surrounded by prose.
    calls += [
        RequestedCall(call["id"] or "", call["name"] or "", call["args"] or "") for call in message.invalid_tool_calls
    ]
    content = str(message.text)
    usage = message.usage_metadata
    reason: object = (generation.generation_info or {}).get("finish_reason")
    return Reply(
        text="\n".join(piece for piece in (*(call.arguments for call in calls), content) if piece),
        prompt_tokens=usage["input_tokens"] if usage else 0,
        completion_tokens=usage["output_tokens"] if usage else 0,
        finish_reason=reason if isinstance(reason, str) else None,
        calls=tuple(calls) if with_calls else (),
        content=content if with_calls else "",
    )
