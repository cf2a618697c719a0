"""Jobs that one worker does for all: the owner of partition 0 posts the weekly report, sweeps old data and resumes
unfinished files.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import reactivex as rx

from assembly.bot import resume, sweeping
from assembly.data_folder import RunState
from assembly.distributed.process import REPORT_FOLDER, Process
from assembly.distributed.shared import Shared
from assembly.documents import Documents
from assembly.reports import reported, reporting_weekly
from assembly.running import in_background
from reporting.reading import TimeSpan
from reporting.report import Report
from services.storage import files, in_thread
from settings import Settings
from transport.layout import scope
from transport.moving import gather

LEASES = 5
"""Lease periods that a worker waits after it took partition 0 before it starts these jobs: not while partitions are
being rebalanced, or suspicious messages retried.
"""
LOOK_SECONDS, IDLE_SECONDS = 600.0, 3600.0
"""How often unfinished files are looked for, and after how long without progress a file counts as abandoned."""

log = logging.getLogger(__name__)


@asynccontextmanager
async def singleton_jobs(
    process: Process, shared: Shared, settings: Settings, state: RunState, left: Callable[[int], bool]
) -> AsyncGenerator[None]:
    """The report of the week, the sweep, and files that a crash has left half read, while the block runs.

    `settings`: those of the partition `NOWHERE`, in whose folder is told how far the report has come: whoever has lost
    the partition posts nothing of it. `left`: whether the bot has left a server.
    """

    async def report(period: TimeSpan, guild_id: int) -> Report:
        return await report_of_all_processes(process, period, guild_id)

    async def done() -> None:
        await asyncio.sleep(LEASES * process.layout.lease_seconds)
        discord, documents = shared.discord, shared.documents
        async with AsyncExitStack() as stack:
            enter = stack.enter_async_context
            await enter(reporting_weekly(settings, discord.poster, discord.fetcher, report))
            if documents is not None:
                await enter(sweeping(settings.documents, documents, left, discord.fetcher, rx.of(None)))
                await enter(in_background(resume_unfinished_files(documents, shared, state)))
            await asyncio.Event().wait()

    async with in_background(done()):
        yield


async def report_of_all_processes(process: Process, period: TimeSpan, guild_id: int) -> Report:
    """The report over the state of all partitions, collected from the log into a temporary folder. Raises OSError."""
    folder = process.folder / REPORT_FOLDER
    parts = [folder / scope(number) for number in range(process.layout.partitions)]
    await in_thread(files.remove_folder, folder)
    gathering = asyncio.wrap_future(
        process.file_connection.start(gather(process.file_connection.streams, folder, parts))
    )
    try:
        await asyncio.shield(gathering)
        return await reported(process.configured.with_data_in(folder), period, guild_id=guild_id)
    finally:
        while not gathering.done():  # called off: it must not write any more when the folder is removed
            with suppress(asyncio.CancelledError):
                await asyncio.wait([gathering])
        if not gathering.cancelled():
            gathering.exception()  # retrieved, or asyncio would report it as never retrieved
        await in_thread(files.remove_folder, folder)


async def resume_unfinished_files(documents: Documents, shared: Shared, state: RunState) -> None:
    """Until cancelled: a worker may end at any time, and leave a file without vectors."""
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        try:
            await resume(documents, shared.discord.fetcher, state.withheld, IDLE_SECONDS)
        except Exception:
            log.exception("evidence: files whose reading was cut off stay unread; tried again")
