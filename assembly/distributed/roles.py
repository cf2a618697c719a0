"""The roles gateway, knowledge and team, and `run_roles`, which plays the roles of one process from start to end."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from pathlib import Path
from typing import TypeVar

from reactivex.subject import Subject

from assembly import Unusable
from assembly.answering import ModelOptions, open_llms
from assembly.bot import gateway_rules
from assembly.data_folder import read_state
from assembly.distributed.forgetting import ForgetHandler
from assembly.distributed.keepers import ArchiveKeeper, tell_refusal
from assembly.distributed.process import EVERYTHING, Process, ProcessStatusReporter, homes, open_process
from assembly.distributed.worker import AddPages, run_worker
from assembly.forgetting import Privacy, data_not_in_nats, team_files
from assembly.graph_parts import DiscordAPI, teams
from assembly.health import HealthMonitor
from assembly.knowledge import keep_all_knowledge_current
from assembly.opening import ARCHIVE, open_bot
from assembly.running import GraphRun, Meters, in_background, meters_of, serving, stop_signal
from clock import cancel_and_wait, now
from clock.timeouts import Backoff
from model import processes
from model.servers import Servers
from operators.screen import decode
from services.conversations import People
from services.discord import Decoder, Dispatch, DryRunPoster, GatewayHealth, GatewayRefused
from services.discord.live import Client, ForbiddenPlaces, RestFetcher, reason, refusal
from services.privacy import ForgetResult
from services.storage import DataFolder, files, in_thread
from services.telemetry import number_of
from settings import Settings, discord_token
from sinks.results import journal
from streams.gateway import Gateway, GatewayHooks
from streams.graph import graph
from transport.address import ServersUnusable
from transport.captures import CaptureReceiver
from transport.connection import AWAY_ERRORS, streams_of
from transport.dispatches import PlacesFollower, ThreadFacts, thread_facts
from transport.fenced_log import Fenced, FencedLog
from transport.folder_log import FolderPublisher, LogJournal, OrphanedBlobs, restore
from transport.gateway_publisher import open_publisher, run_gateways
from transport.lease import Lease, stand_by, wait_for_any
from transport.locks import hold_shard_count, make_identify_turn
from transport.members import answer_status
from transport.people import open_people
from transport.requests import ARCHIVE as ARCHIVE_REQUESTS
from transport.requests import answering
from transport.streams import CAPTURES, KNOWLEDGE, LOCKS, ROLES, TEAM
from transport.watermarks import PublishWatermarks, open_watermarks

MAX_WAITING = 10_000
"""Dispatches of one shard that may wait for NATS in memory; later ones wait at Discord."""

log = logging.getLogger(__name__)


async def run_gateway(
    process: Process, stopping: asyncio.Event, shards: tuple[Sequence[int], int] | None, health: GatewayHealth
) -> None:
    """Play the role until `stopping` is set and all dispatches are in the stream.

    `shards`: the numbers of this process, and how many there are in all; None: there is only one.

    Raises:
        GatewayRefused: Discord refuses the bot for good.
        ServersUnusable: other gateways have another number of shards.
    """
    settings, streams = process.configured, streams_of(process.client)
    token = discord_token(settings)
    numbers, count = shards or ((0,), 1)
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        await enter(hold_shard_count(streams, count))
        clients: list[Client] = []
        for number in numbers:
            client = Client(feedback=settings.discord.feedback, shard_id=number, shard_count=count)
            stack.push_async_callback(client.close)
            clients.append(client)
        at_once = await concurrent_identifies(clients[0], token, stopping)
        if at_once is None:
            return
        turn = make_identify_turn(await streams.key_value(LOCKS), at_once, process.name)
        marks = await enter(open_watermarks(streams, is_ours=lambda guild_id: (guild_id >> 22) % count in numbers))
        published = await enter(open_publisher(process.client, marks, facts_from_any(clients)))

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


async def run_gateway_or_tell(
    process: Process, stopping: asyncio.Event, shards: tuple[Sequence[int], int] | None, health: GatewayHealth
) -> None:
    """Run the gateway as `run_gateway` does. If Discord refuses the bot, first tell the worker that tells people."""
    try:
        await run_gateway(process, stopping, shards, health)
    except GatewayRefused as refused:
        await tell_refusal(process.client, str(refused))
        raise


async def concurrent_identifies(client: Client, token: str, stopping: asyncio.Event) -> int | None:
    """Ask Discord, until it answers, how many sessions may begin at a time; None: `stopping`. Raises GatewayRefused."""
    backoff = Backoff()
    while not stopping.is_set():
        try:
            await client.log_in(token)
            return await client.concurrent_identifies()
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
    health: GatewayHealth,
) -> Gateway:
    """Make the gateway of one shard, not connected yet. `turn`: awaited before each IDENTIFY."""
    decoder = Decoder()
    fetcher = RestFetcher(client.http, decode_place=decoder.place, forbidden=ForbiddenPlaces())
    people = People(teams(settings), fetcher)
    return Gateway(
        client,
        token,
        fetcher=fetcher,
        watermarks=marks.by_place,
        rules=gateway_rules(settings, most_waiting=MAX_WAITING),
        hooks=GatewayHooks(on_guild=marks.note_guild, look_up=people.look_up, before_identify=turn),
        health=health,
    )


def facts_from_any(clients: Sequence[Client]) -> ThreadFacts:
    """Look a thread up in all clients: the one whose shard has the server knows it."""
    each_knows = [thread_facts(client) for client in clients]

    def known(guild_id: int, thread_id: int) -> Mapping[str, object] | None:
        return next((facts for knows in each_knows if (facts := knows(guild_id, thread_id)) is not None), None)

    return known


async def take_over(process: Process, role: str, lost: asyncio.Event) -> FencedLog:
    """Take over the scope of a role, and make its folder equal to it. `lost` is set once another process has it."""
    file_connection, fenced = process.file_connection, FencedLog(process.file_connection.streams, role)
    loop = asyncio.get_running_loop()
    fenced.on_lost = lambda: loop.call_soon_threadsafe(lost.set)
    await file_connection.do(fenced.open(process.name, now()))
    await file_connection.do(restore(fenced, process.settings_for(role).app.data_dir, EVERYTHING))
    return fenced


H = TypeVar("H")


async def keep_while_held(held: AsyncGenerator[H], keep: Callable[[H], Awaitable[None]], what: str) -> None:
    """Run `keep` each time `held` yields the holder of a lease. When another process takes over, or the server does not
    answer, the lease is released, and the next one is waited for. `what`: the name in log lines.
    """
    async with aclosing(held):
        async for holder in held:
            try:
                await keep(holder)
            except Fenced:
                log.warning("%s is kept by another process now", what)
            except AWAY_ERRORS as error:
                cause = str(error) or type(error).__name__
                log.warning("%s: the server does not answer (%s); it will be taken over anew", what, cause)


SUBJECT = "roles.knowledge"
PUBLISH_SECONDS = 1.0
"""The time between two checks for changes on the disk."""


async def run_knowledge(process: Process, stopping: asyncio.Event, meters: Meters) -> None:
    """Play the role: stand by, and keep the knowledge while the lease is held, until `stopping` is set."""

    def make_lease() -> Lease:
        seconds = process.layout.lease_seconds
        return Lease(process.client, ROLES, SUBJECT, process.name, seconds=seconds, most_unacked=1)

    held = stand_by(process.client, ROLES, process.members, make_lease, stopping)
    await keep_while_held(held, lambda lease: _keep_knowledge(process, lease.lost, stopping, meters), "the knowledge")


async def _keep_knowledge(process: Process, lost: asyncio.Event, stopping: asyncio.Event, meters: Meters) -> None:
    """Update and publish until `stopping` or `lost` is set. Raises Fenced: another process has taken over."""
    file_connection = process.file_connection
    # So that sources which another process has described are not described, and paid for, again.
    fenced = await take_over(process, KNOWLEDGE, lost)
    settings = with_documents(process)
    publisher = FolderPublisher(
        fenced,
        settings.app.data_dir,
        [f"{home}knowledge-base" for home in homes(settings)],
        publish_last=[f"{home}knowledge-base/index.txt" for home in homes(settings)],
        outside_paths=_documents(settings),
    )

    async def publish() -> None:
        try:
            done = await file_connection.do(publisher.publish())
        except OSError as error:
            log.error("knowledge is not handed on: %s", files.describe_error(error))  # noqa: TRY400 (a line for the operator)
        else:
            if done.published or done.removed:
                log.info("knowledge: %s handed on, %d removed", number_of(done.published, "file"), done.removed)

    async with AsyncExitStack() as stack:
        models = ModelOptions(on_duration=meters.on_duration, on_call=meters.on_call)
        _, asker = await stack.enter_async_context(open_llms(settings, models))
        state = read_state(settings, is_durable=False, on_tokens=meters.tokens)
        await stack.enter_async_context(keep_all_knowledge_current(settings, asker, state.usages, meters))
        # One process sweeps all scopes, and one at a time keeps the knowledge.
        await stack.enter_async_context(in_background(OrphanedBlobs(streams_of(process.client)).keep_sweeping()))
        log.info("the knowledge is kept here")
        while not stopping.is_set() and not lost.is_set():
            await publish()
            await wait_for_any(PUBLISH_SECONDS, stopping, lost)
    if lost.is_set():
        raise Fenced(KNOWLEDGE)
    await publish()
    await file_connection.do(fenced.hand_back(now()))


def with_documents(process: Process) -> Settings:
    """Return the settings with all data in a folder of the role, except documents that the operator keeps elsewhere.
    Without such, the documents from the log are used.
    """
    moved, written = process.settings_for(KNOWLEDGE).servers, process.configured.servers
    documented = Servers(
        {guild_id: _with_documents_of(server, written[guild_id]) for guild_id, server in moved.items()}
    )
    return documented.default.with_servers(documented.own)


def _with_documents_of(moved: Settings, written: Settings) -> Settings:
    given = {
        name: getattr(written.kb, name)
        for name in ("sources_dir", "links_file_path")
        if getattr(written.kb, name).exists()
    }
    return moved.model_copy(update={"kb": moved.kb.model_copy(update=given)})


def _documents(settings: Settings) -> Mapping[str, Path]:
    """Return the paths of the documents, by their usual path in the data folder."""
    found: dict[str, Path] = {}
    for home, each in homes(settings).items():
        for folder in each.kb.document_folders:
            below = folder.relative_to(each.kb.sources_dir).as_posix()
            found[f"{home}knowledge-base/sources/{below}".removesuffix("/.")] = folder
        found[f"{home}knowledge-base/links.txt"] = each.kb.links_file_path
    return found


async def run_team(
    process: Process, stopping: asyncio.Event, meters: Meters, status_reporter: ProcessStatusReporter
) -> None:
    """Play the role: stand by, and keep the archive while the lease is held, until `stopping` is set."""

    def make_receiver() -> CaptureReceiver:
        return CaptureReceiver(process.client, process.name, lease_seconds=process.layout.lease_seconds)

    def keep(receiver: CaptureReceiver) -> Awaitable[None]:
        return _keep_archive(process, receiver, stopping, meters, status_reporter)

    held = stand_by(process.client, CAPTURES, process.members, make_receiver, stopping)
    await keep_while_held(held, keep, "the archive")


async def _keep_archive(
    process: Process,
    capture_receiver: CaptureReceiver,
    stopping: asyncio.Event,
    meters: Meters,
    status_reporter: ProcessStatusReporter,
) -> None:
    """Store and file captures until `stopping` is set. Raises Fenced: another process has taken over."""
    file_connection, settings = process.file_connection, process.settings_for(TEAM)
    folder, lost = settings.app.data_dir, capture_receiver.lease.lost
    fenced = await take_over(process, TEAM, lost)
    async with AsyncExitStack() as stack:
        # The next owner may be asked to forget people whose data is in this copy.
        stack.push_async_callback(in_thread, files.remove_folder, folder)
        journal_of_files = LogJournal(file_connection, fenced)
        stack.enter_context(files.use_journal(folder, journal_of_files))
        people = await stack.enter_async_context(open_people(process.client))
        state = read_state(settings, is_durable=False, on_tokens=meters.tokens, opt_outs=people.opt_outs)
        no_api = DiscordAPI(poster=DryRunPoster())
        models = ModelOptions(on_duration=meters.on_duration, on_call=meters.on_call)
        bot = await stack.enter_async_context(open_bot(settings, ARCHIVE, state, no_api, models, meters.gauge))
        keeper = ArchiveKeeper(process.client, bot.servers)
        on_results = [*meters.results, status_reporter.add, journal, capture_receiver.on_result, keeper.on_result]
        parts = bot.assemble(state, on_results)
        places: Subject[Dispatch] = Subject()  # which channels are public
        results = graph(
            places.pipe(decode(Decoder())), parts.services, parts.sinks, parts.rules, capture_receiver.captures
        )
        run = GraphRun(results, parts.services.in_flight)
        stack.callback(run.cut_off)
        follower = PlacesFollower(process.client, places.on_next)
        await follower.catch_up()
        await stack.enter_async_context(in_background(follower.follow()))
        privacy = Privacy(parts, team_files(bot.servers), settings=settings)

        async def forget(user_id: int, _renamed: Mapping[str, str]) -> ForgetResult:
            dropped = await capture_receiver.forget(user_id)
            with journal_of_files.erasing():
                done = await privacy.remove(user_id)
            done.pending += dropped
            return done

        forget_handler = await stack.enter_async_context(aclosing(ForgetHandler(people.forget_requests, process.name)))
        # First carry out requests that were made while nobody kept the archive.
        await forget_handler.own(TEAM, forget, privacy.planned_renames)
        people.forget_requests.on_change = forget_handler.on_request
        forget_handler.begin()
        await stack.enter_async_context(answering(process.client, ARCHIVE_REQUESTS, keeper.answer))
        capture_receiver.begin()
        log.info("the archive is kept here")
        await wait_for_any(None, stopping, lost, ended=[run.finished])
        if lost.is_set():
            run.cut_off()
            raise Fenced(TEAM)
        capture_receiver.stop()
        places.on_completed()
        await run.drain(process.grace_seconds)
    await file_connection.do(fenced.hand_back(now()))


COUNT_SECONDS = 1.0
"""The time between two updates of the gauges of messages in flight."""


async def run_roles(settings: Settings, roles: Sequence[str], shards: tuple[Sequence[int], int] | None) -> None:
    """Play the roles until SIGINT or SIGTERM.

    Raises:
        Unusable: the servers of NATS cannot be used.
        GatewayRefused, OSError: as the roles.
    """
    async with AsyncExitStack() as stack:
        stopped = stack.enter_context(stop_signal())
        health, monitor = GatewayHealth(now()), HealthMonitor(settings, place=socket.gethostname())
        if "gateway" in roles:
            monitor.watch_gateway(health)
        await stack.enter_async_context(monitor.watching_errors())
        meters = meters_of(settings, "+".join(roles), monitor)
        process = await stack.enter_async_context(open_process(settings, roles))
        await in_thread(warn_of_data_not_in_nats, settings)
        status_reporter = ProcessStatusReporter(process, monitor)
        await stack.enter_async_context(in_background(monitor.keep_sampling()))
        answering = await answer_status(process.client, status_reporter.status)
        stack.push_async_callback(answering.unsubscribe)
        if meters.owned is not None:
            await stack.enter_async_context(in_background(_report_owned(status_reporter, meters.owned)))
        ends = {role: asyncio.Event() for role in roles}
        playing = {
            "gateway": lambda: run_gateway_or_tell(process, ends["gateway"], shards, health),
            "worker": lambda: run_worker(process, ends["worker"], meters, status_reporter, serve),
            "team": lambda: run_team(process, ends["team"], meters, status_reporter),
            "knowledge": lambda: run_knowledge(process, ends["knowledge"], meters),
        }
        listens = "gateway" in roles
        problem = (lambda: health.problem(now())) if listens else (lambda: None)
        ready = (lambda: None if health.connected else "not connected yet") if listens else (lambda: None)

        def serve(add_pages: AddPages | None) -> AbstractAsyncContextManager[None]:
            return serving(settings.metrics, meters, problem, ready=ready, add_pages=add_pages)

        if "worker" not in roles:  # the worker serves them with the dashboard
            await stack.enter_async_context(serve(None))
        tasks = {role: asyncio.create_task(playing[role](), name=role) for role in processes.ROLES if role in roles}
        try:
            await asyncio.wait({stopped, *tasks.values()}, return_when=asyncio.FIRST_COMPLETED)
            for role, task in tasks.items():
                ends[role].set()
                await task
        except ServersUnusable as error:
            raise Unusable(str(error)) from None
        finally:
            await cancel_and_wait(*tasks.values())


def warn_of_data_not_in_nats(settings: Settings) -> None:
    """Warn if the data folder holds data of the bot as it was before NATS. Blocking. Raises OSError."""
    folder = DataFolder(settings.app.data_dir)
    layout = {folder.team_knowledge, folder.posts.parent, folder.feedback, folder.evidence, folder.runbooks}
    names = {path.name for path in (*layout, folder.chroma_copies)}
    if found := [path for path in data_not_in_nats(settings) if path.name in names]:
        where = ", ".join(map(str, found))
        log.warning("%s: what counts is in NATS, and nobody is forgotten here; move it elsewhere, or delete it", where)


async def _report_owned(reporter: ProcessStatusReporter, on_owned: Callable[[Mapping[int, int]], object]) -> None:
    while True:
        on_owned(reporter.owned())
        await asyncio.sleep(COUNT_SECONDS)
