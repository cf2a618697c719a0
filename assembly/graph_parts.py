"""Builds the arguments of a graph from the settings and open parts: services, sinks and rules (`assemble`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from assembly.answering import (
    addresses_of,
    answer_rules,
    approval_rules,
    point_rules,
)
from assembly.data_folder import RunState
from assembly.documents import Documents, evidence_rules
from assembly.team import curation_rules, image_services
from clock import now, run_blocking
from dataflow.metering import Gauge
from model.messages import Message
from model.outcomes import Outcome, Result
from model.servers import Servers
from model.source_ids import owner_of
from operators.approving import digest_of, pairs_in
from operators.screen import ChannelLists, ScreenRules
from services.assistant import Assistant
from services.conversations import (
    Context,
    ContextRules,
    ConversationTracker,
    Draft,
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
    is_private,
)
from services.discord import Access, Attachments, Fetcher, LookupFailed, Poster, Reviews
from services.documents.store import StoreUnavailable
from services.knowledge import Library, LibrarySearch, Source, pair_ids
from services.llm import ImageSource, Limiter
from services.redaction import Redactor
from services.storage import DataFolder, in_thread
from services.team import (
    Capture,
    Pair,
    PairLinks,
    PendingFolder,
    RecentCaptures,
    Revision,
    TeachingResult,
    archive_files,
    revise_pending,
)
from settings import DiscordSettings, Settings
from sinks.drafts import DraftSink
from sinks.evidence import FileNotes
from sinks.feedback import Feedback
from sinks.replies import Replies
from sinks.team import RawArchive
from streams.captures import ImageServices
from streams.chain import ServerContext
from streams.conversations import WindowRules
from streams.curation import CurationServices
from streams.wiring import EvidenceParts, Rules, Services, Sinks


def graph_rules(settings: Settings, state: RunState, withheld: Callable[[Message], bool], *, finish_all: bool) -> Rules:
    discord = settings.discord
    return Rules(
        screen=ScreenRules(
            withheld=withheld,
            channels=settings.servers.map(
                lambda each: ChannelLists(each.discord.channel_allowlist, unread_channels(each.discord))
            ),
            # By the marks of the start: a message that comes late in this run is new.
            has_outcome=state.watermarks_at_start.has_outcome,
        ),
        answers=answer_rules(settings),
        window=WindowRules(
            quiet=discord.message_batch_wait_seconds,
            settle=discord.message_batch_settle_seconds,
            longest=discord.message_batch_max_seconds,
        ),
        evidence=evidence_rules(settings.documents),
        curation=curation_rules(settings, finish_all=finish_all),
        captures_may_wait=not finish_all,
    )


def is_withheld(state: RunState, history: History, message: Message) -> bool:
    """As `RunState.is_withheld`; the marker of a forum post's title withholds its first message."""
    return state.is_withheld(message) or state.is_opted_out(message.author.id, history.title_of(message))


def unread_channels(discord: DiscordSettings) -> frozenset[int]:
    """Return the channels that are never read. Where the team decides about drafts, nothing is asked or taught."""
    review = discord.review_channel_id
    return discord.channel_denylist if review is None else discord.channel_denylist | {review}


def context_rules(settings: Settings, withheld: Callable[[Message], bool]) -> ContextRules:
    discord = settings.discord
    return ContextRules(
        reply_chain_max_depth=discord.reply_chain_max_depth,
        grouping_seconds=discord.message_grouping_window_seconds,
        withheld=withheld,
        redact=Redactor(settings.secrets).text,
    )


def route_rules(settings: Settings) -> RouteRules:
    discord = settings.discord
    return RouteRules(
        reply_mode=discord.reply_mode,
        reply_mode_by_channel={
            channel_id: channel.reply_mode
            for channel_id, channel in discord.channels.items()
            if channel.reply_mode is not None
        },
        capture_channels=discord.capture_channels,
        team_active_seconds=discord.team_active_seconds,
    )


def tracking_rules(settings: Settings) -> TrackingRules:
    """Return the default rules; `intro_gap` lasts one batch at most: what is captured by then cannot be moved."""
    rules = TrackingRules()
    return replace(rules, intro_gap=min(rules.intro_gap, settings.discord.message_batch_wait_seconds))


def teams(settings: Settings) -> Servers[TeamIds]:
    return settings.servers.map(lambda each: TeamIds(each.discord.team_member_ids, each.discord.team_role_ids))


REMEMBERED_WEEKS = 2
"""Files of the archive in which a capture finds the conversation that it continues."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureParts:
    """Stores captured conversations and, with `curation`, files them under topics.

    Attributes:
        revise: as in `Sinks`.
        teach: stores a capture without messages on Discord, and has it filed. Returns None if all of it is stored
            already, or if another process stores it. Raises ArchiveUnwritable, OSError. None: nothing is taught here.
        ask_filing: with `teach` and without `curation`, asks the process that files lessons what became of one; its
            arguments are the server and the last message of its part.
        recent_captures: the stored conversations that new captures may continue.
        curation: None: captures are stored and not filed under topics.
        images: None: images stay placeholders.
        finish_all: as in `CurationRules`.
    """

    keep: Callable[[Capture], Coroutine[Any, Any, Outcome]]
    revise: Callable[[int | None, Sequence[Revision]], Coroutine[Any, Any, Sequence[Pair]]]
    recent_captures: RecentCaptures
    teach: Callable[[Capture], Coroutine[Any, Any, Pair | None]] | None = None
    ask_filing: Callable[[int | None, int], Coroutine[Any, Any, TeachingResult]] | None = None
    curation: CurationServices | None = None
    images: ImageServices | None = None
    finish_all: bool = False


def capture_parts(
    settings: Settings,
    state: RunState,
    *,
    curation: CurationServices | None = None,
    images: ImageSource | None = None,
    is_rehearsal: bool = False,
    finish_all: bool = False,
) -> CaptureParts:
    """Build the parts that store captures in the raw archive and file them. Without `curation` a later run files them;
    with `is_rehearsal` nothing is written.
    """
    raw, places = settings.kb.team_raw_dir, DataFolder(settings.app.data_dir).places
    captures = RecentCaptures(archive_files.pairs_in(raw, REMEMBERED_WEEKS), state.is_withheld_in_capture)
    on_stored = None if curation is None else curation.library.add_block
    archive = RawArchive(
        raw, captures, on_stored=on_stored, places=places, is_rehearsal=curation is None and is_rehearsal
    )

    pending = PendingFolder(DataFolder(settings.app.data_dir).pending)

    async def revise(_guild_id: int | None, revisions: Sequence[Revision]) -> Sequence[Pair]:
        pairs = await archive.revise(revisions)
        if not archive.is_rehearsal:
            await run_blocking(revise_pending, pending, captures, revisions)
        return pairs

    if curation is None:
        return CaptureParts(keep=archive.keep, revise=revise, recent_captures=captures)

    async def teach(capture: Capture) -> Pair | None:
        pair = await archive.store_late(capture)
        if pair is not None:
            curation.taught.on_next(pair)
        return pair

    return CaptureParts(
        keep=archive.keep,
        revise=revise,
        recent_captures=captures,
        teach=teach,
        curation=curation,
        images=image_services(
            settings, curation, images, archive, captures.is_withheld, Redactor(settings.secrets).text
        ),
        finish_all=finish_all,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerParts:
    """The open parts of one server of `guilds`, or of all others. Graphs over several folders may share them.

    Attributes:
        settings: the server's settings.
        library, search: over the server's own sources and the shared ones, and nothing else.
    """

    settings: Settings
    assistant: Assistant
    library: Library
    search: LibrarySearch
    captures: CaptureParts


async def is_current(servers: Servers[ServerParts], context: Context, history: History, draft: Draft) -> bool:
    """Return True if the topics of the team still hold what a draft is made of, and the messages of others that it is
    made with are there as they were. Raises LookupFailed.
    """
    for place_id, message_id, digest in draft.shown:
        message = await history.message(place_id, message_id)
        if history.is_gone(message_id) or (message is not None and not context.may_be_read(message)):
            return False
        if message is not None and message.edited_at is not None and digest_of(context.text_of(message)) != digest:
            return False
    held = await pairs_in(servers[draft.reply.guild_id].library, {source_id for source_id, _ in draft.pairs})
    return held.issuperset(draft.pairs)


async def question_now(
    context: Context, history: History, fetcher: Fetcher | None, documents: Documents | None, draft: Draft
) -> Sequence[str] | None:
    """Return the text of each message of a draft's question as it is now; None: one of them is gone, or a file that the
    answer is from. Without a `fetcher`, what has not been seen lately is as it was. Raises LookupFailed.
    """
    try:
        if documents is not None and not await documents.holds(draft.documents):
            return None
    except StoreUnavailable as error:
        raise LookupFailed(str(error)) from error
    place_id, asked_ids = draft.reply.post.asked_in, draft.reply.asked_ids
    if fetcher is None:
        found = [history.in_memory(place_id, each) for each in asked_ids]
    else:
        found = [await fetcher.message(place_id, each) for each in asked_ids]
    if None in found:
        return (draft.asked_texts or [draft.reply.post.question]) if fetcher is None else None
    known = dict(zip(asked_ids, draft.asked_texts, strict=False))
    # What was not edited reads as it did, whatever the names of those whom it mentions are now.
    return [
        known[each.id]
        if each.edited_at is None and each.id in known and not history.title_of(each)
        else context.text_of(each)
        for each in found
        if each is not None
    ]


async def is_spent(budget: Limiter) -> bool:
    """Return True if the tokens of the day are used up: of several limits, that of tokens is named."""
    return (await budget.used_up(now()) or "").endswith("tokens_per_day")


def authors_of_topics(servers: Servers[ServerParts]) -> Callable[[Source], Coroutine[Any, Any, Collection[int]]]:
    """Return the function that gives the ids of those who have written in a topic of the team; none for other sources.
    It raises OSError: the archive cannot be read.
    """

    async def authors_of(source: Source) -> Collection[int]:
        of_topic = pair_ids(source.text)
        raw = servers[owner_of(source.id)].settings.kb.team_raw_dir
        return await in_thread(archive_files.authors_in, raw, of_topic) if of_topic else ()

    return authors_of


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphParts:
    """All arguments of `streams.graph.graph`: services, sinks and rules, with the state and the parts behind them."""

    services: Services
    sinks: Sinks
    rules: Rules
    state: RunState
    servers: Servers[ServerParts]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscordAPI:
    """Posts replies, and reads what events lack.

    Attributes:
        fetcher: None: nothing can be looked up.
        reviews: shows drafts to the team; None: nobody is shown any.
        access: None: nothing keeps the bot from posting.
        attachments: None: files and pictures stay placeholders.
    """

    poster: Poster
    fetcher: Fetcher | None = None
    reviews: Reviews | None = None
    access: Access | None = None
    attachments: Attachments | None = None


def privacy_of_pairs(settings: Settings, tracker: ConversationTracker, history: History) -> Callable[[Pair], bool]:
    """Make a function that returns True if the place of a captured conversation is no longer public. It blocks."""
    allowed, links = settings.discord.capture_channels, PairLinks(DataFolder(settings.app.data_dir).places)

    def is_private_now(pair: Pair) -> bool:
        place_id = tracker.place_of(pair.message_ids[-1])
        places = [] if place_id is None else [place_id]
        if place_id is None or not history.knows(place_id):
            # It was captured before the start, or is in an archived thread, which Discord does not list at a start.
            noted = links.find(pair.id)
            places += [] if noted is None else [noted.channel_id, *([noted.parent_id] if noted.parent_id else [])]
        if any(map(history.is_place_gone, places)):
            return True
        # Of a place that Discord has not sent, its channel is asked; what is not known at all stays public.
        known = next(filter(history.knows, places), None)
        return known is not None and allowed.isdisjoint(places) and is_private(history.place(known), allowed)

    return is_private_now


def assemble(
    settings: Settings,
    *,
    state: RunState,
    servers: Servers[ServerParts],
    api: DiscordAPI,
    images: ImageSource | None = None,
    documents: Documents | None = None,
    gauge: Gauge | None = None,
    results: Sequence[Callable[[Result], object]] = (),
) -> GraphParts:
    """Build all arguments of one run's graph. Without `images`, pictures stay placeholders; without `documents`, files
    and runbooks are ignored. `results`: as in `Sinks`.
    """
    return _GraphAssembly(settings, state, servers, api, documents, gauge).build(images, results)


class _GraphAssembly:
    """Builds the arguments of one run's graph. What several of them need is made first."""

    def __init__(
        self,
        settings: Settings,
        state: RunState,
        servers: Servers[ServerParts],
        api: DiscordAPI,
        documents: Documents | None,
        gauge: Gauge | None,
    ) -> None:
        self._settings = settings
        self._state = state
        self._servers = servers
        self._api = api
        self._documents = documents
        self._gauge = gauge
        self._history = History(api.fetcher)
        self._people = People(teams(settings), api.fetcher)
        self._tracker = ConversationTracker(tracking_rules(settings))
        self._withheld = partial(is_withheld, state, self._history)
        self._context = Context(self._history, self._people, self._tracker, context_rules(settings, self._withheld))
        self._viewing = ThreadAccess(self._history, api.fetcher)
        self._in_flight = InFlight()

    def build(self, images: ImageSource | None, results: Sequence[Callable[[Result], object]]) -> GraphParts:
        finish_all = self._servers.default.captures.finish_all
        return GraphParts(
            services=self._services(images),
            sinks=self._sinks(results),
            rules=graph_rules(self._settings, self._state, self._withheld, finish_all=finish_all),
            state=self._state,
            servers=self._servers,
        )

    def _services(self, images: ImageSource | None) -> Services:
        state, history, people = self._state, self._history, self._people
        team = TeamActivity(history)
        contexts = {guild_id: self._server_context(guild_id, server) for guild_id, server in self._servers.items()}
        rules = self._settings.servers.map(route_rules)
        return Services(
            servers=Servers(contexts),
            history=history,
            people=people,
            team=team,
            tracker=self._tracker,
            router=Router(people, history, team, state.posts, self._tracker, rules, state.outbox, state.drafts),
            context=self._context,
            posts=state.posts,
            outbox=state.outbox,
            drafts=state.drafts,
            in_flight=self._in_flight,
            watermarks=state.watermarks,
            typists=TypingTracker(people, self._guild_of),
            viewing=self._viewing,
            access=self._api.access,
            images=images,
            evidence=None if self._documents is None else self._evidence_parts(self._documents),
            gauge=self._gauge,
        )

    def _server_context(self, guild_id: int | None, server: ServerParts) -> ServerContext:
        settings, captures, lookup = self._settings, server.captures, None
        budget, usage = self._state.budgets[guild_id], self._state.usages[guild_id]
        if self._documents is not None:
            lookup = self._documents.lookup(
                self._viewing,
                self._people,
                usage,
                server.search,
                server=guild_id,
                reply_language=server.settings.ai_response.reply_language,
            )
        curation = captures.curation and replace(
            captures.curation,
            last_said=self._tracker.last_said,
            is_private=privacy_of_pairs(server.settings, self._tracker, self._history),
            personal_work=self._in_flight.work,
            is_spent=partial(is_spent, budget) if captures.curation.asks_model else None,
        )
        return ServerContext(
            assistant=server.assistant,
            library=server.library,
            search=server.search,
            budget=budget,
            usage=usage,
            addresses=addresses_of(settings, guild_id),
            pointing=point_rules(settings, guild_id),
            approval=replace(approval_rules(settings, guild_id), is_public=partial(self._is_public, guild_id)),
            lookup=lookup,
            authors_of=authors_of_topics(self._servers),
            image_services=captures.images and captures.images.with_personal_work(self._in_flight.work),
            curation=curation,
        )

    def _evidence_parts(self, documents: Documents) -> EvidenceParts:
        return EvidenceParts(
            history=self._history,
            people=self._people,
            posts=self._state.posts,
            cases=documents.cases,
            ingest_services=documents.ingest_services,
            forget_answers=documents.answers.purge,
            withheld=self._withheld,
            notes=FileNotes(
                poster=self._api.poster,
                history=self._history,
                people=self._people,
                tombstones=documents.cases.tombstones,
                reply_languages=self._settings.servers.map(lambda each: each.ai_response.reply_language),
            ),
            embedder=documents.embedder,
            gauge=self._gauge,
        )

    def _sinks(self, results: Sequence[Callable[[Result], object]]) -> Sinks:
        discord, state = self._settings.discord, self._state
        replies = Replies(
            poster=self._api.poster,
            posts=state.posts,
            history=self._history,
            people=self._people,
            budgets=state.budgets,
            outbox=state.outbox,
            fetcher=self._api.fetcher,
            offers_votes=discord.feedback,
        )
        feedback = Feedback(
            state.folder,
            state.posts,
            self._people,
            self._api.poster,
            discord.escalation_emoji,
            self._settings.servers.map(lambda each: each.discord.escalation_channel_id),
            keeps_votes=discord.feedback,
            infers_votes=state.is_durable,
            guild_of=self._guild_of,
            opted_out=state.opt_outs,
        )
        return Sinks(
            reply=replies.post,
            archive=self._archive,
            revise=self._revise,
            feedback=feedback.handle,
            finish=replies.finish,
            draft=self._draft_sink(replies).handle,
            results=results,
        )

    def _draft_sink(self, replies: Replies) -> DraftSink:
        state, history, context = self._state, self._history, self._context
        return DraftSink(
            drafts=state.drafts,
            replies=replies,
            posts=state.posts,
            reviews=self._api.reviews,
            access=self._api.access,
            archive=self._archive,
            everyone_sees=lambda channel_id: history.knows(channel_id) and history.place(channel_id).viewable,
            is_public=lambda place_id: history.knows(place_id) and history.place(place_id).public,
            question_now=partial(question_now, context, history, self._api.fetcher, self._documents),
            may_quote=self._may_quote,
            is_current=partial(is_current, self._servers, context, history),
            opted_out=state.opt_outs,
            redact=Redactor(self._settings.secrets).text,
            audit=state.audit,
            has_outcome=lambda draft: state.record.has_end(draft.reply.asked_ids, draft.ended_at),
        )

    def _guild_of(self, place_id: int) -> int | None:
        return self._history.place(place_id).guild_id

    def _is_public(self, guild_id: int | None, place_id: int) -> bool:
        return not is_private(self._history.place(place_id), self._settings.servers[guild_id].discord.capture_channels)

    async def _archive(self, capture: Capture) -> Outcome:
        guild_id = None if capture.part is None else capture.part.guild_id
        return await self._servers[guild_id].captures.keep(capture)

    async def _revise(self, guild_id: int | None, revisions: Sequence[Revision]) -> Sequence[Pair]:
        return await self._servers[guild_id].captures.revise(guild_id, revisions)

    async def _may_quote(self, draft: Draft) -> bool:
        allowed, post = self._settings.servers[draft.reply.guild_id].discord.capture_channels, draft.reply.post
        try:
            found = await self._context.quotable(draft.channel_id, post.asked_in, draft.reply.asked_ids, allowed)
        except LookupFailed:
            return False
        return found is not None and draft.is_asked_by([self._context.text_of(each) for each in found])
