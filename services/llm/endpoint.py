"""The interface to a model: request, reply, settings and errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol
from urllib.parse import urlsplit


class LLMError(Exception):
    """A step has no usable result; the message is one line that says who failed and what to do. Only `UnknownRequest`
    quotes, to show how two prompts differ: servers echo keys and prompts.
    """


class Unavailable(LLMError):
    """The endpoint was not reached, is overloaded or broken (connection error, 408, 409, 429, 5xx): a retry may help,
    after `retry_after` seconds, if it asked to wait.
    """

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class TimedOut(LLMError):
    """No answer in time, here or there (504); the job may run on and be billed: no retry by default."""


class Rejected(LLMError):
    """The request was refused (other 4xx): configuration or credit; a person has to act."""


class PromptRefused(Rejected):
    """One request was refused (400), as by a filter of contents: another prompt may pass."""


class BadOutput(LLMError):
    """The answer is no chat completion, or two replies in a row contained no valid object."""


class UnknownRequest(LLMError):
    """The file of a replay has no exchange for this request."""


Method = Literal["function_calling", "json_schema"]
"""The form in which a JSON schema is requested: as the one tool that must be called, or as the response format."""

ContentPart = Mapping[str, object]
"""A piece of a user message in OpenAI's chat completions: `{"type": "text", …}` or an image."""


@dataclass(frozen=True, slots=True)
class EndpointSettings:
    """The address of a model and how it is called.

    Attributes:
        base_url: must not be empty: the client would silently call api.openai.com.
        vram_limit: in GB; Crynux chooses machines by it, others ignore it.
        timeout_seconds: for one attempt.
        retry_timeouts: also retry a 504 or a client time-out; a job may then be billed twice.
        max_tokens: of a reply.
    """

    base_url: str
    model: str
    api_key: str = field(default="", repr=False)
    vram_limit: int = 24
    method: Method = "function_calling"
    timeout_seconds: float = 60
    max_retries: int = 2
    retry_timeouts: bool = False
    max_tokens: int = 4096

    @property
    def name(self) -> str:
        """The endpoint's name in messages: model and host, without a password that the address may hold."""
        return f"LLM {self.model} at {urlsplit(self.base_url).netloc.rpartition('@')[2]}"


@dataclass(frozen=True, slots=True)
class Function:
    """A tool as a request offers it."""

    name: str
    description: str
    parameters: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class RequestedCall:
    """A tool that the model wants to call. `arguments`: as the model wrote them, usually JSON."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Round:
    """One round of tool calls: the calls and the `text` of the model, and one result for each call."""

    calls: tuple[RequestedCall, ...]
    results: tuple[str, ...]
    text: str = ""


@dataclass(frozen=True, slots=True)
class CallOptions:
    """Options of one call in place of the endpoint's settings. `retries`: 0 if the caller retries itself."""

    temperature: float
    max_tokens: int
    retries: int


@dataclass(frozen=True, slots=True)
class Request:
    """One request to a model.

    Attributes:
        step: who asks (`gate`, `select`, …); does not go over the wire.
        schema_name: the class name of the Pydantic model that the reply must fit.
        tools: offered beside the schema, which then is one more tool. If empty, the model must use the schema.
        rounds: the calls so far, after the user's message.
    """

    step: str
    system: str
    user: tuple[ContentPart, ...]
    schema_name: str
    schema: Mapping[str, object]
    method: Method
    tools: tuple[Function, ...] = ()
    rounds: tuple[Round, ...] = ()
    options: CallOptions | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply of a model.

    Attributes:
        text: the arguments of all tool calls and the content, as the model wrote them.
        finish_reason: `stop`, `tool_calls`, `length` (cut at the limit), …; None if the server gives none.
        calls, content: the calls and the content in `text`, if the request offered tools; else empty.
    """

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    finish_reason: str | None = None
    calls: tuple[RequestedCall, ...] = ()
    content: str = ""


class Endpoint(Protocol):
    """Calls a model, or stands in for one. `aclose` may be called more than once."""

    async def complete(self, request: Request) -> Reply:
        """Ask the model once. Raises an `LLMError`."""
        ...

    async def aclose(self) -> None: ...
