"""Play the roles of one process from start to end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack

from assembly import Unusable
from assembly.distributed.gateway import listen
from assembly.distributed.knowledge import update
from assembly.distributed.process import open_process
from assembly.distributed.standing import ProcessStatusReporter
from assembly.distributed.team import write
from assembly.distributed.worker import AddPages, work
from assembly.running import in_background, meters_of, serving, stop_signal
from clock import cancelled, now
from services.discord import Health
from settings import Settings
from transport.errors import ServersUnusable
from transport.status import answer_status

ORDER = ("gateway", "worker", "team", "knowledge")
"""The order in which roles stop: what one still sends, the next still takes."""

COUNT_SECONDS = 1.0
"""Between two looks of the meter at what is in flight."""

log = logging.getLogger(__name__)


async def play(settings: Settings, roles: Sequence[str], shards: tuple[Sequence[int], int] | None) -> None:
    """Play the roles until SIGINT or SIGTERM.

    Raises:
        Unusable: the servers of NATS cannot be used.
        GatewayRefused, OSError: as the roles.
    """
    async with AsyncExitStack() as stack:
        stopped = stack.enter_context(stop_signal())
        meters, health = meters_of(settings, "+".join(roles)), Health(now())
        process = await stack.enter_async_context(open_process(settings, roles))
        status_reporter = ProcessStatusReporter(process)
        answering = await answer_status(process.client, status_reporter.status)
        stack.push_async_callback(answering.unsubscribe)
        if meters.owned is not None:
            await stack.enter_async_context(in_background(_counting(status_reporter, meters.owned)))
        ends = {role: asyncio.Event() for role in roles}
        playing = {
            "gateway": lambda: listen(process, ends["gateway"], shards, health),
            "worker": lambda: work(process, ends["worker"], meters, status_reporter, serve),
            "team": lambda: write(process, ends["team"], meters, status_reporter),
            "knowledge": lambda: update(process, ends["knowledge"], meters),
        }
        listens = "gateway" in roles
        problem = (lambda: health.problem(now())) if listens else (lambda: None)
        ready = (lambda: None if health.connected else "not connected yet") if listens else (lambda: None)

        def serve(add_pages: AddPages | None) -> AbstractAsyncContextManager[None]:
            return serving(settings.metrics, meters, problem, ready=ready, add_pages=add_pages)

        if "worker" not in roles:  # which has the pages of the dashboard
            await stack.enter_async_context(serve(None))
        tasks = {role: asyncio.create_task(playing[role](), name=role) for role in ORDER if role in roles}
        try:
            await asyncio.wait({stopped, *tasks.values()}, return_when=asyncio.FIRST_COMPLETED)
            for role, task in tasks.items():
                ends[role].set()
                await task
        except ServersUnusable as error:
            raise Unusable(str(error)) from None
        finally:
            await cancelled(*tasks.values())


async def _counting(status_reporter: ProcessStatusReporter, tell: Callable[[Mapping[int, int]], object]) -> None:
    while True:
        tell(status_reporter.owned())
        await asyncio.sleep(COUNT_SECONDS)
