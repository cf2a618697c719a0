"""Settings in, the parts of the graph out: a builder for each, and `assemble`, which puts them together."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any

from assembly.answering import answer_rules
from assembly.documents import Documents, evidence_rules
from assembly.redaction import redactor_of
from assembly.state import RunState
from assembly.team import capture_images, curation_rules
from model.outcomes import Outcome, Result
from operators.screen import ScreenRules
from operators.step import Gauge
from services.assistant import Assistant
from services.conversations import (
    Context,
    ContextRules,
    Follower,
    FollowRules,
    History,
    InFlight,
    People,
    Router,
    RouteRules,
    TeamActivity,
    Typists,
    Viewing,
)
from services.discord import Access, Fetcher, Poster
from services.knowledge import Library, Search
from services.llm import ImageSource
from services.storage import DataFolder
from services.team import Capture, Captures, archive_files
from settings import Settings
from sinks.archive import RawArchive
from sinks.evidence import FileNotes
from sinks.feedback import Feedback
from sinks.replies import Replies
from streams.captures import Images
from streams.conversations import WindowRules
from streams.curation_parts import CurationParts
from streams.wiring import EvidenceParts, Rules, Services, Sinks

REMEMBERED_WEEKS = 2
"""Files of the archive in which a capture finds the conversation that it continues."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Everything that a graph is wired to."""

    services: Services
    sinks: Sinks
    rules: Rules
    state: RunState
    captures: Captures


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureParts:
    """Where captures go.

    Attributes:
        captures: the stored conversations that new captures may continue.
        curation: None: captures are stored and not filed under topics.
        images: None: images stay placeholders.
        to_the_end: whether the end of the run waits until all captures are filed.
    """

    keep: Callable[[Capture], Coroutine[Any, Any, Outcome]]
    captures: Captures
    curation: CurationParts | None = None
    images: Images | None = None
    to_the_end: bool = False


def capture_parts(
    settings: Settings,
    state: RunState,
    *,
    curation: CurationParts | None = None,
    images: ImageSource | None = None,
    rehearsal: bool = False,
    to_the_end: bool = False,
) -> CaptureParts:
    """Captures are appended to the raw archive and filed under topics. `curation` None: a later run files them;
    `rehearsal`: they are not even written.
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
) -> Parts:
    """What one run needs. Without `images` they stay placeholders, without `documents` files and runbooks are ignored.

    `results`: as in `Sinks`.
    """
    discord, posts = settings.discord, state.posts
    history = History(fetcher)
    people = People(discord.team_member_ids, discord.team_role_ids, fetcher)
    follower = Follower(follow_rules(settings))
    team = TeamActivity(people, history)
    viewing = Viewing(history, fetcher)
    evidence = lookup = None
    if documents is not None:
        lookup = documents.lookup(viewing, state.usage, settings.kb.internal_topics)
        notes = FileNotes(
            reply_language=settings.ai_response.reply_language,
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
        typists=Typists(people),
        viewing=viewing,
        access=access,
        images=images,
        evidence=evidence,
        lookup=lookup,
        capture_images=captures.images,
        curation=None if captures.curation is None else replace(captures.curation, last_said=follower.last_said),
        gauge=gauge,
        usage=state.usage,
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
    )
    escalation = discord.escalation_emoji, discord.escalation_channel_id
    feedback = Feedback(
        state.folder, posts, people, poster, *escalation, offered=discord.feedback, inferring=state.durable
    )
    sinks = Sinks(
        reply=replies.post,
        archive=captures.keep,
        feedback=feedback.keep,
        finish=replies.finish,
        results=results,
    )
    return Parts(
        services=services,
        sinks=sinks,
        rules=graph_rules(settings, state, to_the_end=captures.to_the_end),
        state=state,
        captures=captures.captures,
    )


def graph_rules(settings: Settings, state: RunState, *, to_the_end: bool) -> Rules:
    discord = settings.discord
    return Rules(
        screen=ScreenRules(
            withheld=state.withheld,
            allowed=discord.channel_allowlist,
            denied=discord.channel_denylist,
            # As it was at the start: within a run, a late message is not an old one.
            ended=state.seen_before.has_end,
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
    )


def follow_rules(settings: Settings) -> FollowRules:
    """A line that leads to a reply is in one batch with it, or it would have been captured before it is moved."""
    rules = FollowRules()
    return replace(rules, leading=min(rules.leading, settings.discord.message_batch_wait_seconds))
