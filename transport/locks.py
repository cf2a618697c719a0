"""Locks in the bucket `locks`: one IDENTIFY at a time, the same number of shards in all gateways, and jobs that one
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

from clock import cancel_and_wait
from transport.address import ServersUnusable
from transport.connection import AWAY_ERRORS, streams_of
from transport.streams import LOCKS

log = logging.getLogger(__name__)


async def claim_once(client: Client, key: str, process: str, seconds: int) -> bool:
    """Return True for the first that asks for `key` within `seconds`, and if NATS is away: better twice than never."""
    try:
        await (await streams_of(client).key_value(LOCKS)).create(key, process.encode(), msg_ttl=seconds)
    except KeyWrongLastSequenceError:
        return False
    except AWAY_ERRORS as error:
        log.info("%s: the server does not tell who does it (%s)", key, error)
    return True


IDENTIFY_SECONDS = 6
"""Discord takes one IDENTIFY in five seconds for each key; the sixth second allows for delays on the way there."""
POLL_SECONDS = 0.25
COUNT_SECONDS = 30
"""After so long without a gateway, the next one may have another number of shards."""
RENEW_SECONDS = 10.0
SHARDS_KEY = "shards"


def make_identify_turn(
    bucket: KeyValue,
    max_concurrency: int,
    process: str,
    *,
    hold_seconds: int = IDENTIFY_SECONDS,
    poll_seconds: float = POLL_SECONDS,
) -> Callable[[int], Awaitable[None]]:
    """Return a function that each process awaits with a shard's number before an IDENTIFY: of all shards with the same
    number modulo `max_concurrency`, one goes at a time. It waits as long as NATS does not answer.
    """

    async def turn(shard_id: int) -> None:
        key = f"identify-{shard_id % max_concurrency}"
        while True:
            try:
                await bucket.create(key, process.encode(), msg_ttl=hold_seconds)
            except KeyWrongLastSequenceError:
                pass  # another process has it until the server deletes the key
            except (Error, TimeoutError) as error:
                log.debug("no turn for shard %d yet: %s", shard_id, error)
            else:
                return
            await asyncio.sleep(poll_seconds)

    return turn


@asynccontextmanager
async def hold_shard_count(
    streams: JetStreamContext,
    count: int,
    *,
    keep_seconds: int = COUNT_SECONDS,
    renew_every: float = RENEW_SECONDS,
) -> AsyncGenerator[None]:
    """Keep other gateways from another number of shards until the context ends, and `keep_seconds` longer.

    Raises:
        ServersUnusable: other gateways run with another number.
        nats.errors.Error: NATS does not answer.
    """
    bucket = await streams.key_value(LOCKS)
    await _claim_shard_count(bucket, count, keep_seconds)

    async def renew() -> None:
        while True:
            await asyncio.sleep(renew_every)
            try:
                await _claim_shard_count(bucket, count, keep_seconds)
                # A gateway with another number that claims it between these two lines is told so at its next renewal.
                await streams.publish(f"$KV.{LOCKS}.{SHARDS_KEY}", str(count).encode(), msg_ttl=keep_seconds)
            except ServersUnusable as error:
                log.error("%s", error)  # noqa: TRY400 (a line for the operator)
            except (Error, TimeoutError) as error:
                log.debug("the number of shards is not renewed: %s", error)

    renewing = asyncio.create_task(renew())
    try:
        yield
    finally:
        await cancel_and_wait(renewing)


async def _claim_shard_count(bucket: KeyValue, count: int, keep_seconds: int) -> None:
    while True:
        with suppress(KeyWrongLastSequenceError):
            await bucket.create(SHARDS_KEY, str(count).encode(), msg_ttl=keep_seconds)
            return
        with suppress(KeyNotFoundError):  # it has expired since
            agreed = (await bucket.get(SHARDS_KEY)).value
            if agreed == str(count).encode():
                return
            if agreed:
                raise ServersUnusable(
                    f"--shards: other gateways run with {agreed.decode(errors='replace')} shards and this one with "
                    f"{count}; give the same number, or stop them all and wait {keep_seconds} s"
                )
        # An expired key leaves a marker for a second.
        await asyncio.sleep(POLL_SECONDS)
