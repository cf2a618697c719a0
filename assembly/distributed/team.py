"""The role team: one process at a time stores and files what the team teaches; others wait to take over."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from dataclasses import replace

import reactivex as rx
from reactivex import Observable
from reactivex import operators as ops
from reactivex.subject import Subject

from assembly.answering import assistant_of, library_of, open_llms, open_search
from assembly.data_folder import read_state
from assembly.distributed.forgetting import open_forget_handler
from assembly.distributed.process import EVERYTHING, Process
from assembly.distributed.standing import ProcessStatusReporter
from assembly.forgetting import taught
from assembly.graph_parts import CaptureOptions, assemble, capture_parts, open_servers, server_libraries
from assembly.running import GraphRun, Meters
from assembly.slash_commands import Privacy
from assembly.team import curation_parts
from clock import now
from model.events import Event
from services.discord import Rehearsal
from services.privacy import Forgotten
from services.storage import files, in_thread
from sinks.results import journal
from streams.graph import graph
from transport.captures import CaptureReceiver
from transport.errors import Fenced
from transport.fence import FencedLog
from transport.layout import CAPTURES, TEAM
from transport.mirror import LogJournal, restore
from transport.people import open_people
from transport.standby import stand_by

log = logging.getLogger(__name__)


async def write(
    process: Process, stopping: asyncio.Event, meters: Meters, status_reporter: ProcessStatusReporter
) -> None:
    """Play the role: stand by, and keep the archive while the lease is held, until `stopping` is set."""

    def capture_receiver() -> CaptureReceiver:
        return CaptureReceiver(process.client, process.name, lease_seconds=process.layout.lease_seconds)

    async for given in stand_by(process.client, CAPTURES, process.members, capture_receiver, stopping):
        try:
            await _keep(process, given, stopping, meters, status_reporter)
        except Fenced:
            log.warning("the archive is kept by another process now")


async def _keep(
    process: Process,
    capture_receiver: CaptureReceiver,
    stopping: asyncio.Event,
    meters: Meters,
    status_reporter: ProcessStatusReporter,
) -> None:
    """Store and file captures until `stopping` is set. Raises Fenced: another process does now."""
    file_connection, settings = process.file_connection, process.settings_for(TEAM)
    fenced, folder = FencedLog(file_connection.streams, TEAM), settings.app.data_dir
    loop, lost = asyncio.get_running_loop(), capture_receiver.lease.lost
    fenced.on_lost = lambda: loop.call_soon_threadsafe(lost.set)
    await file_connection.do(fenced.open(process.name, now()))
    await file_connection.do(restore(fenced, folder, EVERYTHING))
    async with AsyncExitStack() as stack:
        # Whoever keeps the archive next may be told to forget what is in this copy.
        stack.push_async_callback(in_thread, files.remove_folder, folder)
        journal_of_files = LogJournal(file_connection, fenced)
        stack.enter_context(files.journaled(folder, journal_of_files))
        people = await stack.enter_async_context(open_people(process.client))
        _, knowledge = await stack.enter_async_context(open_llms(settings, observe=meters.observe))
        library = library_of(settings)
        search = await stack.enter_async_context(open_search(settings, library, None))
        state = replace(read_state(settings, durable=False, on_tokens=meters.tokens), opt_outs=people.opt_outs)
        curation = curation_parts(settings, knowledge, state.usage, meters.gauge)
        libraries = server_libraries(settings, library)
        learners = CaptureOptions(asker=knowledge)
        servers = await stack.enter_async_context(open_servers(settings, state, libraries, search, None, learners))
        parts = assemble(
            settings,
            state=state,
            assistant=assistant_of(settings, search, None),
            library=library,
            search=search,
            poster=Rehearsal(),
            captures=capture_parts(settings, state, curation=curation),
            gauge=meters.gauge,
            results=[*meters.results, status_reporter.add, journal, capture_receiver.settled],
            servers=servers,
        )
        stopped: Subject[None] = Subject()
        nothing: Observable[Event] = rx.never().pipe(ops.take_until(stopped))
        results = graph(nothing, parts.services, parts.sinks, parts.rules, capture_receiver.captures)
        run = GraphRun(results, parts.services.in_flight)
        own = [taught(each.settings, each.captures.curation, each.search) for each in servers.values()]
        privacy = Privacy(parts, taught(settings, curation, search), own, settings=settings)

        async def forget(user_id: int) -> Forgotten:
            dropped = await capture_receiver.forget(user_id)
            with journal_of_files.erasing():
                done = await privacy.remove(user_id)
            done.pending += dropped
            return done

        forget_handler = await stack.enter_async_context(open_forget_handler(people.forget_requests, process.name))
        # Who was forgotten while nobody kept the archive is so before anything else.
        await forget_handler.own(TEAM, forget)
        people.forget_requests.on_change = forget_handler.heard
        forget_handler.begin()
        capture_receiver.begin()
        log.info("the archive is kept here")
        await until(run.finished, stopping, lost)
        if lost.is_set():
            run.cut_off()
            raise Fenced(TEAM)
        capture_receiver.stop()
        stopped.on_next(None)
        await run.drain(process.grace_seconds)
    await file_connection.do(fenced.hand_back(now()))


async def until(finished: asyncio.Future[None], *events: asyncio.Event) -> None:
    """Wait for the first of all these."""
    waiting = [asyncio.ensure_future(each.wait()) for each in events]
    await asyncio.wait([*waiting, finished], return_when=asyncio.FIRST_COMPLETED)
    for each in waiting:
        each.cancel()
