"""Builds from the settings everything a graph is wired to: rules, services, sinks, and the parts that single servers
have of their own.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from assembly.answering import answer_rules, assistant_of, open_search, point_rules, server_library
from assembly.data_folder import RunState
from assembly.documents import Documents, evidence_rules
from assembly.knowledge import knowledge_kept_current
from assembly.redaction import redactor_of
from assembly.running import Meters
from assembly.team import capture_images, curation_parts, curation_rules
from dataflow.metering import Gauge
from model.outcomes import Outcome, Result
from operators.screen import ScreenRules
from services.assistant import Assistant
from services.conversations import (
    Context,
    ContextRules,
    ConversationTracker,
    History,
    InFlight,
    People,
    Router,
    RouteRules,
    TeamActivity,
    TeamIds,
    ThreadAccess,
    TrackingRules,
    TypingTracker,
)
from services.discord import Access, Fetcher, Poster
from services.knowledge import JoinedLibrary, Library, LibrarySearch, OwnLibrary, Search
from services.llm import ImageSource, StructuredLLM
from services.storage import DataFolder
from services.team import Capture, Captures, archive_files
from settings import Settings
from sinks.archive import RawArchive
from sinks.evidence import FileNotes
from sinks.feedback import Feedback
from sinks.replies import Replies
from streams.captures import Images
from streams.conversations import WindowRules
from streams.curation import CurationServices
from streams.server_context import ServerContext
from streams.wiring import EvidenceParts, Learning, Rules, Services, Sinks


def graph_rules(settings: Settings, state: RunState, *, to_the_end: bool) -> Rules:
    discord = settings.discord
    return Rules(
        screen=ScreenRules(
            withheld=state.withheld,
            allowed=discord.channel_allowlist,
            denied=discord.channel_denylist,
            servers={
                guild_id: (server.discord.channel_allowlist, server.discord.channel_denylist)
                for guild_id, server in settings.servers.items()
            },
            # As it was at the start: within a run, a late message is not an old one.
            ended=state.seen_before.has_outcome,
        ),
        answers=answer_rules(settings),
        window=WindowRules(
            quiet=discord.message_batch_wait_seconds,
            settle=discord.message_batch_settle_seconds,
            longest=discord.message_batch_max_seconds,
        ),
        evidence=evidence_rules(settings.documents),
        curation=curation_rules(settings, to_the_end=to_the_end),
    )


def context_rules(settings: Settings, state: RunState) -> ContextRules:
    discord = settings.discord
    return ContextRules(
        reply_chain_max_depth=discord.reply_chain_max_depth,
        grouping_seconds=discord.message_grouping_window_seconds,
        withheld=state.withheld,
        redact=redactor_of(settings).text,
    )


def route_rules(settings: Settings) -> RouteRules:
    discord = settings.discord
    return RouteRules(
        reply_mode=discord.reply_mode,
        reply_mode_by_channel={
            channel: differs.reply_mode
            for channel, differs in discord.channels.items()
            if differs.reply_mode is not None
        },
        capture_channels=discord.capture_channels,
        team_active_seconds=discord.team_active_seconds,
        servers={guild_id: route_rules(server) for guild_id, server in settings.servers.items()},
    )


def follow_rules(settings: Settings) -> TrackingRules:
    """A line that leads to a reply is in one batch with it, or it would have been captured before it is moved."""
    rules = TrackingRules()
    return replace(rules, leading=min(rules.leading, settings.discord.message_batch_wait_seconds))


def teams(settings: Settings) -> dict[int, TeamIds]:
    return {
        guild_id: TeamIds(server.discord.team_member_ids, server.discord.team_role_ids)
        for guild_id, server in settings.servers.items()
    }


REMEMBERED_WEEKS = 2
"""Files of the archive in which a capture finds the conversation that it continues."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """All arguments of `streams.graph.graph`: services, sinks and rules, with the state behind them."""

    services: Services
    sinks: Sinks
    rules: Rules
    state: RunState
    captures: Sequence[Captures]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureParts:
    """Stores captured conversations and, with `curation`, files them under topics.

    Attributes:
        captures: the stored conversations that new captures may continue.
        curation: None: captures are stored and not filed under topics.
        images: None: images stay placeholders.
        to_the_end: whether the end of the run waits until all captures are filed.
    """

    keep: Callable[[Capture], Coroutine[Any, Any, Outcome]]
    captures: Captures
    curation: CurationServices | None = None
    images: Images | None = None
    to_the_end: bool = False


def capture_parts(
    settings: Settings,
    state: RunState,
    *,
    curation: CurationServices | None = None,
    images: ImageSource | None = None,
    rehearsal: bool = False,
    to_the_end: bool = False,
) -> CaptureParts:
    """Build what stores captures in the raw archive and files them. Without `curation` a later run files them; in a
    `rehearsal` nothing is written.
    """
    raw, places = settings.kb.team_raw_dir, DataFolder(settings.app.data_dir).places
    captures = Captures(archive_files.pairs_in(raw, REMEMBERED_WEEKS), state.opted_out)
    if curation is None:
        return CaptureParts(keep=RawArchive(raw, captures, places=places, rehearsed=rehearsal).keep, captures=captures)
    archive = RawArchive(raw, captures, on_stored=curation.library.stored, places=places)
    return CaptureParts(
        keep=archive.keep,
        captures=captures,
        curation=curation,
        images=capture_images(settings, curation, images, archive, state.opted_out, redactor_of(settings).text),
        to_the_end=to_the_end,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerParts:
    """The parts that one server of `guilds` has of its own.

    Attributes:
        settings: as they hold there.
        library, search: over what is its own and what is shared, and nothing else.
    """

    settings: Settings
    assistant: Assistant
    library: Library
    search: LibrarySearch
    captures: CaptureParts


def assemble(
    settings: Settings,
    *,
    state: RunState,
    assistant: Assistant,
    library: Library,
    search: Search,
    poster: Poster,
    captures: CaptureParts,
    fetcher: Fetcher | None = None,
    access: Access | None = None,
    images: ImageSource | None = None,
    documents: Documents | None = None,
    gauge: Gauge | None = None,
    results: Sequence[Callable[[Result], object]] = (),
    servers: Mapping[int, ServerParts] = MappingProxyType({}),
) -> Parts:
    """Build everything that one run is wired to. Without `images`, pictures stay placeholders; without `documents`,
    files and runbooks are ignored.

    `results`: as in `Sinks`. `servers`: of each server of `settings.guilds`.
    """
    discord, posts = settings.discord, state.posts
    history = History(fetcher)
    people = People(discord.team_member_ids, discord.team_role_ids, fetcher, teams(settings))
    follower = ConversationTracker(follow_rules(settings))
    team = TeamActivity(people, history)
    viewing = ThreadAccess(history, fetcher)

    def guild_of(place_id: int) -> int | None:
        return history.place(place_id).guild_id

    def followed(each: CaptureParts) -> CurationServices | None:
        return None if each.curation is None else replace(each.curation, last_said=follower.last_said)

    def desk_of(guild_id: int, server: ServerParts) -> ServerContext:
        usage = state.usage_of(guild_id)
        return ServerContext(
            assistant=server.assistant,
            library=server.library,
            search=server.search,
            budget=state.budget_of(guild_id),
            pointing=point_rules(server.settings, settings),
            lookup=None
            if documents is None
            else documents.lookup(viewing, usage, server.search, server=server.settings),
        )

    async def archived(capture: Capture) -> Outcome:
        guild_id = None if capture.part is None else capture.part.guild_id
        keeps = captures if guild_id is None or guild_id not in servers else servers[guild_id].captures
        return await keeps.keep(capture)

    evidence = lookup = None
    if documents is not None:
        lookup = documents.lookup(viewing, state.usage, search)
        notes = FileNotes(
            reply_language=settings.ai_response.reply_language,
            languages={guild_id: own.ai_response.reply_language for guild_id, own in settings.servers.items()},
            poster=poster,
            history=history,
            people=people,
            gone=documents.cases.gone,
        )
        evidence = EvidenceParts(
            history=history,
            people=people,
            posts=posts,
            cases=documents.cases,
            intake=documents.intake,
            forget_answers=documents.answers.purge,
            withheld=state.withheld,
            begun=notes.begun,
            ended=notes.ended,
            reopened=notes.reopened,
            embedder=documents.embedder,
            gauge=gauge,
        )
    services = Services(
        assistant=assistant,
        library=library,
        search=search,
        history=history,
        people=people,
        team=team,
        follower=follower,
        router=Router(people, history, team, posts, follower, route_rules(settings), state.outbox),
        context=Context(history, people, follower, context_rules(settings, state)),
        posts=posts,
        outbox=state.outbox,
        budget=state.budget,
        in_flight=InFlight(),
        seen=state.seen,
        typists=TypingTracker(people, guild_of),
        viewing=viewing,
        access=access,
        images=images,
        evidence=evidence,
        lookup=lookup,
        capture_images=captures.images,
        curation=followed(captures),
        gauge=gauge,
        usage=state.usage,
        servers={guild_id: desk_of(guild_id, server) for guild_id, server in servers.items()},
        learning={
            guild_id: Learning(capture_images=server.captures.images, curation=followed(server.captures))
            for guild_id, server in servers.items()
        },
        usages={guild_id: state.usage_of(guild_id) for guild_id in state.servers},
    )
    replies = Replies(
        poster=poster,
        posts=posts,
        history=history,
        people=people,
        budget=state.budget,
        outbox=state.outbox,
        fetcher=fetcher,
        feedback=discord.feedback,
        budgets={guild_id: state.budget_of(guild_id) for guild_id in state.servers},
    )
    escalation = discord.escalation_emoji, discord.escalation_channel_id
    feedback = Feedback(
        state.folder,
        posts,
        people,
        poster,
        *escalation,
        offered=discord.feedback,
        inferring=state.durable,
        escalated_to={guild_id: own.discord.escalation_channel_id for guild_id, own in settings.servers.items()},
        guild_of=guild_of,
    )
    sinks = Sinks(
        reply=replies.post,
        archive=archived,
        feedback=feedback.keep,
        finish=replies.finish,
        results=results,
    )
    return Parts(
        services=services,
        sinks=sinks,
        rules=graph_rules(settings, state, to_the_end=captures.to_the_end),
        state=state,
        captures=(captures.captures, *(server.captures.captures for server in servers.values())),
    )


Libraries = Mapping[int, tuple[OwnLibrary, JoinedLibrary]]
"""By server: its own library, and that together with the shared one."""


def server_libraries(settings: Settings, shared: Library) -> Libraries:
    return {guild_id: server_library(settings, guild_id, shared) for guild_id in settings.servers}


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureOptions:
    """Options for what is captured in servers.

    Attributes:
        asker: does knowledge work; None: the extractive curator does.
        images: as for `assemble`.
        rehearsal: nothing is written; to_the_end: as in `CaptureParts`.
    """

    asker: StructuredLLM | None = None
    images: ImageSource | None = None
    rehearsal: bool = False
    to_the_end: bool = False


@asynccontextmanager
async def open_servers(
    settings: Settings,
    state: RunState,
    libraries: Libraries,
    search: LibrarySearch,
    llm: StructuredLLM | None,
    learners: CaptureOptions,
    *,
    read_only: bool = True,
    alone: bool = True,
) -> AsyncGenerator[dict[int, ServerParts]]:
    """Open the parts of each server in `guilds` until the end of the block, by id. Each searches its own library
    beside the shared `search`. Raises as `open_team`.
    """
    async with AsyncExitStack() as stack:
        found: dict[int, ServerParts] = {}
        for guild_id, (own, library) in libraries.items():
            server = settings.servers[guild_id]
            searching = await stack.enter_async_context(
                open_search(server, own, search.embedder, read_only=read_only, alone=alone, beside=search)
            )
            usage = state.usage_of(guild_id)
            curation = None if learners.rehearsal else curation_parts(server, learners.asker, usage)
            found[guild_id] = ServerParts(
                settings=server,
                assistant=assistant_of(server, searching, llm, settings),
                library=library,
                search=searching,
                captures=capture_parts(
                    server,
                    state,
                    curation=curation,
                    images=learners.images,
                    rehearsal=learners.rehearsal,
                    to_the_end=learners.to_the_end,
                ),
            )
        yield found


@asynccontextmanager
async def server_knowledge_kept_current(
    settings: Settings, asker: StructuredLLM | None, state: RunState, meters: Meters
) -> AsyncGenerator[None]:
    """Keep the knowledge base of each server current for as long as the block runs."""
    uncounted = replace(meters, gauge=None)  # one operator of a name is measured, and it is that of the shared ones
    async with AsyncExitStack() as stack:
        for guild_id, server in settings.servers.items():
            await stack.enter_async_context(
                knowledge_kept_current(server, asker, state.usage_of(guild_id), meters=uncounted)
            )
        yield
