"""What lets an item be called off while it waits or is worked on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class CancelToken:
    """One item's fate: the first error given to it stays, and stops whatever step is at work on the item.

    Made on a running loop or off it; used from the loop's thread only.
    """

    __slots__ = ("_stop", "_timer", "error")

    def __init__(self) -> None:
        self.error: Exception | None = None
        """Why the item was called off; None while it was not."""
        self._stop: Callable[[], object] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def cancel(self, error: Exception) -> None:
        """Call the item off. A second call changes nothing."""
        if self.error is not None:
            return
        self.error = error
        self.close()
        if self._stop is not None:
            self._stop()

    def expire_in(self, seconds: float, error: Exception) -> None:
        """Cancel with `error` in so many seconds of the loop's time, unless closed before; the first call counts."""
        if self._timer is None and self.error is None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self.cancel, error)

    def attach(self, stop: Callable[[], object]) -> None:
        """`stop` is called when the token is cancelled; one step works on an item at a time.

        Raises:
            Exception: the error, where the item has been called off already.
        """
        if self.error is not None:
            raise self.error
        self._stop = stop

    def detach(self) -> None:
        self._stop = None

    def close(self) -> None:
        """The item is through: nothing expires any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
