"""The shards of one process: what all of them are told, handed on by one publisher."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from streams.gateway import Gateway
from transport.publishing import Publisher


async def run_gateways(gateways: Sequence[Gateway], publisher: Publisher) -> None:
    """Run the gateways until each has stopped, and publish what they say in order of arrival. What is published is on
    its way then: see `Publisher.drain`.

    Raises:
        GatewayRefused: Discord refuses the bot for good; the others have been stopped and cut off.
        nats.errors.Error: the connection to NATS was closed for good.
    """

    async def of(gateway: Gateway) -> None:
        stream = gateway.dispatches()
        try:
            async for dispatch in stream:
                await publisher.publish(dispatch)
        finally:
            await stream.aclose()

    running = [asyncio.create_task(of(gateway)) for gateway in gateways]
    try:
        await asyncio.gather(*running)
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
