"""How often one host is asked."""

from __future__ import annotations

from aiolimiter import AsyncLimiter

from services.web_fetcher.urls import host_key


class Turns:
    """Gives each host its turns, evenly `1 / per_second` apart, by the clock of the loop that waits for them."""

    def __init__(self, per_second: float) -> None:
        self._pause = 1 / per_second
        self._hosts: dict[str, AsyncLimiter] = {}

    async def take(self, host: str) -> None:
        """Wait until `host` may be asked. Those who wait for other hosts are not held up."""
        key = host_key(host)
        limiter = self._hosts.get(key)
        if limiter is None:
            self._forget_idle()
            limiter = self._hosts[key] = AsyncLimiter(1, self._pause)
        await limiter.acquire()

    def _forget_idle(self) -> None:
        # A full bucket says nothing; redirects and rendered pages would collect hosts for ever.
        self._hosts = {host: limiter for host, limiter in self._hosts.items() if not limiter.has_capacity()}
