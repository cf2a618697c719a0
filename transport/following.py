"""Watch the last message of each subject of a stream, then each new one; and retry calls while the server is away."""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from nats.aio.msg import Msg
from nats.errors import Error
from nats.js import JetStreamContext, api

from clock import Patience
from clock.backoff import Backoff
from transport.errors import ServerAway
from transport.fence import READ_SECONDS, TRY_SECONDS

PATIENCE_SECONDS = 10.0
"""How long a look or a write waits for a server that is away."""

HEARTBEAT_SECONDS = 1.0

T = TypeVar("T")

log = logging.getLogger(__name__)


async def patiently(work: Callable[[], Awaitable[T]], seconds: float | None = TRY_SECONDS) -> T:
    """Do `work`, again where the server does not answer; `seconds`: how long one try may take. Raises ServerAway."""
    backoff, patience = Backoff(0.1, TRY_SECONDS), Patience(PATIENCE_SECONDS)
    while True:
        try:
            async with asyncio.timeout(seconds):
                return await work()
        except (Error, OSError, TimeoutError) as error:
            if patience.is_over():
                why = str(error).removeprefix("nats: ") or type(error).__name__
                raise ServerAway(f"NATS does not serve ({why}); start the server, or look into its log") from error
            await asyncio.sleep(backoff.pause())


async def unsubscribe_quietly(subscription: JetStreamContext.PushSubscription) -> None:
    """Unsubscribe; errors are ignored, since a server that is away has dropped the subscription anyway."""
    try:
        await subscription.unsubscribe()
    except (Error, OSError, TimeoutError):
        return


async def follow(
    streams: JetStreamContext, stream: str, subject: str, heard: Callable[[Msg], None]
) -> Callable[[], Awaitable[None]]:
    """Tell `heard` of the last message of each subject, then of each new one; gives what ends it.

    Returns when it has been told of all that there is. Raises ServerAway.
    """
    caught_up = asyncio.Event()

    async def on_message(message: Msg) -> None:
        try:
            heard(message)
        except Exception:
            # The client would swallow it.
            log.exception("%s: a change is left out", message.subject)
        if message.metadata.num_pending == 0:
            caught_up.set()

    async def subscribed() -> JetStreamContext.PushSubscription:
        # A server that was restarted has forgotten who follows: after two beats that are missing the client asks again.
        config = api.ConsumerConfig(deliver_policy=api.DeliverPolicy.LAST_PER_SUBJECT, idle_heartbeat=HEARTBEAT_SECONDS)
        return await streams.subscribe(subject, stream=stream, cb=on_message, ordered_consumer=True, config=config)

    reading = await patiently(subscribed)
    info = await patiently(reading.consumer_info)
    if not info.num_pending and not (info.delivered and info.delivered.consumer_seq):
        caught_up.set()
    try:
        await asyncio.wait_for(caught_up.wait(), READ_SECONDS)
    except TimeoutError:
        await unsubscribe_quietly(reading)
        raise ServerAway(f"NATS does not send what {stream} holds; look into its log") from None
    return lambda: unsubscribe_quietly(reading)
