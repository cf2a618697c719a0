"""An endpoint as the program uses it."""

from __future__ import annotations

import clock
from services.llm.breaking import BreakingEndpoint
from services.llm.crynux import CrynuxEndpoint
from services.llm.endpoint import Endpoint, EndpointSettings, Reply, Request
from services.llm.retrying import RetryingEndpoint


class OutsideEndpoint:
    """Asks `inner` where time is real, so that retries, pauses and time-outs take no virtual time."""

    def __init__(self, inner: Endpoint) -> None:
        self._inner = inner

    async def complete(self, request: Request) -> Reply:
        return await clock.real_time(lambda: self._inner.complete(request))

    async def aclose(self) -> None:
        # There as well: the client belongs to the loop that made its calls.
        await clock.real_time(self._inner.aclose)


def open_endpoint(settings: EndpointSettings) -> Endpoint:
    """The model that `settings` name, with retries and a circuit breaker. Nothing is imported or dialled yet.

    One per setting, closed at shutdown; used from one loop.

    Raises:
        ValueError: `base_url` or `model` is empty.
    """
    if not settings.base_url or not settings.model:
        raise ValueError("an LLM needs both base_url and model")
    once = CrynuxEndpoint(settings)
    patient = RetryingEndpoint(once, max_retries=settings.max_retries, retry_timeouts=settings.retry_timeouts)
    return OutsideEndpoint(BreakingEndpoint(patient, once, name=settings.name))
