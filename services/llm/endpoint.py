"""The wire: what a model is asked and what it replies, however it is reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol
from urllib.parse import urlsplit

Method = Literal["function_calling", "json_schema"]
"""How the wanted shape is requested: as the one tool that must be called, or as the response format."""

Part = Mapping[str, object]
"""A piece of a user message in OpenAI's chat completions: `{"type": "text", …}` or an image."""


@dataclass(frozen=True, slots=True)
class EndpointSettings:
    """Where a model is and how it is called.

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
    """One round of tool calls: what the model asked for and said, and one result for each call."""

    calls: tuple[RequestedCall, ...]
    results: tuple[str, ...]
    text: str = ""


@dataclass(frozen=True, slots=True)
class CallOptions:
    """How one call differs from the endpoint's settings. `retries`: 0 if the caller retries itself."""

    temperature: float
    max_tokens: int
    retries: int


@dataclass(frozen=True, slots=True)
class Request:
    """One request to a model.

    Attributes:
        step: who asks (`gate`, `select`, …); does not go over the wire.
        schema_name: the class name of the wanted model.
        tools: offered beside the wanted shape, which then is one more tool. If empty, the shape is required.
        rounds: the calls so far, after the user's message.
    """

    step: str
    system: str
    user: tuple[Part, ...]
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
        calls, content: the same one by one, if the request offered tools; else empty.
    """

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    finish_reason: str | None = None
    calls: tuple[RequestedCall, ...] = ()
    content: str = ""


class Endpoint(Protocol):
    """Asks a model, or stands in for one. `aclose` may be called more than once."""

    async def complete(self, request: Request) -> Reply:
        """Ask the model once.

        Raises:
            LLMError: one of its kinds (services.llm.errors).
        """
        ...

    async def aclose(self) -> None: ...
