"""Ids that carry their time, as Discord makes them."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from model.messages import DISCORD_EPOCH_MS


class Snowflakes:
    """Makes ids from a clock; those of one millisecond are in the order of their making."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self._order = itertools.count(1)

    def make(self, at: float | None = None) -> int:
        """An id for now, or for `at` (seconds since 1970, UTC)."""
        moment = self.clock() if at is None else at
        milliseconds = round(moment * 1000) - DISCORD_EPOCH_MS
        return milliseconds << 22 | next(self._order) & (1 << 22) - 1
