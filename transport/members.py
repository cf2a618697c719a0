"""Which processes are alive and which roles they have, and the status that each reports when asked."""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import NoRespondersError
from nats.js import JetStreamContext
from nats.js.kv import KeyValue
from pydantic import TypeAdapter, ValidationError

from model.processes import ProcessStatus
from transport.key_value import values
from transport.streams import MEMBERS

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


SUBJECT = "millrace.status"
MIB = 1024 * 1024

log = logging.getLogger(__name__)
_statuses = TypeAdapter(ProcessStatus)


async def answer_status(client: Client, status: Callable[[], ProcessStatus]) -> Subscription:
    """Answer whoever asks, until what is given is unsubscribed."""

    async def asked(message: Msg) -> None:
        if message.reply:
            await client.publish(message.reply, _statuses.dump_json(status()))

    return await client.subscribe(SUBJECT, cb=asked)


async def gather_statuses(client: Client, seconds: float = 1.0, *, expected: int | None = None) -> list[ProcessStatus]:
    """Ask all processes; gives what was answered within `seconds`, by name. With `expected` answers it is over sooner.

    Raises what the client raises where there is no connection.
    """
    found: dict[str, ProcessStatus] = {}
    enough = asyncio.Event()

    async def answered(message: Msg) -> None:
        try:
            status = _statuses.validate_json(message.data)
        except ValidationError as error:
            log.debug("a process of another version answers: %s", error)
            return
        found[status.name] = status
        if expected is not None and len(found) >= expected:
            enough.set()

    inbox = client.new_inbox()
    listening = await client.subscribe(inbox, cb=answered)
    try:
        await client.publish(SUBJECT, reply=inbox)
        async with asyncio.timeout(seconds):
            await enough.wait()
    except TimeoutError:
        pass  # all that are there have had their time
    finally:
        await listening.unsubscribe()
    return sorted(found.values(), key=lambda status: status.name)


def memory_mb() -> float:
    """What this process holds in memory now; 0 where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, IndexError, ValueError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / MIB
