"""What the tests of this folder share: small requests, small settings, and endpoints that follow a script."""

from __future__ import annotations

from collections import deque
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

import clock
from services.llm.endpoint import Endpoint, EndpointSettings, LLMError, Reply, Request
from services.llm.recording import Recording
from services.llm.redacting import RedactingEndpoint
from services.llm.resilience import ResilientEndpoint
from services.llm.structured import wire_schema

T = TypeVar("T")

KEY = "sk-very-secret-key"


class Verdict(BaseModel):
    good: bool
    why: str


GOOD = '{"good": true, "why": "it runs"}'


def settings_of(base_url: str, **changes: Any) -> EndpointSettings:
    plain = EndpointSettings(base_url=base_url, model="m", api_key=KEY, timeout_seconds=5, max_retries=0)
    return replace(plain, **changes)


def request_of(text: str = "Does it run?", **changes: Any) -> Request:
    plain = Request(
        step="judge",
        system="Judge.",
        user=({"type": "text", "text": text},),
        schema_name="Verdict",
        schema=wire_schema(Verdict),
        method="json_schema",
    )
    return replace(plain, **changes)


def reply_of(text: str = GOOD, finish_reason: str | None = "stop") -> Reply:
    return Reply(text=text, prompt_tokens=11, completion_tokens=7, finish_reason=finish_reason)


@dataclass
class ScriptedEndpoint:
    """Gives each outcome once, in order, then the good reply."""

    outcomes: deque[Reply | LLMError] = field(default_factory=deque[Reply | LLMError])
    asked: list[Request] = field(default_factory=list[Request])
    closed: int = 0

    def then(self, *outcomes: Reply | LLMError) -> None:
        self.outcomes.extend(outcomes)

    async def complete(self, request: Request) -> Reply:
        self.asked.append(request)
        outcome = self.outcomes.popleft() if self.outcomes else reply_of()
        if isinstance(outcome, LLMError):
            raise outcome
        return outcome

    async def aclose(self) -> None:
        self.closed += 1


@dataclass
class Sleeper:
    """A clock that only sleeping moves."""

    now: float = 100.0
    pauses: list[float] = field(default_factory=list[float])

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


def patient(
    inner: Endpoint, sleeper: Sleeper | None = None, *, jitter: float = 0.5, **settings: Any
) -> ResilientEndpoint:
    """An endpoint over `inner` whose pauses take no time."""
    at = sleeper or Sleeper()
    return ResilientEndpoint(
        inner, settings_of("", **settings), jitter=lambda: jitter, sleep=at.sleep, now=lambda: at.now
    )


def recorded_in(inner: Endpoint, file: Path) -> RedactingEndpoint:
    return RedactingEndpoint(inner, str, Recording(file))


def run_virtually(coroutine: Coroutine[Any, Any, T], start: float = 1000.0) -> T:
    loop = clock.VirtualLoop(start)
    try:
        return loop.run_until_complete(coroutine)
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
