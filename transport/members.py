"""Which processes are alive and which roles they have, and the status that each reports when asked."""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import NoRespondersError
from nats.js import JetStreamContext
from nats.js.kv import KeyValue
from pydantic import TypeAdapter, ValidationError

from model.processes import ProcessStatus
from transport.connection import subscribe
from transport.key_value import read_values
from transport.streams import MEMBERS

PRESENCE_SUBJECT = "millrace.process.{}"
"""The subject on which a process answers, by its name."""
ANSWER_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Member:
    name: str
    roles: tuple[str, ...]


class Members:
    """The bucket `members`: the processes that are alive, and this one among them."""

    def __init__(self, streams: JetStreamContext, me: Member) -> None:
        self.me = me
        self._streams = streams
        self._value = json.dumps({"roles": list(me.roles)}).encode()
        self._cached_bucket: KeyValue | None = None

    async def send_heartbeat(self) -> None:
        """Renew this process's key for another lease."""
        await (await self._bucket()).put(self.me.name, self._value)

    async def leave(self) -> None:
        await (await self._bucket()).purge(self.me.name)

    async def list_alive(self) -> Mapping[str, Member]:
        """Return the processes with a heartbeat within the lease, by name."""
        found: dict[str, Member] = {}
        for name, value in (await read_values(self._streams, MEMBERS)).items():
            roles = cast("Mapping[str, Any]", json.loads(value)).get("roles", ())
            found[name] = Member(name, tuple(cast("Sequence[str]", roles)))
        return found

    async def _bucket(self) -> KeyValue:
        if self._cached_bucket is None:
            self._cached_bucket = await self._streams.key_value(MEMBERS)
        return self._cached_bucket


async def answer_presence(client: Client, name: str) -> Subscription:
    """Answer the requests of `find_disconnected` until the returned subscription ends."""

    async def on_request(message: Msg) -> None:
        await message.respond(b"")

    return await subscribe(client, PRESENCE_SUBJECT.format(name), on_request)


async def find_disconnected(client: Client, names: Iterable[str]) -> set[str]:
    """Return which processes are disconnected, even with a heartbeat in the bucket. Raises as the client."""

    async def is_disconnected(name: str) -> bool:
        try:
            await client.request(PRESENCE_SUBJECT.format(name), timeout=ANSWER_SECONDS)
        except NoRespondersError:
            return True
        except TimeoutError:
            pass  # connected, but frozen
        return False

    asked = list(names)
    answers = await asyncio.gather(*map(is_disconnected, asked))
    return {name for name, disconnected in zip(asked, answers, strict=True) if disconnected}


STATUS_SUBJECT = "millrace.status"

log = logging.getLogger(__name__)
_statuses = TypeAdapter(ProcessStatus)


async def answer_status(client: Client, status: Callable[[], ProcessStatus]) -> Subscription:
    """Answer requests for the status until the returned subscription ends."""

    async def on_request(message: Msg) -> None:
        if message.reply:
            await client.publish(message.reply, _statuses.dump_json(status()))

    return await subscribe(client, STATUS_SUBJECT, on_request)


async def gather_statuses(client: Client, seconds: float = 1.0, *, expected: int | None = None) -> list[ProcessStatus]:
    """Ask all processes; returns the answers within `seconds`, or as soon as there are `expected` ones, by name."""
    found: dict[str, ProcessStatus] = {}
    enough = asyncio.Event()

    async def on_answer(message: Msg) -> None:
        try:
            status = _statuses.validate_json(message.data)
        except ValidationError as error:
            log.debug("a process of another version answers: %s", error)
            return
        found[status.name] = status
        if expected is not None and len(found) >= expected:
            enough.set()

    inbox = client.new_inbox()
    subscription = await client.subscribe(inbox, cb=on_answer)
    try:
        await client.publish(STATUS_SUBJECT, reply=inbox)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await enough.wait()
    finally:
        await subscription.unsubscribe()
    return sorted(found.values(), key=lambda status: status.name)
