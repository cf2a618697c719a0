"""Calls of an OpenAI-compatible endpoint, with a time-out, retries that respect `Retry-After`, a circuit breaker and a
limit of concurrent calls, all in real time; and a cheap check that the endpoint can be reached.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import random
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import clock
from services.llm.endpoint import Endpoint, EndpointSettings, LLMError, Reply, Request, TimedOut, Unavailable
from services.telemetry import connection_problem

if TYPE_CHECKING:
    from services.llm.chat import Chat

PROBE_SECONDS = 5.0
NOT_THIS_KEY = "does not accept the key"
"""The words of `why_unreachable` if the endpoint answers but rejects the key."""
PROBE_READ_BYTES = 1 << 12


log = logging.getLogger(__name__)


class ChatEndpoint:
    """Any OpenAI-compatible endpoint; each call is one attempt within the time limit. Makes its client at the first
    call. All calls, and `aclose`, belong on one ordinary loop.
    """

    def __init__(self, settings: EndpointSettings) -> None:
        self._settings = settings
        self._opening = asyncio.Lock()
        self._chat: Chat | None = None
        self._closed = False

    async def complete(self, request: Request) -> Reply:
        chat = await self._open_once()
        limit = self._settings.timeout_seconds
        try:
            # The client's own limit is per read: a server that drips bytes would hold a call for ever.
            return await clock.with_timeout(limit, lambda: chat.ask(request))
        except TimeoutError:
            who = f"{self._settings.name}, step {request.step}"
            raise TimedOut(f"{who}: no answer within {limit:g} s; raise timeout_seconds, or look at its load") from None

    async def aclose(self) -> None:
        async with self._opening:
            self._closed = True
            if self._chat is not None:
                await self._chat.aclose()

    async def _open_once(self) -> Chat:
        async with self._opening:
            if self._closed:
                raise Unavailable(f"{self._settings.name}: already closed; no calls during shutdown")
            if self._chat is None:
                # In a thread: the import alone would stall the gateway's heartbeat for a second.
                self._chat = await asyncio.to_thread(_open, self._settings)
            return self._chat


def import_client() -> None:
    """Import the client, for which the first call would wait otherwise. Blocks for seconds: call it in a thread."""
    import services.llm.chat  # noqa: F401, PLC0415  # pyright: ignore[reportUnusedImport] (the import is the purpose)


def vectors_client(timeout_seconds: float) -> object:
    """Return the HTTP client with which the OpenAI SDK fetches vectors. Blocks like `import_client`."""
    from services.llm.bounded import MAX_VECTORS_BYTES, BoundedClient  # noqa: PLC0415 (as below)

    return BoundedClient(timeout=timeout_seconds, max_bytes=MAX_VECTORS_BYTES)


def _open(settings: EndpointSettings) -> Chat:
    from services.llm.chat import Chat  # noqa: PLC0415 (1.1 s and 91 MB, wanted only when a call is made)

    return Chat(settings)


async def why_unreachable(settings: EndpointSettings, *, timeout_seconds: float = PROBE_SECONDS) -> str | None:
    """Ask for the list of models, which costs nothing. None if that works, else one sentence saying what is wrong."""
    import aiohttp  # noqa: PLC0415 (a tenth of a second, which only this needs here)

    try:
        trouble = await clock.run_in_real_time(lambda: _probe(settings, timeout_seconds))
    except TimeoutError:
        trouble = f"did not answer within {timeout_seconds:g} s"
    except (aiohttp.ClientError, ValueError, OSError) as error:
        trouble = f"cannot be reached: {connection_problem(error)}; check base_url"
    return None if trouble is None else f"{settings.name} {trouble}"


async def _probe(settings: EndpointSettings, timeout_seconds: float) -> str | None:
    import aiohttp  # noqa: PLC0415 (as above)

    headers = {"Authorization": f"Bearer {settings.api_key}"} if settings.api_key else {}
    address = f"{settings.base_url.rstrip('/')}/models"
    asked = aiohttp.request("GET", address, headers=headers, allow_redirects=False)
    async with asyncio.timeout(timeout_seconds), asked as response:
        status = response.status
        if 300 <= status < 400:  # noqa: PLR2004 (the class of redirects)
            return f"leads to another address, which is sent no key (HTTP {status}); set base_url to the right one"
        if status in {401, 403}:
            return f"{NOT_THIS_KEY} (HTTP {status}); check api_key"
        if status == 429:  # noqa: PLR2004 (too many requests: it answers)
            return None
        if status != 200:  # noqa: PLR2004 (OK)
            return f"does not list its models (HTTP {status}); check base_url, which usually ends in /v1"
        # The beginning of the body is enough to recognise JSON, however long the body is.
        if not (await response.content.read(PROBE_READ_BYTES)).lstrip().startswith((b"{", b"[")):
            return "answers with something that is no JSON; check base_url, which usually ends in /v1"
        return None


FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 60.0
"""Retried after this at the latest, even if the server asks for a longer pause."""

FAILURES = 5
"""The circuit opens after so many calls in a row without an answer, each with its retries."""
OPEN_SECONDS = 30.0


ObserveCalls = Callable[[str, LLMError | None], object]
"""Called with the name of an endpoint after each call of it, and with the error if it failed."""


def open_endpoint(
    settings: EndpointSettings, at_once: int | None = None, on_call: ObserveCalls | None = None
) -> Endpoint:
    """Return the endpoint that `settings` describe. Nothing is imported or dialled before the first call. `at_once`,
    `on_call`: as for `ResilientEndpoint`. Open one for each configured model, use it from one loop, and close it at
    shutdown. Raises ValueError: `base_url` or `model` is empty.
    """
    if not settings.base_url or not settings.model:
        raise ValueError("an LLM needs both base_url and model")
    return ResilientEndpoint(ChatEndpoint(settings), settings, at_once=at_once, on_call=on_call)


class ResilientEndpoint:
    """Calls `inner` in real time, so that calls, pauses and time-outs take no virtual time, and retries.

    - At most `at_once` calls are under way; the others wait in order, within the time of their answer.
    - A `Retry-After` of one call delays all calls, up to `LONGEST_PAUSE_SECONDS`.
    - A call is made up to `1 + max_retries` times, or as often as the request's options say. `Unavailable` is retried,
      and with `retry_timeouts` also `TimedOut`, whose job may still run and be billed. Pauses double, each times 0.5 to
      1.5 (`jitter` gives 0 to 1). None is shorter than the server asked for, up to `LONGEST_PAUSE_SECONDS`.
    - A circuit breaker: an endpoint that hangs must not cost every call its whole time-out. `FAILURES` calls in a row
      that end `Unavailable` or `TimedOut` open the circuit: calls fail at once for `OPEN_SECONDS`. Then one call is let
      through as a probe, without retries. Any answer, even a refusal, closes the circuit; a failed probe keeps it open
      for another `OPEN_SECONDS`.

    `now` is in the seconds of the loop that the calls run on. `on_call` hears of each call with its retries, and not of
    those that an open circuit refuses.
    """

    def __init__(
        self,
        inner: Endpoint,
        settings: EndpointSettings,
        *,
        at_once: int | None = None,
        jitter: Callable[[], float] = random.random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        now: Callable[[], float] = clock.loop_time,
        on_call: ObserveCalls | None = None,
    ) -> None:
        self._inner = inner
        self._on_call = on_call
        self._name = settings.name
        self._max_retries = settings.max_retries
        self._retried = (Unavailable, TimedOut) if settings.retry_timeouts else (Unavailable,)
        self._turns = contextlib.nullcontext() if at_once is None else asyncio.Semaphore(at_once)
        self._jitter = jitter
        self._sleep = sleep
        self._now = now
        self._not_before = -math.inf
        self._failures = 0
        self._open_until: float | None = None
        self._probing = False

    async def complete(self, request: Request) -> Reply:
        async with self._turns:
            return await clock.run_in_real_time(lambda: self.ask(request))

    async def aclose(self) -> None:
        # In real time as well: the client belongs to the loop that made its calls.
        await clock.run_in_real_time(self._inner.aclose)

    async def ask(self, request: Request) -> Reply:
        """Like `complete`, but in the time of the running loop, and without waiting for a turn."""
        if self._open_until is None:
            retries = self._max_retries if request.options is None else request.options.retries
            return await self._ask_and_count(request, retries)
        left = self._open_until - self._now()
        if left > 0 or self._probing:
            until = f"for {math.ceil(left)} s" if left > 0 else "until the call that probes it has ended"
            message = f"{self._name}, step {request.step}: has stopped answering and is not asked again {until}"
            raise Unavailable(f"{message}; check that it runs")
        self._probing = True
        try:
            return await self._ask_and_count(request, 0, is_probe=True)
        finally:
            self._probing = False

    async def _ask_and_count(self, request: Request, retries: int, *, is_probe: bool = False) -> Reply:
        """Ask, and open the circuit after too many failures, or close it after an answer."""
        try:
            reply = await self._ask_with_retries(request, retries)
        except (Unavailable, TimedOut) as error:
            self._report(error)
            self._failures += 1
            # A call that began before the circuit opened does not keep it open for longer; a probe does.
            if self._failures >= FAILURES and (self._open_until is None or is_probe):
                self._open_until = self._now() + OPEN_SECONDS
                log.warning("%s has stopped answering; not asked again for %g s", self._name, OPEN_SECONDS)
            raise
        except LLMError as error:
            self._report(error)
            self._close_circuit()
            raise
        self._report(None)
        self._close_circuit()
        return reply

    def _report(self, error: LLMError | None) -> None:
        if self._on_call is not None:
            self._on_call(self._name, error)

    def _close_circuit(self) -> None:
        if self._open_until is not None:
            log.info("%s answers again", self._name)
        self._failures = 0
        self._open_until = None

    async def _ask_with_retries(self, request: Request, retries: int) -> Reply:
        for attempt in range(retries):
            try:
                return await self._attempt(request)
            except self._retried as error:
                asked = getattr(error, "retry_after", None) or 0.0
                own = FIRST_PAUSE_SECONDS * 2**attempt * (0.5 + self._jitter())
                pause = min(LONGEST_PAUSE_SECONDS, max(own, asked))
                log.info("%s; asked again in %.1f s", error, pause)
            await self._sleep(pause)
        return await self._attempt(request)

    async def _attempt(self, request: Request) -> Reply:
        """Ask once, no sooner than the server allows."""
        # The server may have asked another call to wait longer while this one slept.
        while (left := self._not_before - self._now()) > 0:
            await self._sleep(left)
        try:
            return await self._inner.complete(request)
        except Unavailable as error:
            if error.retry_after is not None:
                until = self._now() + min(LONGEST_PAUSE_SECONDS, error.retry_after)
                self._not_before = max(self._not_before, until)
            raise
