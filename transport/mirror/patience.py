"""Retry reads for a minute while the server is away, as writes are retried."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from nats.js.errors import ObjectNotFoundError

from clock import Patience
from clock.backoff import Backoff
from transport.connection import AWAY
from transport.fence import PATIENCE_SECONDS, TRY_SECONDS

T = TypeVar("T")


async def patiently(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Do it again where the server is away. Raises OSError: for a minute."""
    backoff, patience = Backoff(0.1, TRY_SECONDS), Patience(PATIENCE_SECONDS)
    while True:
        try:
            return await work()
        except ObjectNotFoundError:
            raise
        except AWAY as error:
            if patience.is_over():
                raise OSError(errno.EIO, "NATS does not answer") from error
            await asyncio.sleep(backoff.pause())
