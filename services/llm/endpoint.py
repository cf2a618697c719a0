"""What a model is asked and what it replies, whoever carries it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol
from urllib.parse import urlsplit

Method = Literal["function_calling", "json_schema"]
"""How the wanted shape is stated: as the one tool that must be called, or as the format of the response."""

Part = Mapping[str, object]
"""A piece of a user message as OpenAI's chat completions take it: `{"type": "text", …}` or an adapter's image."""


@dataclass(frozen=True, slots=True)
class EndpointSettings:
    base_url: str
    """Required: without it the client would silently call api.openai.com."""
    model: str
    api_key: str = field(default="", repr=False)
    vram_limit: int = 24
    """In GB; Crynux chooses machines by it, others ignore it."""
    method: Method = "function_calling"
    timeout_seconds: float = 60
    """Bounds one attempt."""
    max_retries: int = 2
    retry_timeouts: bool = False
    """Also retry a 504 or a client time-out; a job may then be billed twice."""
    max_tokens: int = 4096
    """Length of a reply at most."""

    @property
    def name(self) -> str:
        """How messages call this endpoint: the host and model, never a password that the address may carry."""
        return f"LLM {self.model} at {urlsplit(self.base_url).netloc.rpartition('@')[2]}"


@dataclass(frozen=True, slots=True)
class Function:
    """A tool as a request offers it."""

    name: str
    description: str
    parameters: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class RequestedCall:
    """A tool that the model wants called."""

    id: str
    name: str
    arguments: str
    """As the model wrote them; JSON, if all is well."""


@dataclass(frozen=True, slots=True)
class Round:
    """One round of tool calls: what the model said along with them, and what came of each."""

    calls: tuple[RequestedCall, ...]
    results: tuple[str, ...]
    """One for each call."""
    text: str = ""


@dataclass(frozen=True, slots=True)
class CallOptions:
    """How one call differs from what the endpoint's settings say."""

    temperature: float
    max_tokens: int
    """Length of the reply at most."""
    retries: int
    """How often the client asks again when the endpoint was not there. Who asks may do so itself instead."""


@dataclass(frozen=True, slots=True)
class Request:
    step: str
    """Who asks (`gate`, `select`, …); does not go over the wire."""
    system: str
    user: tuple[Part, ...]
    schema_name: str
    """The class name of the wanted model."""
    schema: Mapping[str, object]
    method: Method
    tools: tuple[Function, ...] = ()
    """Offered beside the wanted shape, which then is one more tool; the model chooses. Empty: the shape is required."""
    rounds: tuple[Round, ...] = ()
    """What has been called so far, after the user's message."""
    options: CallOptions | None = None
    """None: as the settings say."""


@dataclass(frozen=True, slots=True)
class Reply:
    text: str
    """The arguments of the tool call, or the content, or both, as the model wrote them."""
    prompt_tokens: int
    completion_tokens: int
    finish_reason: str | None
    """`stop`, `tool_calls`, `length` (cut at the limit), …; None when the server does not say."""
    calls: tuple[RequestedCall, ...] = ()
    """Each tool call by itself, that of the wanted shape included; of requests that offer tools only."""
    content: str = ""
    """What was said beside the calls."""


class Endpoint(Protocol):
    async def complete(self, request: Request) -> Reply:
        """Ask the model once.

        Raises:
            LLMError: one of its kinds (services.llm.errors).
        """
        ...

    async def aclose(self) -> None:
        """Let go of connections or files. Calling it again does nothing."""
        ...
