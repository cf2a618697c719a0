"""Asks for a URL and follows where it leads, with every hop checked and counted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial

from aiohttp import ThreadedResolver
from aiohttp.abc import AbstractResolver
from yarl import URL

import clock
from services.knowledge.pages import FetchFailed
from services.knowledge.web.budget import TimeBudget
from services.knowledge.web.exchange import Answer, HttpExchange
from services.knowledge.web.turns import Turns
from services.knowledge.web.urls import allowed, checked_url, host_key

MAX_REDIRECTS = 5
USER_AGENT = "Millrace/0.1.0 (+https://millrace.example/bot)"
"""Who asks, and where a site's owner can read about it."""

_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class CheckedClient:
    """Fetches from the public internet and from `private_hosts`, and reaches nothing else.

    `timeout_seconds` bounds a whole fetch with its redirects, save the wait for a host's turn, of which there is one
    every `1 / requests_per_second`. `max_bytes` bounds a body, packed or unpacked. Where time is virtual, a turn is
    waited for in virtual time, and the exchange itself takes none.
    """

    def __init__(
        self,
        *,
        timeout_seconds: float = 30,
        max_bytes: int = 2_000_000,
        requests_per_second: float = 2,
        private_hosts: Collection[str] = (),
        user_agent: str = USER_AGENT,
        resolver: Callable[[], AbstractResolver] = ThreadedResolver,
    ) -> None:
        self._timeout = timeout_seconds
        self._private_hosts = frozenset(map(host_key, private_hosts))
        self._turns = Turns(requests_per_second)
        self._exchange = HttpExchange(
            max_bytes=max_bytes, private_hosts=self._private_hosts, user_agent=user_agent, resolver=resolver
        )

    async def get(self, url: str, headers: Mapping[str, str] | None = None) -> Answer:
        """The answer at the end of all redirects, whatever its status. GET only: nothing out there is changed.

        Of the conditions in `headers`, If-Modified-Since is not sent on after a redirect: where it leads elsewhere
        than last time, that page may well be older, and its text still new to us.

        Raises:
            FetchFailed: there is no answer, or it may not be asked for.
            FetchTimedOut: there was none in time.
        """
        budget = TimeBudget(self._timeout)
        at = checked_url(url, self._private_hosts)
        sent = dict(headers or {})
        seen: set[URL] = set()
        while True:
            seen.add(at)
            await self._turns.take(at.raw_host or "")
            answer = await clock.real_time(partial(self._ask, budget, at, sent))
            if answer.status not in _REDIRECTS:
                return answer
            at = next_url(answer, self._private_hosts)
            if at in seen:
                raise FetchFailed("its redirects lead in a circle")
            if len(seen) > MAX_REDIRECTS:
                raise FetchFailed(f"it redirects more than {MAX_REDIRECTS} times")
            sent.pop("If-Modified-Since", None)

    async def _ask(self, budget: TimeBudget, url: URL, headers: Mapping[str, str]) -> Answer:
        async with budget.spending():
            return await self._exchange.get(url, headers)


def next_url(answer: Answer, private_hosts: Collection[str]) -> URL:
    """Where a redirect leads, if one may go there.

    Raises:
        FetchFailed: it leads nowhere, to what `checked_url` refuses, or from https to http: on that stretch anybody
            could put words into the knowledge base; who means it can list the http URL.
    """
    location = answer.headers.get("Location", "")
    try:
        url = answer.url.join(URL(location)).with_fragment(None)
    except ValueError:
        raise FetchFailed("it redirects to something that is no URL") from None
    if not location:
        raise FetchFailed("it redirects without saying where to")
    if answer.url.scheme == "https" and url.scheme == "http":
        raise FetchFailed("it redirects from https to http, which is not followed")
    try:
        return allowed(url, private_hosts)
    except FetchFailed as refused:
        raise FetchFailed(f"it redirects to where nothing is fetched: {refused}") from None
