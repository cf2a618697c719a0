"""Ask all processes for their status (request and reply): what the dashboard shows of the fleet."""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from pathlib import Path

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from pydantic import TypeAdapter, ValidationError

from model.processes import ProcessStatus

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


async def gather(client: Client, seconds: float = 1.0, *, expected: int | None = None) -> list[ProcessStatus]:
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
