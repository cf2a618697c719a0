"""Virtual time for tests with sockets."""

from __future__ import annotations

import selectors
from typing import Any

from clock import VirtualLoop

START = 1_771_200_000.0
"""2026-02-16, seconds since 1970: snowflakes need a time of today."""
PATIENCE_SECONDS = 0.005


class PatientLoop(VirtualLoop):
    """A virtual loop whose clock does not jump while there is something to read from a socket.

    Both ends of each connection are on this loop, so that what was sent is there as soon as it was sent; the little
    patience is for the kernel.
    """

    def __init__(self) -> None:
        super().__init__(START)

    def _idle(self) -> float:
        asyncio_loop: Any = self
        sockets: selectors.BaseSelector = asyncio_loop._selector._real
        return 0.0 if sockets.select(PATIENCE_SECONDS) else super()._idle()
