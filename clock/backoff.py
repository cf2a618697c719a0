"""Pauses after failures."""

from __future__ import annotations

FIRST_SECONDS = 1.0
MOST_SECONDS = 300.0


class Backoff:
    """Pauses that double, from `first` to `most` seconds, until a success.

    Without jitter: one process asks one endpoint, one call at a time, and a replay waits as long each time.
    """

    def __init__(self, first: float = FIRST_SECONDS, most: float = MOST_SECONDS) -> None:
        self._first = first
        self._most = most
        self._next = first

    def pause(self, at_least: float = 0.0) -> float:
        """Seconds to wait after another failure; at least what the other side asked for, within bounds."""
        seconds = self._next
        self._next = min(self._most, 2 * seconds)
        return min(self._most, max(seconds, at_least))

    def reset(self) -> None:
        """After a success."""
        self._next = self._first
