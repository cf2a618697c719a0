"""Builds from the settings everything a graph is wired to: rules, services, sinks, and the parts of each server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from assembly.answering import addresses_of, answer_rules, point_rules
from assembly.data_folder import RunState
from assembly.documents import Documents, evidence_rules
from assembly.knowledge import knowledge_kept_current
from assembly.running import Meters
from assembly.team import capture_images, curation_rules
from dataflow.metering import Gauge
from model.outcomes import Outcome, Result
from model.servers import Servers
from operators.screen import ChannelLists, ScreenRules
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
from services.discord import Access, Attachments, Fetcher, Poster
from services.knowledge import Library, LibrarySearch
from services.llm import ImageSource, StructuredLLM, Usage
from services.redaction import Redactor
from services.storage import DataFolder
from services.team import Capture, Captures, archive_files
from settings import Settings
from sinks.evidence import FileNotes
from sinks.feedback import Feedback
from sinks.replies import Replies
from sinks.team import RawArchive
from streams.captures import Images
from streams.conversations import WindowRules
from streams.curation import CurationServices
from streams.server_context import ServerContext
from streams.wiring import EvidenceParts, Rules, Services, Sinks


def graph_rules(settings: Settings, state: RunState, *, to_the_end: bool) -> Rules:
    discord = settings.discord
    return Rules(
        screen=ScreenRules(
            withheld=state.withheld,
            channels=settings.servers.map(
                lambda each: ChannelLists(each.discord.channel_allowlist, each.discord.channel_denylist)
            ),
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
        redact=Redactor(settings.secrets).text,
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
    )


def tracking_rules(settings: Settings) -> TrackingRules:
    """A line that leads to a reply is in one batch with it, or it would have been captured before it is moved."""
    rules = TrackingRules()
    return replace(rules, leading=min(rules.leading, settings.discord.message_batch_wait_seconds))


def teams(settings: Settings) -> Servers[TeamIds]:
    return settings.servers.map(lambda each: TeamIds(each.discord.team_member_ids, each.discord.team_role_ids))


REMEMBERED_WEEKS = 2
"""Files of the archive in which a capture finds the conversation that it continues."""


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
    captures = Captures(archive_files.pairs_in(raw, REMEMBERED_WEEKS), state.not_captured)
    if curation is None:
        return CaptureParts(keep=RawArchive(raw, captures, places=places, rehearsed=rehearsal).keep, captures=captures)
    archive = RawArchive(raw, captures, on_stored=curation.library.stored, places=places)
    return CaptureParts(
        keep=archive.keep,
        captures=captures,
        curation=curation,
        images=capture_images(settings, curation, images, archive, state.not_captured, Redactor(settings.secrets).text),
        to_the_end=to_the_end,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerParts:
    """What is opened for one server of `guilds`, or for all others. Graphs over several folders may share it.

    Attributes:
        settings: as they hold there.
        library, search: over what is its own and what is shared, and nothing else.
    """

    settings: Settings
    assistant: Assistant
    library: Library
    search: LibrarySearch
    captures: CaptureParts


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """All arguments of `streams.graph.graph`: services, sinks and rules, with the state and the parts behind them."""

    services: Services
    sinks: Sinks
    rules: Rules
    state: RunState
    servers: Servers[ServerParts]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscordEnds:
    """Where replies go, and where more is read than what events tell.

    Attributes:
        fetcher: None: nothing can be looked up.
        access: None: nothing keeps the bot from posting.
        attachments: None: files and pictures stay placeholders.
    """

    poster: Poster
    fetcher: Fetcher | None = None
    access: Access | None = None
    attachments: Attachments | None = None


def assemble(
    settings: Settings,
    *,
    state: RunState,
    servers: Servers[ServerParts],
    ends: DiscordEnds,
    images: ImageSource | None = None,
    documents: Documents | None = None,
    gauge: Gauge | None = None,
    results: Sequence[Callable[[Result], object]] = (),
) -> Parts:
    """Build everything that one run is wired to. Without `images`, pictures stay placeholders; without `documents`,
    files and runbooks are ignored. `results`: as in `Sinks`.
    """
    discord, posts = settings.discord, state.posts
    poster, fetcher = ends.poster, ends.fetcher
    history = History(fetcher)
    people = People(teams(settings), fetcher)
    tracker = ConversationTracker(tracking_rules(settings))
    team = TeamActivity(history)
    viewing = ThreadAccess(history, fetcher)
    in_flight = InFlight()

    def guild_of(place_id: int) -> int | None:
        return history.place(place_id).guild_id

    def context_of(guild_id: int | None, server: ServerParts) -> ServerContext:
        captures, lookup = server.captures, None
        if documents is not None:
            lookup = documents.lookup(
                viewing,
                state.usages[guild_id],
                server.search,
                server=guild_id,
                reply_language=server.settings.ai_response.reply_language,
            )
        return ServerContext(
            assistant=server.assistant,
            library=server.library,
            search=server.search,
            budget=state.budgets[guild_id],
            usage=state.usages[guild_id],
            addresses=addresses_of(settings, guild_id),
            pointing=point_rules(settings, guild_id),
            lookup=lookup,
            capture_images=captures.images and captures.images.heeding(in_flight.work),
            curation=captures.curation
            and replace(captures.curation, last_said=tracker.last_said, personal=in_flight.work),
        )

    async def archived(capture: Capture) -> Outcome:
        guild_id = None if capture.part is None else capture.part.guild_id
        return await servers[guild_id].captures.keep(capture)

    evidence = None
    if documents is not None:
        notes = FileNotes(
            reply_languages=settings.servers.map(lambda each: each.ai_response.reply_language),
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
        servers=Servers({guild_id: context_of(guild_id, server) for guild_id, server in servers.items()}),
        history=history,
        people=people,
        team=team,
        tracker=tracker,
        router=Router(people, history, team, posts, tracker, settings.servers.map(route_rules), state.outbox),
        context=Context(history, people, tracker, context_rules(settings, state)),
        posts=posts,
        outbox=state.outbox,
        in_flight=in_flight,
        seen=state.seen,
        typists=TypingTracker(people, guild_of),
        viewing=viewing,
        access=ends.access,
        images=images,
        evidence=evidence,
        gauge=gauge,
    )
    replies = Replies(
        poster=poster,
        posts=posts,
        history=history,
        people=people,
        budgets=state.budgets,
        outbox=state.outbox,
        fetcher=fetcher,
        feedback=discord.feedback,
    )
    feedback = Feedback(
        state.folder,
        posts,
        people,
        poster,
        discord.escalation_emoji,
        settings.servers.map(lambda each: each.discord.escalation_channel_id),
        offered=discord.feedback,
        inferring=state.durable,
        guild_of=guild_of,
        opted_out=state.opt_outs,
    )
    sinks = Sinks(
        reply=replies.post,
        archive=archived,
        feedback=feedback.keep,
        finish=replies.finish,
        results=results,
    )
    to_the_end = servers.default.captures.to_the_end
    return Parts(
        services=services,
        sinks=sinks,
        rules=graph_rules(settings, state, to_the_end=to_the_end),
        state=state,
        servers=servers,
    )


@asynccontextmanager
async def all_knowledge_kept_current(
    settings: Settings, asker: StructuredLLM | None, usages: Servers[Usage], meters: Meters
) -> AsyncGenerator[None]:
    """Keep the knowledge base that servers share, and that of each server, current for as long as the block runs."""
    uncounted = replace(meters, gauge=None)  # one operator of a name is measured, and it is that of the shared ones
    async with AsyncExitStack() as stack:
        for guild_id, server in settings.servers.items():
            counted = meters if guild_id is None else uncounted
            await stack.enter_async_context(knowledge_kept_current(server, asker, usages[guild_id], meters=counted))
        yield
