"""How often one host is asked."""

from __future__ import annotations

from aiolimiter import AsyncLimiter

from services.knowledge.web.urls import host_key

_DIGITS = 3
"""A host's turn is back when all but half a thousandth of its pause is over."""


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
            limiter = self._hosts[key] = _Limiter(1, self._pause)
        await limiter.acquire()

    @property
    def remembered(self) -> int:
        """How many hosts are kept in mind."""
        return len(self._hosts)

    def _forget_idle(self) -> None:
        # One that may be asked at once needs no memory; redirects and rendered pages would collect hosts for ever.
        self._hosts = {host: limiter for host, limiter in self._hosts.items() if not limiter.has_capacity()}


class _Limiter(AsyncLimiter):
    """Is content with almost enough.

    At the time that it has reckoned out itself, its own rounding can leave it short by 10⁻¹⁶ of a turn, for which it
    waits again: no time at all. A real clock moves on meanwhile, a virtual one does not.
    """

    __slots__ = ()

    def _leak(self) -> None:
        super()._leak()
        self._level = round(self._level, _DIGITS)
