"""Locks in the bucket `locks`: one IDENTIFY at a time, one number of shards for all gateways, and jobs that one
process does for all.
"""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from nats.aio.client import Client
from nats.errors import Error
from nats.js import JetStreamContext
from nats.js.errors import KeyNotFoundError, KeyWrongLastSequenceError
from nats.js.kv import KeyValue

from clock import cancelled
from transport.connection import AWAY_ERRORS, streams_of
from transport.errors import ServersUnusable
from transport.streams import LOCKS

log = logging.getLogger(__name__)


async def claim_once(client: Client, key: str, process: str, seconds: int) -> bool:
    """True for the first process that asks for `key` within `seconds`. Also True if the server does not answer: doing
    the
    job twice is better than not at all.
    """
    try:
        await (await streams_of(client).key_value(LOCKS)).create(key, process.encode(), msg_ttl=seconds)
    except KeyWrongLastSequenceError:
        return False
    except AWAY_ERRORS as error:
        log.info("%s: the server does not tell who does it (%s)", key, error)
    return True


IDENTIFY_SECONDS = 6
"""Discord takes one IDENTIFY in five seconds for each key; the sixth is for the way there."""
LOOK_SECONDS = 0.25
COUNT_SECONDS = 30
"""After so long without a gateway another number of shards may be chosen."""
RENEW_SECONDS = 10.0
SHARDS = "shards"


def make_identify_turn(
    bucket: KeyValue,
    max_concurrency: int,
    process: str,
    *,
    hold_seconds: int = IDENTIFY_SECONDS,
    look_seconds: float = LOOK_SECONDS,
) -> Callable[[int], Awaitable[None]]:
    """To be awaited with a shard's number before each IDENTIFY, in all processes: one at a time for each of the
    `max_concurrency` keys that Discord allows. A server that is away is waited for.
    """

    async def turn(shard_id: int) -> None:
        key = f"identify-{shard_id % max_concurrency}"
        while True:
            try:
                await bucket.create(key, process.encode(), msg_ttl=hold_seconds)
            except KeyWrongLastSequenceError:
                pass  # another has it; the server takes it away in time
            except (Error, TimeoutError) as error:
                log.debug("no turn for shard %d yet: %s", shard_id, error)
            else:
                return
            await asyncio.sleep(look_seconds)

    return turn


@asynccontextmanager
async def hold_shard_count(
    streams: JetStreamContext, count: int, *, keep_seconds: int = COUNT_SECONDS, renew_seconds: float = RENEW_SECONDS
) -> AsyncGenerator[None]:
    """Hold on to a number of shards for as long as the block runs. Some time after the last gateway it is free.

    Raises:
        ServersUnusable: other gateways run with another number.
        nats.errors.Error: NATS does not answer.
    """
    bucket = await streams.key_value(LOCKS)
    await _agree(bucket, count, keep_seconds)

    async def renew() -> None:
        while True:
            await asyncio.sleep(renew_seconds)
            try:
                await _agree(bucket, count, keep_seconds)
                # Who renews it between the two has the same number, or is told so at its next look.
                await streams.publish(f"$KV.{LOCKS}.{SHARDS}", str(count).encode(), msg_ttl=keep_seconds)
            except ServersUnusable as differs:
                log.error("%s", differs)  # noqa: TRY400 (a line for the operator)
            except (Error, TimeoutError) as error:
                log.debug("the number of shards is not renewed: %s", error)

    renewing = asyncio.create_task(renew())
    try:
        yield
    finally:
        await cancelled(renewing)


async def _agree(bucket: KeyValue, count: int, keep_seconds: int) -> None:
    while True:
        with suppress(KeyWrongLastSequenceError):
            await bucket.create(SHARDS, str(count).encode(), msg_ttl=keep_seconds)
            return
        with suppress(KeyNotFoundError):  # it ran out between the two
            there = (await bucket.get(SHARDS)).value
            if there == str(count).encode():
                return
            if there:
                raise ServersUnusable(
                    f"--shards: other gateways run with {there.decode(errors='replace')} shards and this one with "
                    f"{count}; give the same number, or stop them all and wait {keep_seconds} s"
                )
        # What has run out leaves a marker for a second.
        await asyncio.sleep(LOOK_SECONDS)
