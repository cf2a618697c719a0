"""The role that answers: one graph for each partition that this process owns, and jobs that one worker does for all."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import reactivex as rx
from reactivex.subject import Subject

from assembly.answering import ModelOptions
from assembly.bot import DiscordParts, TeamDesk, open_discord, resume_reading, sweep_regularly
from assembly.data_folder import RunState, autosave, read_state
from assembly.distributed.forgetting import (
    DOCUMENTS,
    ForgetHandler,
    PeopleServices,
    use_shared_feedback_key,
)
from assembly.distributed.keepers import ask_filing, keep_decision, note_refusal
from assembly.distributed.process import (
    EVERYTHING,
    REPORT_FOLDER,
    Process,
    ProcessStatusReporter,
    fleet_conditions,
    fleet_of,
    follow_knowledge,
)
from assembly.documents import Documents, document_files, flush_shared_store
from assembly.forgetting import Privacy, TeamKnowledgeFiles, team_files
from assembly.graph_parts import REMEMBERED_WEEKS, CaptureParts, GraphParts
from assembly.health import alert_parts
from assembly.knowledge import keep_search_current
from assembly.opening import PARTITIONS, Bot, open_bot
from assembly.reports import post_weekly_reports, report_from_folder
from assembly.running import GraphRun, Meters, in_background
from assembly.slash_commands import slash_commands
from clock import finish_even_if_cancelled, now, run_blocking
from model.outcomes import Outcome, OutcomeKind, Result
from model.servers import Servers
from operators.screen import decode
from reporting.reading import DismissedQuestions, TimeSpan
from reporting.report import Report
from services.conversations import Drafts, Outbox
from services.discord import Decoder, Dispatch
from services.discord.live import PERMISSION_EVENTS, watch_presses
from services.documents.store import SharedDocuments, SharedStore
from services.privacy import ForgetResult, TeamData, limits_pseudonym
from services.storage import DataFolder, files, in_thread
from services.team import Capture, CapturedMessage, Pair, RecentCaptures, Revision, archive_files
from settings import Settings, discord_token
from sinks.results import journal
from sinks.team import RawArchive
from streams.alerts import AlertParts
from streams.graph import graph
from transport.budgets import SharedBudgets
from transport.captures import CaptureSender
from transport.connection import Client, streams_of
from transport.dispatches import PlacesFollower, for_partition, partition_of_thread
from transport.document_store import CollectionReplicas
from transport.fenced_log import Fenced, FencedLog
from transport.folder_log import LogJournal, restore
from transport.migration import NO_CHANNEL_PARTITION, restore_all_scopes
from transport.partition import Partition
from transport.people import ForgetRequest, SharedFlags, SharedPeople, open_people
from transport.rebalancing import WORKER, Rebalancing
from transport.requests import ALERTS, OPERATORS, FleetDrafts, answer_fleet, answering
from transport.streams import scope_of

if TYPE_CHECKING:
    from aiohttp.web import Application

    from assembly.health import HealthMonitor
    from dashboard import FlowMeter


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedServices:
    """The services that all partitions of a worker use together."""

    bot: Bot
    people: SharedPeople
    discord: DiscordParts
    meters: Meters
    budgets: SharedBudgets


@dataclass(slots=True, kw_only=True)
class PartitionRun:
    """`transport.partition.PartitionGraph`: a graph over the folder of a partition, a copy of its scope in the log."""

    number: int
    folder: Path
    source: Subject[Dispatch]
    run: GraphRun
    stack: AsyncExitStack
    parts: GraphParts
    privacy: Privacy
    journal: LogJournal
    forget_handler: ForgetHandler
    grace_seconds: float
    _closing: bool = field(default=False, init=False)
    _forgetting: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    @property
    def is_closing(self) -> bool:
        return self._closing

    def feed(self, dispatch: Dispatch) -> None:
        self.source.on_next(dispatch)

    def on_opt_out(self, user_id: int) -> None:
        """Withdraw the person's questions that are in flight."""
        self.parts.services.in_flight.withdraw(user_id)

    async def forget(self, user_id: int, renamed: Mapping[str, str]) -> ForgetResult:
        """Forget a person in this partition, for `ForgetHandler`."""
        async with self._forgetting:
            if self._closing:
                raise Fenced(scope_of(self.number))
            with self.journal.erasing():
                return await self.privacy.remove(user_id, renamed=renamed)

    async def drain(self, seconds: float | None = None) -> None:
        self._leave()
        self.source.on_completed()
        await self.run.drain(self.grace_seconds if seconds is None else min(seconds, self.grace_seconds))
        await self._close()

    async def cut(self) -> None:
        self._leave()
        self.run.cut_off()
        # The log may refuse to save anything more.
        with suppress(Fenced):
            await self._close()

    def _leave(self) -> None:
        self._closing = True
        self.parts.state.drafts.close()
        self.forget_handler.disown(scope_of(self.number))

    async def _close(self) -> None:
        async with self._forgetting:
            await self.stack.aclose()
        # The next owner may be asked to forget people whose data is in this copy.
        await in_thread(files.remove_folder, self.folder)


def privacy_of(settings: Settings, parts: GraphParts) -> Privacy:
    """Return the data of people in the folder of a partition. The role team keeps the archive."""
    folder = DataFolder(settings.app.data_dir)
    team = TeamKnowledgeFiles(TeamData(folder, folder.team_raw))
    archives = [each.kb.team_raw_dir for each in settings.servers.values()]
    return Privacy(parts, Servers({None: team}), other_archives=archives)


LEASES = 5
"""Lease periods between taking partition 0 and the start of its jobs, so that they do not run while partitions are
rebalanced, or suspicious messages are tried.
"""
LOOK_SECONDS, IDLE_SECONDS = 600.0, 3600.0
"""How often unfinished files are looked for, and after how long without progress a file counts as abandoned."""

log = logging.getLogger(__name__)


@asynccontextmanager
async def singleton_jobs(
    process: Process, shared: SharedServices, settings: Settings, state: RunState, left: Callable[[int], bool]
) -> AsyncGenerator[None]:
    """Run the weekly report, the sweep, and the reading of files that a crash interrupted, until the context ends.

    `settings`: of NO_CHANNEL_PARTITION, whose folder records the progress of the report, so that a former owner cannot
    post it. `left`: whether the bot has left a server.
    """

    async def report(period: TimeSpan, guild_id: int) -> Report:
        return await report_of_all_processes(process, period, guild_id)

    async def run_jobs() -> None:
        await asyncio.sleep(LEASES * process.layout.lease_seconds)
        discord, documents = shared.discord, shared.bot.documents
        async with AsyncExitStack() as stack:
            enter = stack.enter_async_context
            await enter(post_weekly_reports(settings, discord.poster, discord.fetcher, report))
            if documents is not None:
                await enter(sweep_regularly(settings, documents, left, discord.fetcher, rx.of(None)))
                await enter(in_background(resume_unfinished_files(documents, shared, state)))
            await asyncio.Event().wait()

    async with in_background(run_jobs()):
        yield


async def report_of_all_processes(process: Process, period: TimeSpan, guild_id: int) -> Report:
    """Return the report over all partitions, collected from the log into a temporary folder. Raises OSError."""
    folder = process.folder / REPORT_FOLDER
    parts = [folder / scope_of(number) for number in range(process.layout.partitions)]
    await in_thread(files.remove_folder, folder)
    gathering = process.file_connection.do(restore_all_scopes(process.file_connection.streams, folder, parts))
    try:
        await finish_even_if_cancelled(gathering)  # it must not write after the folder is removed
        return await report_from_folder(process.configured.with_data_in(folder), period, guild_id=guild_id)
    finally:
        await in_thread(files.remove_folder, folder)


async def resume_unfinished_files(documents: Documents, shared: SharedServices, state: RunState) -> None:
    """Finish files again and again until cancelled: a worker that crashes may leave files without vectors."""
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        try:
            await resume_reading(documents, shared.discord.fetcher, state.is_withheld, IDLE_SECONDS)
        except Exception:
            log.exception("evidence: files whose reading was cut off stay unread; tried again")


AddPages = Callable[["Application"], None]
Serve = Callable[[AddPages | None], AbstractAsyncContextManager[None]]


@dataclass(slots=True)
class PartitionWorker:
    """Opens a graph for each partition that this worker takes, and feeds dispatches about servers to the graphs."""

    process: Process
    shared: SharedServices
    status_reporter: ProcessStatusReporter
    people_services: PeopleServices
    forget_handler: ForgetHandler
    partitions: dict[int, Partition] = field(default_factory=dict[int, Partition])
    runs: dict[int, PartitionRun] = field(default_factory=dict[int, PartitionRun])  # the newest of each partition
    trial_lock: asyncio.Lock = field(default_factory=asyncio.Lock)  # for `Partition`
    broadcast: PlacesFollower = field(init=False)

    def __post_init__(self) -> None:
        self.broadcast = PlacesFollower(self.process.client, self.on_dispatch)
        if not self.shared.bot.settings.app.dry_run:
            desk = TeamDesk(self.drafts_with, self.people_services.parts.services.people)
            watch_presses(self.shared.discord.client, desk)

    def drafts_with(self, draft_id: int) -> Drafts | None:
        """Return the drafts of the partition that has one, among those that this worker owns."""
        return next((drafts for drafts in self.drafts_owned() if drafts.find(draft_id) is not None), None)

    def drafts_owned(self) -> list[Drafts]:
        """Return the drafts of the partitions that this worker owns."""
        return [each.parts.state.drafts for each in self.runs.values() if not each.is_closing]

    async def take(self, number: int) -> Partition | None:
        """Take a partition, for `Rebalancing`. None: another process has it."""
        process = self.process
        partition = Partition(
            process.client,
            process.file_connection,
            process.layout,
            number,
            process.name,
            self.open,
            self.interact,
            trial_lock=self.trial_lock,
        )
        if not await partition.take():
            return None
        self.partitions[number] = partition
        return partition

    def on_dispatch(self, dispatch: Dispatch) -> None:
        """Pass a dispatch about a server, channel, role or thread to the cache of discord.py and to the graphs."""
        client, decoder = self.shared.discord.client, self.shared.discord.decoder
        client.read(dispatch.t, dispatch.d)
        self.people_services.on_dispatch(dispatch, decoder.decode(dispatch))
        if dispatch.t in PERMISSION_EVENTS:
            for refused in self.shared.discord.refusals:
                refused.clear()
        home = partition_of_thread(dispatch, self.process.layout.partitions)
        for number, partition in self.partitions.items():
            if home in {None, number}:
                partition.feed(dispatch)

    def interact(self, payload: Mapping[str, Any]) -> None:
        """Pass the call of a command to discord.py."""
        self.shared.discord.client.read("INTERACTION_CREATE", payload)

    def on_opt_out(self, user_id: int) -> None:
        """Handle that a person has opted out, in any process."""
        for each in self.runs.values():
            each.on_opt_out(user_id)
        self.people_services.on_opt_out(user_id)

    def on_forget_request(self, request: ForgetRequest) -> None:
        """Handle a person's request to be forgotten, or that other processes have carried it out in some scopes."""
        self.forget_handler.on_request(request)
        self.people_services.on_progress(request)

    async def open(self, number: int, fenced: FencedLog, record_result: Callable[[Result], None]) -> PartitionRun:
        """For `Partition`: restore the partition's folder, and open a graph on it."""
        process, shared, file_connection = self.process, self.shared, self.process.file_connection
        folder = process.folder / scope_of(number)
        await file_connection.do(restore(fenced, folder, EVERYTHING))
        common, documents = shared.bot.settings, shared.bot.documents
        settings = common.model_copy(update={"app": common.app.model_copy(update={"data_dir": folder})})
        async with AsyncExitStack() as stack:
            journal_of_files = LogJournal(file_connection, fenced)
            stack.enter_context(files.use_journal(folder, journal_of_files))
            if documents is not None and documents.shared is not None:
                # So that the next owner finds the files that this one has read.
                stack.push_async_callback(flush_shared_store, documents.shared)
            await use_shared_feedback_key(shared.people, DataFolder(folder))
            state = await run_blocking(_state_of, settings, shared)
            parts = shared.bot.assemble(
                state,
                [
                    *shared.meters.results,
                    self.status_reporter.add,
                    self.people_services.parts.state.record.add,
                    journal,
                    state.record.add,
                    record_result,
                ],
                settings,
            )
            await stack.enter_async_context(autosave(state))
            services = parts.services
            if number == NO_CHANNEL_PARTITION:
                services = replace(services, alerts=await self._open_alerts(settings, state, stack))
                await stack.enter_async_context(
                    singleton_jobs(process, shared, settings, state, self.broadcast.has_left)
                )
                dismissed = DismissedQuestions(DataFolder(folder).dismissed)
                await stack.enter_async_context(
                    answering(process.client, OPERATORS, partial(keep_decision, dismissed, state.audit))
                )
            source: Subject[Dispatch] = Subject()
            events = source.pipe(decode(Decoder()))
            run = GraphRun(graph(events, services, parts.sinks, parts.rules), services.in_flight)
            opened = PartitionRun(
                number=number,
                folder=folder,
                source=source,
                run=run,
                stack=stack.pop_all(),
                parts=parts,
                privacy=privacy_of(settings, parts),
                journal=journal_of_files,
                forget_handler=self.forget_handler,
                grace_seconds=process.grace_seconds,
            )
        self.runs[number] = opened
        # First carry out requests that were made while nobody owned the partition.
        await self.forget_handler.own(scope_of(number), opened.forget)
        for dispatch in self.broadcast.dispatches_so_far():
            own = for_partition(dispatch, number, process.layout.partitions)
            if own is not None:
                opened.feed(own)
        # Once the graph knows the bot, it finishes replies that an earlier owner has half posted.
        opened.feed(Dispatch(now(), "READY", {"user": shared.discord.client.own_payload()}))
        return opened

    async def _open_alerts(self, settings: Settings, state: RunState, stack: AsyncExitStack) -> AlertParts | None:
        """Return the branch that tells of incidents in any process. `settings`: of NO_CHANNEL_PARTITION, whose folder
        says what was told, so that a former owner tells nothing.
        """
        meters, monitor = self.shared.meters, self.status_reporter.health
        sample = partial(fleet_conditions, self.process, monitor, state.budgets)
        if meters.incidents is not None:
            stack.callback(meters.incidents, {})
        parts = await run_blocking(alert_parts, settings, monitor, sample, self.shared.discord.poster, meters.incidents)
        if parts is not None:
            answer = partial(note_refusal, monitor, parts)
            await stack.enter_async_context(answering(self.process.client, ALERTS, answer))
        return parts


def _state_of(settings: Settings, shared: SharedServices) -> RunState:
    make_limiter, opt_outs = shared.budgets.of, shared.people.opt_outs
    state = read_state(settings, on_tokens=shared.meters.tokens, make_limiter=make_limiter, opt_outs=opt_outs)
    # So that replies of one piece are noted before they are posted as well.
    return replace(state, outbox=Outbox(state.folder.outbox, least_pieces=1))


def sending_capture_parts(
    settings: Settings, client: Client, withheld: Callable[[CapturedMessage], bool]
) -> CaptureParts:
    """Like `capture_parts`, if another process keeps the archive: a copy here says which captures it has already."""
    sender, raw = CaptureSender(client), settings.kb.team_raw_dir
    captures = RecentCaptures(archive_files.pairs_in(raw, REMEMBERED_WEEKS), withheld)
    known = RawArchive(raw, captures, is_rehearsal=True)

    async def keep(capture: Capture) -> Outcome:
        outcome = await known.keep(capture)
        if outcome.result is OutcomeKind.CAPTURED:
            await sender.send(captures.with_revisions(capture))
        # The process that keeps the archive gives the id.
        return replace(outcome, qa_id=None)

    async def revise(guild_id: int | None, revisions: Sequence[Revision]) -> Sequence[Pair]:
        # The process that keeps the archive follows the channels and threads itself.
        revisions = [each for each in revisions if not each.is_place]
        if not revisions:
            return ()
        of_messages = [each for each in revisions if not each.pair_id]
        captures.revise(of_messages)
        # The copy of the archive has what other workers have captured, once it is stored. What waits for that may be of
        # an earlier owner of this partition.
        ids = [each.message_id for each in of_messages]
        is_known = len(ids) < len(revisions) or await sender.is_any_waiting()
        if is_known or await run_blocking(known.holds, ids):
            await sender.send_revisions(guild_id, revisions)
        return ()

    async def teach(capture: Capture) -> None:
        await sender.send(capture)

    return CaptureParts(
        keep=keep, revise=revise, recent_captures=captures, teach=teach, ask_filing=partial(ask_filing, client)
    )


@asynccontextmanager
async def open_shared(process: Process, people: SharedPeople, meters: Meters) -> AsyncGenerator[SharedServices]:
    """Open what partitions share, and log in, until the context ends. Raises as the services, and LoginFailure."""
    settings = process.settings_for(WORKER)
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        await enter(follow_knowledge(process.file_connection, settings))
        discord = await enter(open_discord(settings, is_rehearsal=settings.app.dry_run))
        await discord.client.log_in(discord_token(settings))
        kept = SharedStore(CollectionReplicas(process.client, settings.app.data_dir, document_files(settings)))
        stack.push_async_callback(kept.close)
        notes = SharedFlags(process.client)
        stack.push_async_callback(notes.aclose)
        key = await use_shared_feedback_key(people, DataFolder(settings.app.data_dir))
        budgets = await enter(SharedBudgets(streams_of(process.client), name_of=partial(limits_pseudonym, key)))
        state = read_state(
            settings, is_durable=False, on_tokens=meters.tokens, make_limiter=budgets.of, opt_outs=people.opt_outs
        )
        bot = await enter(
            open_bot(
                settings,
                PARTITIONS,
                state,
                discord,
                ModelOptions(
                    on_duration=meters.on_duration,
                    at_once=settings.ai_response.max_concurrent_answers,
                    on_call=meters.on_call,
                ),
                meters.gauge,
                shared=SharedDocuments(kept, notes),
                captures=sending_capture_parts(settings, process.client, state.is_withheld_in_capture),
            )
        )
        yield SharedServices(bot=bot, people=people, discord=discord, meters=meters, budgets=budgets)


@asynccontextmanager
async def open_people_services(process: Process, shared: SharedServices) -> AsyncGenerator[PeopleServices]:
    """Open the services for people that no partition owns, with the slash commands, until the end of the block."""
    bot, people, settings = shared.bot, shared.people, shared.bot.settings
    make_limiter, opt_outs = shared.budgets.of, people.opt_outs
    state = read_state(
        settings, is_durable=False, on_tokens=shared.meters.tokens, make_limiter=make_limiter, opt_outs=opt_outs
    )
    parts = bot.assemble(state, shared.meters.results)
    parts.services.people.bot_id = int(shared.discord.client.own_payload()["id"])
    people_services = PeopleServices(
        process=process,
        people=people,
        parts=parts,
        team_files=list(team_files(bot.servers).values()),
        documents=bot.documents,
    )
    async with aclosing(people_services):
        if settings.app.dry_run:
            yield people_services
            return
        client, forget = shared.discord.client, people_services.answer_forget_command
        async with slash_commands(client, settings, parts, bot.llm, bot.documents, forget) as people_services.commands:
            yield people_services


def pages_of(
    process: Process, shared: SharedServices, parts: GraphParts, flow: FlowMeter, monitor: HealthMonitor
) -> AddPages:
    """Return the dashboard, with this worker and the fleet."""
    from assembly.dashboard import FleetData, address_of, dashboard_pages, is_approving  # noqa: PLC0415 (templates, which nothing else needs)
    from assembly.distributed.fleet_outcomes import FleetGaps, FleetOutcomes, FleetTeam  # noqa: PLC0415 (as above)

    drafts = FleetDrafts(process.client, process.members) if is_approving(shared.bot.settings) else None
    log.info("the dashboard is at %s", address_of(shared.bot.settings.metrics))
    fleet = partial(fleet_of, process)
    outcomes = FleetOutcomes(process, parts.state.record)
    health = partial(fleet_conditions, process, monitor, parts.state.budgets)
    return dashboard_pages(
        shared.bot.settings,
        parts,
        flow,
        health=health,
        fleet=FleetData(fleet, outcomes, FleetGaps(process), partial(FleetTeam, process.client), drafts),
    )


async def run_worker(
    process: Process, stopping: asyncio.Event, meters: Meters, status_reporter: ProcessStatusReporter, serve: Serve
) -> None:
    """Play the role until `stopping` is set and all work has ended. `serve`: serves metrics, and the dashboard."""
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        people = await enter(open_people(process.client))
        shared = await enter(open_shared(process, people, meters))
        people_services = await enter(open_people_services(process, shared))
        forget_handler = await enter(aclosing(ForgetHandler(people.forget_requests, process.name)))
        partition_worker = PartitionWorker(process, shared, status_reporter, people_services, forget_handler)
        people.opt_outs.on_added, people.forget_requests.on_change = (
            partition_worker.on_opt_out,
            partition_worker.on_forget_request,
        )
        parts, monitor = people_services.parts, status_reporter.health
        pages = None if meters.flow is None else pages_of(process, shared, parts, meters.flow, monitor)
        await enter(serve(pages))
        await enter(answer_fleet(process.client, partition_worker.drafts_owned))
        await forget_handler.own(DOCUMENTS, people_services.forget)
        forget_handler.begin()
        await partition_worker.broadcast.catch_up()
        rebalancing = Rebalancing(process.client, process.layout, process.members, partition_worker.take)

        status_reporter.owned = lambda: {
            number: partition_worker.partitions[number].in_flight
            for number in rebalancing.owned
            if number in partition_worker.partitions
        }

        bot = shared.bot
        searches = [server.search for server in bot.servers.values()]
        await enter(keep_search_current(searches, bot.settings.kb.runtime_refresh_tick_seconds))
        await enter(in_background(partition_worker.broadcast.follow()))
        async with in_background(rebalancing.keep_share()):
            await stopping.wait()
        await rebalancing.release()
