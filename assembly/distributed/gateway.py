"""The role gateway: connect some shards to Discord, and publish what they receive to NATS."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack

from assembly.distributed.process import Process
from assembly.graph_parts import teams
from clock.backoff import Backoff
from services.conversations import People
from services.discord import GatewayRefused, Health
from services.discord.live import Client, Forbidden, RestFetcher, reason, refusal
from services.discord.wire import Decoder
from settings import Settings, usable_token
from streams.gateway import Gateway
from transport.connection import streams_of
from transport.gateways import run_gateways
from transport.identify import identify_turns, same_shard_count
from transport.layout import LOCKS
from transport.marks import PublishWatermarks, open_watermarks
from transport.places import ThreadFacts, thread_facts
from transport.publishing import publisher
from transport.standby import wait_for_any

MOST_WAITING = 10_000
"""Dispatches of one shard that may wait for NATS in memory; what comes after them waits at Discord."""

log = logging.getLogger(__name__)


async def listen(
    process: Process, stopping: asyncio.Event, shards: tuple[Sequence[int], int] | None, health: Health
) -> None:
    """Play the role until `stopping` is set and all that was heard is in the stream.

    `shards`: those of this process, and how many there are; None: there is only one.

    Raises:
        GatewayRefused: Discord refuses the bot for good.
        transport.errors.Unfit: other gateways divide the servers otherwise.
    """
    settings, streams = process.configured, streams_of(process.client)
    token = usable_token(settings)
    numbers, count = shards or ((0,), 1)
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        await enter(same_shard_count(streams, count))
        clients: list[Client] = []
        for number in numbers:
            client = Client(feedback=settings.discord.feedback, shard_id=number, shard_count=count)
            stack.push_async_callback(client.close)
            clients.append(client)
        at_once = await identifies_at_once(clients[0], token, stopping)
        if at_once is None:
            return
        turn = identify_turns(await streams.key_value(LOCKS), at_once, process.name)
        marks = await enter(open_watermarks(streams, ours=lambda guild_id: (guild_id >> 22) % count in numbers))
        published = await enter(publisher(process.client, marks, in_any(clients)))

        gateways = [gateway_of(client, settings, token, marks, turn, health) for client in clients]
        running = asyncio.create_task(run_gateways(gateways, published))
        waiting = asyncio.create_task(stopping.wait())
        await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        for each in gateways:
            each.stop()
        try:
            async with asyncio.timeout(process.grace_seconds):
                await running
                await published.drain()
        except TimeoutError:
            log.warning("gateway: NATS has not taken everything; catch-up brings the rest again")


async def identifies_at_once(client: Client, token: str, stopping: asyncio.Event) -> int | None:
    """How many sessions Discord lets begin at a time: all processes have to reckon with the same. While Discord cannot
    be asked it is asked again; None: stopped meanwhile. Raises GatewayRefused.
    """
    backoff = Backoff()
    while not stopping.is_set():
        try:
            await client.log_in(token)
            return await client.identifies_at_once()
        except Exception as error:  # an odd answer of Discord can make discord.py raise anything
            if remedy := refusal(error):
                raise GatewayRefused(remedy) from error
            pause = backoff.pause()
            log.warning("gateway: Discord cannot be asked: %s; trying again in %g s", reason(error), pause)
            await wait_for_any(pause, stopping)
    return None


def gateway_of(
    client: Client,
    settings: Settings,
    token: str,
    marks: PublishWatermarks,
    turn: Callable[[int], Awaitable[None]],
    health: Health,
) -> Gateway:
    """One shard, not connected yet. `turn`: awaited before it begins a session."""
    chosen, decoder = settings.discord, Decoder()
    fetcher = RestFetcher(client.http, place=decoder.place, forbidden=Forbidden())
    people = People(chosen.team_member_ids, chosen.team_role_ids, fetcher, teams(settings))
    return Gateway(
        client,
        token,
        fetcher=fetcher,
        marks=marks.marks,
        met=marks.met,
        introduce=people.look_up,
        catch_up_minutes=chosen.catch_up_minutes,
        allowlist=chosen.channel_allowlist,
        denylist=chosen.channel_denylist,
        health=health,
        before_identify=turn,
        most_waiting=MOST_WAITING,
    )


def in_any(clients: Sequence[Client]) -> ThreadFacts:
    """A thread is known to the one client that hears of its server."""
    each_knows = [thread_facts(client) for client in clients]

    def known(guild_id: int, thread_id: int) -> Mapping[str, object] | None:
        return next((facts for knows in each_knows if (facts := knows(guild_id, thread_id)) is not None), None)

    return known
