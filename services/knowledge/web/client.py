"""An HTTP client that reaches the public internet and nothing else: checks and counts redirects, and limits the rate of
requests to each host.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from functools import partial

from aiohttp import ThreadedResolver
from aiohttp.abc import AbstractResolver
from aiolimiter import AsyncLimiter
from yarl import URL

import clock
from model.processes import VERSION
from services.knowledge.web.exchange import PAGES, Answer, HttpExchange, check_allowed, check_url, host_key, parse_url
from services.knowledge.web_interface import FetchFailed, FetchTimedOut, NotModified

MAX_REDIRECTS = 5
USER_AGENT = f"Millrace/{VERSION} (+https://millrace.example/bot)"
"""The name of this program in requests, with the address where a site's owner can read about it."""

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_LEVEL_DIGITS = 3
"""The decimal places to which the level of a limiter is rounded."""


class CheckedClient:
    """Fetches from the public internet and from `private_hosts`, and reaches nothing else.

    `timeout_seconds` bounds a whole fetch with its redirects, without the wait for the host's turn. `max_bytes` bounds
    a body, before and after decompression. On a virtual clock, the wait takes virtual time, and the exchange none.
    """

    def __init__(
        self,
        *,
        timeout_seconds: float = 30,
        max_bytes: int = 2_000_000,
        requests_per_second: float = 2,
        private_hosts: Collection[str] = (),
        resolver: Callable[[], AbstractResolver] = ThreadedResolver,
    ) -> None:
        self._timeout = timeout_seconds
        self._private_hosts = frozenset(map(host_key, private_hosts))
        self._turns = Turns(requests_per_second)
        self._exchange = HttpExchange(
            max_bytes=max_bytes, private_hosts=self._private_hosts, user_agent=USER_AGENT, resolver=resolver
        )

    async def get(self, url: str, headers: Mapping[str, str] | None = None, *, max_bytes: int | None = None) -> Answer:
        """Return the answer after all redirects, of any status. `max_bytes`: the limit of its body, if not the usual.

        If-Modified-Since in `headers` is not sent after a redirect: the redirect may lead to another page than last
        time, which may be older and still new to us.

        Raises:
            FetchFailed: the server gives no answer, or must not be asked.
            FetchTimedOut: it gave none in time.
        """
        budget = _TimeBudget(self._timeout)
        at = check_url(url, self._private_hosts)
        sent = dict(headers or {})
        seen: set[URL] = set()
        while True:
            seen.add(at)
            await self._turns.take(at.raw_host or "")
            answer = await clock.run_in_real_time(partial(self._ask, budget, at, sent, None, max_bytes))
            if answer.status not in _REDIRECTS:
                return answer
            at = next_url(answer, self._private_hosts)
            if at in seen:
                raise FetchFailed("its redirects lead in a circle")
            if len(seen) > MAX_REDIRECTS:
                raise FetchFailed(f"it redirects more than {MAX_REDIRECTS} times")
            sent.pop("If-Modified-Since", None)

    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str], *, max_bytes: int, seconds: float
    ) -> Answer:
        """Send a query that does not fit into an address, and return the answer. The query changes nothing on the
        server. Redirects are not followed. `seconds`: the time limit. Raises as `get`.
        """
        at = check_url(url, self._private_hosts)
        await self._turns.take(at.raw_host or "")
        return await clock.run_in_real_time(partial(self._ask, _TimeBudget(seconds), at, headers, body, max_bytes))

    def pause(self, url: str, seconds: float) -> None:
        """Keep requests to a host at least `seconds` apart from now on."""
        self._turns.slow_down(URL(url).raw_host or "", seconds)

    async def _ask(
        self, budget: _TimeBudget, url: URL, headers: Mapping[str, str], body: bytes | None, max_bytes: int | None
    ) -> Answer:
        async with budget.spending():
            return await self._exchange.ask(url, headers, body, max_bytes)


def next_url(answer: Answer, private_hosts: Collection[str]) -> URL:
    """Return the address that a redirect leads to, if it may be fetched. Raises FetchFailed: it has no target or one
    that `check_url` refuses; or it leads from https to http, where anybody on the way could change the text.
    """
    location = answer.headers.get("Location", "")
    try:
        url = answer.url.join(parse_url(location)).with_fragment(None)
    except ValueError:
        raise FetchFailed("it redirects to something that is no URL") from None
    if not location:
        raise FetchFailed("it redirects without saying where to")
    if answer.url.scheme == "https" and url.scheme == "http":
        raise FetchFailed("it redirects from https to http, which is not followed")
    try:
        return check_allowed(url, private_hosts)
    except FetchFailed as refused:
        raise FetchFailed(f"it redirects to where nothing is fetched: {refused}") from None


class _TimeBudget:
    """Bounds the seconds of a fetch with all its redirects, without the waits between them."""

    def __init__(self, seconds: float) -> None:
        self._whole = seconds
        self._left = seconds

    @asynccontextmanager
    async def spending(self) -> AsyncGenerator[None]:
        """Count the time of the block; raise FetchTimedOut when no time is left."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            async with asyncio.timeout(self._left):
                yield
        except TimeoutError:
            raise FetchTimedOut(f"no whole answer within {self._whole:g} s") from None
        finally:
            self._left = max(0.0, self._left - (loop.time() - begun))


class Turns:
    """Limits the rate of requests to each host: one every `1 / per_second`, by the clock of the running loop."""

    def __init__(self, per_second: float) -> None:
        self._pause = 1 / per_second
        self._pauses: dict[str, float] = {}
        """The pauses of hosts that demand longer ones."""
        self._hosts: dict[str, AsyncLimiter] = {}

    async def take(self, host: str) -> None:
        """Wait until a request to `host` is allowed. Waiting for one host does not delay others."""
        key = host_key(host)
        limiter = self._hosts.get(key)
        if limiter is None:
            # Drop idle limiters: redirects and rendered pages would collect hosts for ever.
            self._hosts = {host: limiter for host, limiter in self._hosts.items() if not limiter.has_capacity()}
            limiter = self._hosts[key] = _Limiter(1, self._pauses.get(key, self._pause))
        await limiter.acquire()

    def slow_down(self, host: str, pause: float) -> None:
        """Keep the turns of a host at least `pause` seconds apart, from the turn after the next one."""
        key = host_key(host)
        if self._pauses.get(key, self._pause) == max(pause, self._pause):
            return
        self._pauses[key] = max(pause, self._pause)
        self._hosts.pop(key, None)


class _Limiter(AsyncLimiter):
    """A limiter that tolerates rounding errors: else it would wait zero seconds for 10⁻¹⁶ of a turn, and a virtual
    clock does not move on meanwhile.
    """

    __slots__ = ()

    def _leak(self) -> None:
        super()._leak()
        self._level = round(self._level, _LEVEL_DIGITS)


NOT_MODIFIED = 304
_TEXTS = (".md", ".mdx", ".markdown", ".rst", ".txt")
_LONGEST_VALIDATOR = 1024
"""The length of an ETag or a time. Longer ones are not kept."""


async def ask(
    client: CheckedClient, url: str, etag: str | None, last_modified: str | None, *, max_bytes: int | None = None
) -> Answer | NotModified:
    """Request a page, unless it is unchanged. A validator that no header can hold is left out. Raises FetchFailed: the
    answer is no page; FetchTimedOut: the server gave none in time.
    """
    conditions = {"If-None-Match": etag, "If-Modified-Since": last_modified}
    sent = {name: value for name, value in conditions.items() if value and _is_storable(value)}
    answer = await client.get(url, sent, max_bytes=max_bytes)
    if answer.status == NOT_MODIFIED and (etag or last_modified):
        return NotModified(*validators(answer.headers))
    return check_status(answer)


def validators(headers: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Return the ETag and the Last-Modified of an answer; None for each that it lacks."""
    etag, last_modified = headers.get("ETag"), headers.get("Last-Modified")
    return (
        etag if etag and _is_storable(etag) else None,
        last_modified if last_modified and _is_storable(last_modified) else None,
    )


def check_status(answer: Answer) -> Answer:
    """Return `answer` if its status is that of a page. Raises FetchFailed, with the status."""
    if answer.status not in PAGES:
        raise FetchFailed(f"the server answered HTTP {answer.status}")
    return answer


def content_type(answer: Answer) -> str:
    """Return the content type in the answer; for text files without a type, Markdown."""
    named = answer.headers.get("Content-Type", "")
    unnamed = named.partition(";")[0].strip().lower() in {"", "application/octet-stream", "binary/octet-stream"}
    return "text/markdown" if unnamed and answer.url.path.lower().endswith(_TEXTS) else named


def _is_storable(value: str) -> bool:
    return len(value) <= _LONGEST_VALIDATOR and value.isascii() and value.isprintable()
