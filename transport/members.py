"""Which processes are alive, and their roles: each renews a key of the bucket `members`, which expires. A connected
process also answers requests.
"""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import NoRespondersError
from nats.js import JetStreamContext
from nats.js.kv import KeyValue

from transport.bucket import values
from transport.layout import MEMBERS

HERE = "millrace.process.{}"
"""Where a process answers, by its name."""
ANSWER_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Peer:
    """A process, by its name, and the roles that it plays."""

    name: str
    roles: tuple[str, ...]


class Members:
    """The bucket, as one process sees it."""

    def __init__(self, streams: JetStreamContext, me: Peer) -> None:
        self.me = me
        self._streams = streams
        self._value = json.dumps({"roles": list(me.roles)}).encode()
        self._kept: KeyValue | None = None

    async def send_heartbeat(self) -> None:
        """Renew this process's key for another lease."""
        await (await self._bucket()).put(self.me.name, self._value)

    async def leave(self) -> None:
        await (await self._bucket()).purge(self.me.name)

    async def alive(self) -> Mapping[str, Peer]:
        """Everybody who was heard of within the lease, by name."""
        found: dict[str, Peer] = {}
        for name, value in (await values(self._streams, MEMBERS)).items():
            roles = cast("Mapping[str, Any]", json.loads(value)).get("roles", ())
            found[name] = Peer(name, tuple(cast("Sequence[str]", roles)))
        return found

    async def _bucket(self) -> KeyValue:
        if self._kept is None:
            self._kept = await self._streams.key_value(MEMBERS)
        return self._kept


async def answer_presence(client: Client, name: str) -> Subscription:
    """Answer the requests of `gone` until the returned subscription ends."""

    async def asked(message: Msg) -> None:
        await message.respond(b"")

    return await client.subscribe(HERE.format(name), cb=asked)


async def gone(client: Client, names: Iterable[str]) -> set[str]:
    """Which of these processes are disconnected, although their last heartbeat may still be in the bucket. Raises as
    the client.
    """

    async def listens(name: str) -> bool:
        try:
            await client.request(HERE.format(name), timeout=ANSWER_SECONDS)
        except NoRespondersError:
            return False
        except TimeoutError:
            return True  # it may be frozen
        return True

    asked = list(names)
    there = await asyncio.gather(*map(listens, asked))
    return {name for name, listening in zip(asked, there, strict=True) if not listening}
