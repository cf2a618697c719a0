"""Servers that the bot was removed from while no gateway listened: only their absence at the next start says so."""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any, cast

from nats.js import JetStreamContext

from clock import now
from services.discord import BadLine, Dispatch
from transport.connection import AWAY
from transport.layout import PLACES
from transport.lines import decode_compressed

LEFT = "GUILD_DELETE"
AT_ONCE = 32

log = logging.getLogger(__name__)


async def missed_guild_leaves(streams: JetStreamContext, ready: Mapping[str, Any]) -> Sequence[Dispatch]:
    """GUILD_DELETE dispatches for servers that workers still know but READY does not list: the bot was removed while no
    gateway ran. `ready`: the payload of READY. If NATS is away, this is done at the next session.
    """
    listed: object = ready.get("guilds")
    if not isinstance(listed, list):
        return ()
    there = {str(each["id"]) for each in cast("list[Mapping[str, Any]]", listed) if "id" in each}
    number, count = ready.get("shard") or (0, 1)
    try:
        subjects = (await streams.stream_info(PLACES, subjects_filter="places.>")).state.subjects or {}
        known = {subject.rpartition(".")[2] for subject in subjects}
        missing = sorted(int(each) for each in known - there if (int(each) >> 22) % count == number)
        slots = asyncio.Semaphore(AT_ONCE)

        async def is_published(guild_id: int) -> bool:
            async with slots:
                return await _is_told(streams, guild_id)

        known_left = await asyncio.gather(*map(told, missing))
        left = [guild_id for guild_id, known in zip(missing, known_left, strict=True) if not known]
    except AWAY as error:
        log.info("servers that were left meanwhile stay known: NATS does not answer (%s)", error)
        return ()
    for guild_id in left:
        log.info("server %d was left while nobody listened", guild_id)
    return [Dispatch(now(), LEFT, {"id": str(guild_id)}) for guild_id in left]


async def _is_told(streams: JetStreamContext, guild_id: int) -> bool:
    last = await streams.get_last_msg(PLACES, f"places.{guild_id}")
    try:
        said = decode_compressed(last.data or b"")
    except BadLine:
        return False
    return said.t == LEFT and not said.d.get("unavailable")
