"""Send acknowledgements without waiting for each, and check every two seconds that the server has them.

One that is lost while the server restarts or changes its leader would bring its message back after ten minutes. To
await the confirmation of each costs more than all the rest of a message's way. So they are sent, and the server is
asked now and then for how many it still waits; what is missing is sent again, which does no harm.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable

from nats.aio.client import Client

from transport.connection import AWAY

ACK = b"+ACK"
CHECK_SECONDS = 2.0
AGAIN_SECONDS = 0.02

log = logging.getLogger(__name__)


class AckSender:
    """The acknowledgements of one consumer. `unacknowledged` asks the server; `held`: how many are none yet."""

    def __init__(self, client: Client, unacknowledged: Callable[[], Awaitable[int]], held: Callable[[], int]) -> None:
        self._client, self._unacknowledged, self._held = client, unacknowledged, held
        self._unconfirmed: deque[str] = deque()
        self._asking = asyncio.Lock()

    async def send(self, replies: list[str]) -> None:
        """Acknowledge by the reply subjects of messages."""
        self._unconfirmed.extend(replies)
        for reply in replies:
            await self._client.publish(reply, ACK)

    async def check(self) -> None:
        """Until cancelled: see to it that the server has them."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            if self._unconfirmed:
                await self.settle()

    async def settled(self, seconds: float) -> None:
        """Wait until the server has all of them, but no longer."""
        try:
            async with asyncio.timeout(seconds):
                while True:
                    if await self.settle():
                        return
                    await asyncio.sleep(AGAIN_SECONDS)
        except TimeoutError:
            log.warning("nats: some messages will come again, and be known as done")

    async def settle(self) -> bool:
        """Whether all that were sent until now have arrived; else they are sent again."""
        async with self._asking:
            sent = len(self._unconfirmed)
            try:
                # On the same connection, and so after them. Not `flush`: the client cannot bear that it is given up.
                arrived = await self._unacknowledged() <= self._held()
                if not arrived:
                    for reply in list(self._unconfirmed)[:sent]:
                        await self._client.publish(reply, ACK)
            except AWAY:
                return False
            if arrived:
                for _ in range(sent):
                    self._unconfirmed.popleft()
            return arrived
