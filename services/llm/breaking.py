"""No attempt at all, for a while, at an endpoint that has stopped answering.

Without it an endpoint that hangs costs every call its whole time-out, and a replay of a day that many minutes.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable

from services.llm.endpoint import Endpoint, Reply, Request
from services.llm.errors import LLMError, TimedOut, Unavailable

log = logging.getLogger(__name__)

FAILURES = 5
"""Calls in a row, each with its retries, that end without an answer before the endpoint is left alone."""

PAUSE_SECONDS = 30.0


class BreakingEndpoint:
    """A circuit breaker, in real seconds (`now`), and so inside of `clock.real_time`.

    After `FAILURES` calls in a row that ended `Unavailable` or `TimedOut`, calls fail at once for `PAUSE_SECONDS`.
    Then one is let through as a probe, to `once` instead of to `patient` (the same endpoint with retries): an
    answer, be it a refusal, ends the pause, and a failure begins another.
    """

    def __init__(
        self, patient: Endpoint, once: Endpoint, *, name: str, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._patient = patient
        self._once = once
        self._name = name
        self._now = now
        self._failures = 0
        self._closed_until: float | None = None
        self._probing = False

    async def complete(self, request: Request) -> Reply:
        if self._closed_until is None:
            return await self._ask(self._patient, request)
        left = self._closed_until - self._now()
        if left > 0 or self._probing:
            until = f"for {math.ceil(left)} s" if left > 0 else "until the call that tries it has ended"
            message = f"{self._name}, step {request.step}: has stopped answering and is not asked again {until}"
            raise Unavailable(f"{message}; check that it runs")
        self._probing = True
        try:
            return await self._ask(self._once, request)
        finally:
            self._probing = False

    async def aclose(self) -> None:
        await self._patient.aclose()

    async def _ask(self, endpoint: Endpoint, request: Request) -> Reply:
        try:
            reply = await endpoint.complete(request)
        except (Unavailable, TimedOut):
            self._count()
            raise
        except LLMError:
            self._mend()
            raise
        self._mend()
        return reply

    def _count(self) -> None:
        self._failures += 1
        # A call that began before the pause does not make it longer; a probe does.
        if self._failures >= FAILURES and (self._closed_until is None or self._probing):
            self._closed_until = self._now() + PAUSE_SECONDS
            log.warning("%s has stopped answering; not asked again for %g s", self._name, PAUSE_SECONDS)

    def _mend(self) -> None:
        if self._closed_until is not None:
            log.info("%s answers again", self._name)
        self._failures = 0
        self._closed_until = None
