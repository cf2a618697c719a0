"""No search at all, for a while, in a store that has stopped working (DOCUMENT_QA 8.4)."""

from __future__ import annotations

import clock

FAILURES = 5
PAUSE_SECONDS = 60.0


class Breaker:
    """Opens after five failures in a row; after a minute one search is let through to try."""

    def __init__(self, *, failures: int = FAILURES, pause_seconds: float = PAUSE_SECONDS) -> None:
        self._most = failures
        self._pause = pause_seconds
        self._failures = 0
        self._open_until: float | None = None

    @property
    def is_open(self) -> bool:
        return self._open_until is not None and clock.now() < self._open_until

    def failed(self) -> None:
        self._failures += 1
        if self._failures >= self._most:
            self._open_until = clock.now() + self._pause

    def worked(self) -> None:
        self._failures = 0
        self._open_until = None
