"""How long one fetch may take, over all its redirects together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from services.knowledge.pages import FetchTimedOut


class TimeBudget:
    """`seconds`, spent piece by piece. What lies between the pieces (the wait for a host's turn) costs nothing."""

    def __init__(self, seconds: float) -> None:
        self._whole = seconds
        self._left = seconds

    @asynccontextmanager
    async def spending(self) -> AsyncGenerator[None]:
        """Ends what happens within, slow as it may trickle, when nothing is left.

        Raises:
            FetchTimedOut: it came to that.
        """
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            async with asyncio.timeout(self._left):
                yield
        except TimeoutError:
            raise FetchTimedOut(f"no whole answer within {self._whole:g} s") from None
        finally:
            self._left = max(0.0, self._left - (loop.time() - begun))
