"""Another attempt where it is worth one."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt

from services.llm.endpoint import Endpoint, Reply, Request
from services.llm.errors import TimedOut, Unavailable

log = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 60.0
"""Also for a server that asks for more: a step whose turn comes later than that is better given up."""


class RetryingEndpoint:
    """Asks `inner` up to `1 + max_retries` times, or as often as the request itself says.

    `Unavailable` is worth another try; `TimedOut` only with `retry_timeouts`, since the job may still run and be
    billed. Pauses double, each between half and one and a half times its length (`jitter` gives 0 to 1), and are
    never shorter than the server asked for.
    """

    def __init__(
        self,
        inner: Endpoint,
        *,
        max_retries: int,
        retry_timeouts: bool,
        jitter: Callable[[], float] = random.random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._inner = inner
        self._worthwhile = (Unavailable, TimedOut) if retry_timeouts else (Unavailable,)
        self._jitter = jitter
        self._attempts = 1 + max_retries
        self._sleep = sleep

    async def complete(self, request: Request) -> Reply:
        retrying = AsyncRetrying(
            retry=retry_if_exception(lambda error: isinstance(error, self._worthwhile)),
            stop=stop_after_attempt(self._attempts if request.options is None else 1 + request.options.retries),
            wait=self._pause,
            sleep=self._sleep,
            before_sleep=_say,
            reraise=True,
        )
        return await retrying(self._inner.complete, request)

    async def aclose(self) -> None:
        await self._inner.aclose()

    def _pause(self, state: RetryCallState) -> float:
        asked = getattr(_error(state), "retry_after", None) or 0.0
        own = FIRST_PAUSE_SECONDS * 2 ** (state.attempt_number - 1) * (0.5 + self._jitter())
        return min(LONGEST_PAUSE_SECONDS, max(own, asked))


def _error(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome else None


def _say(state: RetryCallState) -> None:
    log.info("%s; asked again in %.1f s", _error(state), state.upcoming_sleep)
