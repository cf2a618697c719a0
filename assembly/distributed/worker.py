"""The role that answers: a graph for each partition that it owns, over what all of them share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from reactivex.subject import Subject

from assembly.answering import library_of
from assembly.bot import DiscordParts, open_discord
from assembly.distributed.process import EVERYTHING, Process
from assembly.documents import Documents, documents_for
from assembly.graph_parts import CaptureParts, Parts, ServerParts, assemble
from assembly.indexing import kept_searchable
from assembly.llm import assistant_of, open_llms
from assembly.running import GraphRun, Meters, in_background
from assembly.searching import open_embedder, open_search
from assembly.servers import Learners, open_servers, server_libraries
from assembly.state import RunState, autosave, read_state
from clock import now, run_blocking
from model.outcomes import Outcome, OutcomeKind, Result
from operators.screen import decode
from services.assistant import Assistant
from services.conversations import Outbox
from services.discord import Dispatch
from services.discord.live import CHANGES
from services.discord.wire import Decoder
from services.knowledge import Library, LibrarySearch
from services.llm import AttachedImages, ImageSource
from services.storage import files
from services.team import Capture, Captures, archive_files
from settings import Settings, usable_token
from sinks.archive import RawArchive
from sinks.results import journal
from streams.graph import graph
from transport.broadcast import Broadcast
from transport.budgets import SharedBudgets
from transport.captures import HandOver
from transport.connection import streams_of
from transport.errors import Fenced
from transport.fence import FencedLog
from transport.layout import KNOWLEDGE, TEAM, scope
from transport.mirror import LogJournal, ScopeFollower, restore
from transport.partition import Partition
from transport.shares import WORKER, Shares

REMEMBERED_WEEKS = 2

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What all graphs of a worker are wired to."""

    settings: Settings
    discord: DiscordParts
    assistant: Assistant
    library: Library
    search: LibrarySearch
    images: ImageSource | None
    documents: Documents | None
    servers: Mapping[int, ServerParts]
    captures: CaptureParts
    meters: Meters
    budgets: SharedBudgets


@dataclass(slots=True)
class PartitionWork:
    """`transport.partition.Work`: one graph over one folder."""

    source: Subject[Dispatch]
    run: GraphRun
    stack: AsyncExitStack
    parts: Parts
    grace_seconds: float

    def feed(self, dispatch: Dispatch) -> None:
        self.source.on_next(dispatch)

    async def drain(self) -> None:
        self.source.on_completed()
        await self.run.drain(self.grace_seconds)
        await self.stack.aclose()

    async def cut(self) -> None:
        self.run.cut_off()
        # What would be saved now belongs to somebody else.
        with suppress(Fenced):
            await self.stack.aclose()


@dataclass(slots=True)
class Workshop:
    """Opens the work on partitions, and tells all of it of places."""

    process: Process
    shared: Shared
    partitions: dict[int, Partition] = field(default_factory=dict[int, Partition])
    broadcast: Broadcast = field(init=False)

    def __post_init__(self) -> None:
        self.broadcast = Broadcast(self.process.client, self.heard)

    async def take(self, number: int) -> Partition | None:
        """For `Shares`."""
        process = self.process
        partition = Partition(
            process.client, process.beside, process.layout, number, process.name, self.open, self.interact
        )
        if not await partition.take():
            return None
        self.partitions[number] = partition
        return partition

    def heard(self, dispatch: Dispatch) -> None:
        """A server, a channel, a role or a thread: for the cache of discord.py, and for every graph."""
        client, decoder = self.shared.discord.client, self.shared.discord.decoder
        client.read(dispatch.t, dispatch.d)
        decoder.decode(dispatch)
        if dispatch.t in CHANGES:
            for refused in self.shared.discord.refusals:
                refused.clear()
        for partition in self.partitions.values():
            partition.feed(dispatch)

    def interact(self, payload: Mapping[str, Any]) -> None:
        """Somebody has called a command in a place of one of these partitions."""
        self.shared.discord.client.read("INTERACTION_CREATE", payload)

    async def open(self, number: int, fenced: FencedLog, told: Callable[[Result], None]) -> PartitionWork:
        """For `Partition`: the partition's folder as it was left, and a graph on it."""
        process, shared, beside = self.process, self.shared, self.process.beside
        folder = process.folder / scope(number)
        await beside.do(restore(fenced, folder, EVERYTHING))
        common = shared.settings
        settings = common.model_copy(update={"app": common.app.model_copy(update={"data_dir": folder})})
        async with AsyncExitStack() as stack:
            stack.enter_context(files.journaled(folder, LogJournal(beside, fenced)))
            state = await run_blocking(_state_of, settings, shared)
            parts = assemble(
                settings,
                state=state,
                assistant=shared.assistant,
                library=shared.library,
                search=shared.search,
                poster=shared.discord.poster,
                captures=shared.captures,
                fetcher=shared.discord.fetcher,
                access=shared.discord.access,
                images=shared.images,
                documents=shared.documents,
                gauge=shared.meters.gauge,
                results=[*shared.meters.results, journal, state.record.add, told],
                servers=shared.servers,
            )
            await stack.enter_async_context(autosave(state))
            source: Subject[Dispatch] = Subject()
            events = source.pipe(decode(Decoder()))
            run = GraphRun(graph(events, parts.services, parts.sinks, parts.rules), parts.services.in_flight)
            work = PartitionWork(source, run, stack.pop_all(), parts, process.grace_seconds)
        for said in self.broadcast.so_far():
            work.feed(said)
        # What an earlier owner has left half posted is finished once the bot is known.
        work.feed(Dispatch(now(), "READY", {"user": shared.discord.client.own_payload()}))
        return work


def _state_of(settings: Settings, shared: Shared) -> RunState:
    state = read_state(settings, on_tokens=shared.meters.tokens, limiter_of=shared.budgets.of)
    # Every reply is claimed before it is posted, those of one piece as well.
    return replace(state, outbox=Outbox(state.folder.outbox, pieces=1))


def handing_over(settings: Settings, given: HandOver, opted_out: Callable[[int, str], bool]) -> CaptureParts:
    """As `capture_parts`, where another process keeps the archive: what is stored already is known here as well."""
    raw = settings.kb.team_raw_dir
    captures = Captures(archive_files.pairs_in(raw, REMEMBERED_WEEKS), opted_out)
    known = RawArchive(raw, captures, rehearsed=True)

    async def keep(capture: Capture) -> Outcome:
        outcome = await known.keep(capture)
        if outcome.result is OutcomeKind.CAPTURED:
            await given.give(capture)
        # Its id is given where it is kept.
        return replace(outcome, qa_id=None)

    return CaptureParts(keep=keep, captures=captures)


def followed(settings: Settings) -> Mapping[str, Sequence[str]]:
    """The folders that other roles write, by their scope."""
    homes = ["", *(f"guilds/{guild_id}/" for guild_id in settings.servers)]
    return {
        TEAM: [f"{home}team-knowledge" for home in homes],
        KNOWLEDGE: [f"{home}knowledge-base" for home in homes],
    }


@asynccontextmanager
async def open_shared(process: Process, meters: Meters) -> AsyncGenerator[Shared]:
    """Opened and logged in, for as long as the block runs. Raises as the parts, and `discord.LoginFailure`."""
    settings = process.settings_for(WORKER)
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        for name, below in followed(settings).items():
            follower = ScopeFollower(process.beside, name, settings.app.data_dir, below)
            await enter(in_background(follower.run()))
            await follower.caught_up()
        answering, knowledge = await enter(open_llms(settings, observe=meters.observe))
        embedder = await enter(open_embedder(settings.search.embeddings))
        discord = await enter(open_discord(settings, rehearsal=settings.app.dry_run))
        await discord.client.log_in(usable_token(settings))
        library = library_of(settings)
        images = AttachedImages(discord.attachments) if settings.ai_response.llm_enable_image else None
        documents = await enter(
            documents_for(settings, answering, discord.attachments, embedder, observe=meters.observe)
        )
        search = await enter(open_search(settings, library, embedder, read_only=False, alone=False))
        budgets = await enter(SharedBudgets(streams_of(process.client)))
        state = read_state(settings, durable=False, on_tokens=meters.tokens, limiter_of=budgets.of)
        libraries = server_libraries(settings, library)
        learners = Learners(asker=knowledge, images=images, rehearsal=True)
        servers = await enter(
            open_servers(settings, state, libraries, search, answering, learners, read_only=False, alone=False)
        )
        captures = handing_over(settings, HandOver(process.client), state.opted_out)
        own = {guild_id: replace(each, captures=captures) for guild_id, each in servers.items()}
        yield Shared(
            settings=settings,
            discord=discord,
            assistant=assistant_of(settings, search, answering),
            library=library,
            search=search,
            images=images,
            documents=documents,
            servers=own,
            captures=captures,
            meters=meters,
            budgets=budgets,
        )


async def work(process: Process, stopping: asyncio.Event, meters: Meters) -> None:
    """Play the role until `stopping` is set and all work has ended."""
    async with open_shared(process, meters) as shared:
        workshop = Workshop(process, shared)
        await workshop.broadcast.catch_up()
        shares = Shares(process.client, process.layout, process.members, workshop.take)

        def guild_ids() -> set[int]:
            return {guild.id for guild in shared.discord.client.guilds}

        searchable = kept_searchable(
            shared.settings, shared.documents, shared.library, shared.search, guild_ids, shared.servers
        )
        async with searchable, in_background(workshop.broadcast.follow()):
            async with in_background(shares.keep()):
                await stopping.wait()
            await shares.release()
