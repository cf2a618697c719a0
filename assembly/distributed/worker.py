"""The role that answers: a graph for each partition that it owns, over what all of them share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from reactivex.subject import Subject

from assembly.answering import library_of
from assembly.bot import DiscordParts, open_discord
from assembly.distributed.forgetting import DOCUMENTS, Duties, duties_of
from assembly.distributed.other_roles import followed, handing_over
from assembly.distributed.partition_work import PartitionWork, privacy_of
from assembly.distributed.people import PeopleDesk, closing, keep_feedback_key
from assembly.distributed.process import EVERYTHING, Process
from assembly.distributed.standing import Standing
from assembly.documents import Documents, documents_for, embedded_store
from assembly.graph_parts import CaptureParts, Parts, ServerParts, assemble
from assembly.indexing import kept_searchable
from assembly.llm import assistant_of, open_llms
from assembly.running import GraphRun, Meters, in_background
from assembly.searching import open_embedder, open_search
from assembly.servers import Learners, open_servers, server_libraries
from assembly.shared_documents import flushed
from assembly.slash_commands import slash_commands
from assembly.state import RunState, autosave, read_state
from assembly.teachings import taught
from clock import now, run_blocking
from model.outcomes import Result
from operators.screen import decode
from services.assistant import Assistant
from services.conversations import Outbox, Post, read_posts
from services.discord import Dispatch
from services.discord.live import CHANGES
from services.discord.wire import Decoder
from services.documents.store import Together
from services.knowledge import Library, LibrarySearch
from services.llm import AttachedImages, ImageSource, StructuredLLM
from services.storage import DataFolder, files
from settings import Settings, usable_token
from sinks.results import journal
from streams.graph import graph
from transport.announcing import AnnouncedPosts, announcing
from transport.broadcast import Broadcast
from transport.budgets import SharedBudgets
from transport.captures import HandOver
from transport.connection import streams_of
from transport.evidence import shared_store
from transport.fence import FencedLog
from transport.layout import scope
from transport.mirror import LogJournal, ScopeFollower, restore
from transport.notes import KeptNotes
from transport.partition import Partition
from transport.people import SharedPeople, open_people
from transport.shares import WORKER, Shares
from transport.wishes import Wish

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What all graphs of a worker are wired to."""

    settings: Settings
    people: SharedPeople
    llm: StructuredLLM | None
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

    def assemble(self, settings: Settings, state: RunState, results: Sequence[Callable[[Result], object]]) -> Parts:
        """What a graph is wired to, or commands are."""
        return assemble(
            settings,
            state=state,
            assistant=self.assistant,
            library=self.library,
            search=self.search,
            poster=self.discord.poster,
            captures=self.captures,
            fetcher=self.discord.fetcher,
            access=self.discord.access,
            images=self.images,
            documents=self.documents,
            gauge=self.meters.gauge,
            results=results,
            servers=self.servers,
        )


@dataclass(slots=True)
class Workshop:
    """Opens the work on partitions, and tells all of it of places."""

    process: Process
    shared: Shared
    standing: Standing
    desk: PeopleDesk
    duties: Duties
    partitions: dict[int, Partition] = field(default_factory=dict[int, Partition])
    works: dict[int, PartitionWork] = field(default_factory=dict[int, PartitionWork])  # the last of each partition
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
        self.desk.heard(dispatch, decoder.decode(dispatch))
        if dispatch.t in CHANGES:
            for refused in self.shared.discord.refusals:
                refused.clear()
        for partition in self.partitions.values():
            partition.feed(dispatch)

    def interact(self, payload: Mapping[str, Any]) -> None:
        """Somebody has called a command in a place of one of these partitions."""
        self.shared.discord.client.read("INTERACTION_CREATE", payload)

    def leave_alone(self, user_id: int) -> None:
        """Somebody has opted out, here or elsewhere."""
        for work in self.works.values():
            work.leave_alone(user_id)
        self.desk.leave_alone(user_id)

    def wished(self, wish: Wish) -> None:
        """Somebody wants to be forgotten, or others have done their part of it."""
        self.duties.heard(wish)
        self.desk.come_further(wish)

    async def open(self, number: int, fenced: FencedLog, told: Callable[[Result], None]) -> PartitionWork:
        """For `Partition`: the partition's folder as it was left, and a graph on it."""
        process, shared, beside = self.process, self.shared, self.process.beside
        folder = process.folder / scope(number)
        await beside.do(restore(fenced, folder, EVERYTHING))
        common = shared.settings
        settings = common.model_copy(update={"app": common.app.model_copy(update={"data_dir": folder})})
        async with AsyncExitStack() as stack:
            stack.enter_context(files.journaled(folder, LogJournal(beside, fenced)))
            if shared.documents is not None and shared.documents.shared is not None:
                # The next owner's answers are from the files that this one has read.
                stack.push_async_callback(flushed, shared.documents.shared)
            await keep_feedback_key(shared.people, DataFolder(folder))
            state = await run_blocking(_state_of, settings, shared, announcing(process.client))
            parts = shared.assemble(
                settings, state, [*shared.meters.results, self.standing.add, journal, state.record.add, told]
            )
            await stack.enter_async_context(autosave(state))
            source: Subject[Dispatch] = Subject()
            events = source.pipe(decode(Decoder()))
            run = GraphRun(graph(events, parts.services, parts.sinks, parts.rules), parts.services.in_flight)
            work = PartitionWork(
                number=number,
                folder=folder,
                source=source,
                run=run,
                stack=stack.pop_all(),
                parts=parts,
                privacy=privacy_of(settings, parts),
                duties=self.duties,
                grace_seconds=process.grace_seconds,
            )
        self.works[number] = work
        # Who was forgotten while nobody had the partition is so before anything else.
        await self.duties.own(scope(number), work.forget)
        for said in self.broadcast.so_far():
            work.feed(said)
        # What an earlier owner has left half posted is finished once the bot is known.
        work.feed(Dispatch(now(), "READY", {"user": shared.discord.client.own_payload()}))
        return work


def _state_of(settings: Settings, shared: Shared, announce: Callable[[Post], Awaitable[None]]) -> RunState:
    state = read_state(settings, on_tokens=shared.meters.tokens, limiter_of=shared.budgets.of)
    return replace(
        state,
        # Every reply is claimed before it is posted, those of one piece as well.
        outbox=Outbox(state.folder.outbox, pieces=1),
        posts=AnnouncedPosts(read_posts(state.folder.posts), state.folder.posts, announce),
        opt_outs=shared.people.opt_outs,
    )


@asynccontextmanager
async def open_shared(process: Process, people: SharedPeople, meters: Meters) -> AsyncGenerator[Shared]:
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
        kept = shared_store(streams_of(process.client), settings.app.data_dir, embedded_store(settings))
        stack.push_async_callback(kept.close)
        notes = KeptNotes(streams_of(process.client))
        stack.push_async_callback(notes.aclose)
        documents = await enter(
            documents_for(
                settings, answering, discord.attachments, embedder, observe=meters.observe, shared=Together(kept, notes)
            )
        )
        search = await enter(open_search(settings, library, embedder, read_only=False, alone=False))
        budgets = await enter(SharedBudgets(streams_of(process.client)))
        state = replace(
            read_state(settings, durable=False, on_tokens=meters.tokens, limiter_of=budgets.of),
            opt_outs=people.opt_outs,
        )
        libraries = server_libraries(settings, library)
        learners = Learners(asker=knowledge, images=images, rehearsal=True)
        servers = await enter(
            open_servers(settings, state, libraries, search, answering, learners, read_only=False, alone=False)
        )
        captures = handing_over(settings, HandOver(process.client), state.opted_out)
        own = {guild_id: replace(each, captures=captures) for guild_id, each in servers.items()}
        yield Shared(
            settings=settings,
            people=people,
            llm=answering,
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


@asynccontextmanager
async def open_desk(process: Process, shared: Shared) -> AsyncGenerator[PeopleDesk]:
    """What serves people beside the partitions, and the commands, until the end of the block."""
    settings, people = shared.settings, shared.people
    state = replace(
        read_state(settings, durable=False, on_tokens=shared.meters.tokens, limiter_of=shared.budgets.of),
        opt_outs=people.opt_outs,
    )
    parts = shared.assemble(settings, state, shared.meters.results)
    parts.services.people.bot_id = int(shared.discord.client.own_payload()["id"])
    own = [taught(each.settings, None, each.search) for each in shared.servers.values()]
    desk = PeopleDesk(
        process=process,
        people=people,
        parts=parts,
        taught=[taught(settings, None, shared.search), *own],
        documents=shared.documents,
    )
    async with closing(desk):
        if settings.app.dry_run:
            yield desk
            return
        client, llm, documents, servers = shared.discord.client, shared.llm, shared.documents, shared.servers
        async with slash_commands(
            client, settings, parts, llm, documents, servers, desk.say_forgotten
        ) as desk.commands:
            yield desk


async def work(process: Process, stopping: asyncio.Event, meters: Meters, standing: Standing) -> None:
    """Play the role until `stopping` is set and all work has ended."""
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        people = await enter(open_people(process.client))
        shared = await enter(open_shared(process, people, meters))
        desk = await enter(open_desk(process, shared))
        duties = await enter(duties_of(people.wishes, process.name))
        workshop = Workshop(process, shared, standing, desk, duties)
        people.opt_outs.on_added, people.wishes.on_change = workshop.leave_alone, workshop.wished
        await duties.own(DOCUMENTS, desk.forget)
        duties.begin()
        await workshop.broadcast.catch_up()
        shares = Shares(process.client, process.layout, process.members, workshop.take)

        standing.owned = lambda: {
            number: workshop.partitions[number].in_flight for number in shares.owned if number in workshop.partitions
        }

        def guild_ids() -> set[int]:
            return {guild.id for guild in shared.discord.client.guilds}

        await enter(
            kept_searchable(shared.settings, shared.documents, shared.library, shared.search, guild_ids, shared.servers)
        )
        await enter(in_background(workshop.broadcast.follow()))
        async with in_background(shares.keep()):
            await stopping.wait()
        await shares.release()
