"""What one worker does for all: who owns the partition of what belongs to no channel."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

import reactivex as rx

from assembly.bot import resume, sweeping
from assembly.distributed.process import GATHERED, Process
from assembly.distributed.shared import Shared
from assembly.documents import Documents
from assembly.reports import reported
from assembly.running import in_background
from assembly.state import RunState
from assembly.weekly import reporting_weekly
from reporting.reading import TimeSpan
from reporting.report import Report
from services.storage import files, in_thread
from settings import Settings
from transport.layout import scope
from transport.moving import gather

IDLE_SECONDS = 3600.0
"""A file that nobody has finished after so long is in nobody's hands any more."""


@asynccontextmanager
async def chores(process: Process, shared: Shared, settings: Settings, state: RunState) -> AsyncGenerator[None]:
    """The report of the week, the sweep, and files that a crash has left half read, while the block runs.

    `settings`: those of the partition `NOWHERE`, in whose folder is told how far the report has come: whoever has lost
    the partition posts nothing of it.
    """

    async def report(period: TimeSpan, guild_id: int) -> Report:
        return await reported_by_all(process, period, guild_id)

    discord = shared.discord
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        await enter(reporting_weekly(settings, discord.poster, discord.fetcher, report))
        if shared.documents is not None:
            chosen = settings.documents
            await enter(sweeping(chosen, shared.documents, discord.client, discord.fetcher, rx.of(None)))
            await enter(in_background(resuming(shared.documents, shared, state)))
        yield


async def reported_by_all(process: Process, period: TimeSpan, guild_id: int) -> Report:
    """`reported`, of what all processes have: put together in a folder that is gone afterwards. Raises OSError."""
    folder = process.folder / GATHERED
    parts = [folder / scope(number) for number in range(process.layout.partitions)]
    try:
        await process.beside.do(gather(process.beside.streams, folder, parts))
        return await reported(process.configured.living_in(folder), period, guild_id=guild_id)
    finally:
        await in_thread(files.remove_folder, folder)


async def resuming(documents: Documents, shared: Shared, state: RunState) -> None:
    """Until cancelled: a worker may end at any time, and leave a file without vectors."""
    while True:
        await asyncio.sleep(IDLE_SECONDS)
        await resume(documents, shared.discord.fetcher, state.withheld, IDLE_SECONDS)
