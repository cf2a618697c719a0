"""Settings in, the parts of the graph out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from assembly.documents import Documents, evidence_rules
from assembly.team import curation_parts, curation_rules, images_of_lessons
from model.messages import Message
from model.outcomes import Result
from operators.route import Router, RouteRules
from operators.screen import ScreenRules
from operators.step import Gauge, ignore
from services.assistant import Assistant
from services.conversations import (
    Context,
    ContextRules,
    History,
    InFlight,
    OptOuts,
    People,
    Posts,
    Seen,
    TeamActivity,
    Viewing,
    state,
)
from services.discord import Fetcher, Poster
from services.documents import Tombstones
from services.documents.tools import Toolbox
from services.knowledge import DiskLibrary, Library
from services.llm import (
    Budget,
    BudgetLimits,
    ImageSource,
    Spending,
    StructuredLLM,
    TellTokens,
    Usage,
    read_spent,
    render_spent,
    unheard,
)
from services.redaction import Redactor
from services.storage import DataFolder, files
from services.team import Captures, archive_files
from settings import Settings
from sinks.archive import RawArchive
from sinks.evidence import FileNotes
from sinks.feedback import Feedback
from sinks.replies import Replies
from streams.wiring import AnswerRules, EvidenceParts, Rules, Services, Sinks

REMEMBERED_WEEKS = 2
"""How far back a capture finds the conversation that it goes on with, in files of the archive."""


Withheld = Callable[[int, str], bool]
"""Whether a text of this author is to be left alone, since the author has opted out."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything that a graph is wired to."""

    services: Services
    sinks: Sinks
    rules: Rules
    folder: DataFolder
    withheld: Callable[[Message], bool]
    """Whether a message must be neither recorded nor shown to a model: its author wants to be left out."""
    left_alone: Callable[[int, str], bool]
    """The same of a text and who wrote it."""
    opt_outs: OptOuts
    captures: Captures
    toolbox: Toolbox | None = None
    """None: files and runbooks are left alone."""


@dataclass(frozen=True, slots=True)
class Learning:
    """How captures are sorted."""

    asker: StructuredLLM | None = None
    """The model of knowledge work; None: none, and it is done without."""
    to_the_end: bool = False
    """Whether the end of the run waits until all captures are sorted."""


def library_of(settings: Settings, *, for_team: bool = False) -> DiskLibrary:
    """What everybody may be answered from; `for_team`: what members of the team may where nobody else reads.

    Here, and nowhere else, the plain chain is kept from internal topics.
    """
    kb = settings.kb
    return DiskLibrary(
        index_path=kb.index_path,
        sources_dir=kb.sources_dir,
        web_cache_dir=kb.web_fetch_cache_dir,
        team_index_path=kb.team_index_path,
        team_topics_dir=kb.team_topics_dir,
        max_source_bytes=kb.max_source_bytes,
        left_out=() if for_team else kb.internal_topics,
    )


def redactor_of(settings: Settings) -> Redactor:
    """Knows the configured secrets by value, and others by shape."""
    return Redactor(secrets_of(settings))


def secrets_of(settings: Settings) -> list[str]:
    """The values that must show up nowhere."""
    documents = settings.documents
    llms = (settings.ai_response.llm, settings.kb.llm, documents.synthesis_llm, documents.embeddings)
    keys = [llm.api_key.get_secret_value() for llm in llms if llm is not None]
    return [settings.discord.token.get_secret_value(), *keys]


def assemble(
    settings: Settings,
    *,
    assistant: Assistant,
    library: Library,
    poster: Poster,
    ends: Callable[[Result], None],
    fetcher: Fetcher | None = None,
    images: ImageSource | None = None,
    gauge: Gauge = ignore,
    tokens: TellTokens = unheard,
    durable: bool = True,
    documents: Documents | None = None,
    learning: Learning | None = None,
    captures_kept: bool = True,
    archive_of: Callable[[Path, Withheld], RawArchive] | None = None,
) -> Parts:
    """Build what one run needs, starting from what the data folder remembers.

    `durable`: what was seen counts as seen, and posts are noted down as they are made. Replays and dry runs are not:
    they may meet the same messages again. `documents`: what is open for files and runbooks; None: they are left alone.
    `learning`: None where captures are not to be sorted; `captures_kept`: whether they are stored in the first place;
    `archive_of`: where not as they come.

    Raises:
        LibraryUnusable: the team library cannot be opened as it lies there.
        OSError: something in the data folder cannot be read.
    """
    folder = DataFolder(settings.app.data_dir)
    marks = state.read_marks(folder.seen) if durable else {}
    discord = settings.discord
    history = History(fetcher)
    people = People(discord.team_member_ids, discord.team_role_ids, fetcher)
    viewing = Viewing(history, fetcher)
    team = TeamActivity(people, history)
    posts = Posts(state.read_posts(folder.posts), state.PostFile(folder.posts) if durable else None)
    budget = Budget(
        BudgetLimits(
            settings.limits.chains_per_user_per_hour, settings.limits.answers_per_day, settings.limits.tokens_per_day
        ),
        read_spent(folder.usage),
    )
    usage = Usage(Spending(budget, tokens))
    opt_outs = OptOuts(folder.opt_outs)
    screening = ScreenRules(
        opt_out_marker=discord.opt_out_marker,
        opted_out=opt_outs.__contains__,
        allowed=discord.channel_allowlist,
        denied=discord.channel_denylist,
        # As it was at the start: within a run, a late message is no old one.
        ended=Seen(state.copied(marks)).has_end,
    )

    def left_alone(author_id: int, text: str) -> bool:
        return discord.opt_out_marker in text or author_id in opt_outs

    def withheld(message: Message) -> bool:
        return left_alone(message.author.id, message.text)

    context = Context(
        history,
        people,
        ContextRules(
            discord.reply_chain_max_depth, discord.message_grouping_window_seconds, withheld, redactor_of(settings).text
        ),
    )
    routing = RouteRules(
        reply_mode=discord.reply_mode,
        reply_mode_by_channel={channel: differs.reply_mode for channel, differs in discord.channels.items()},
        capture_channels=discord.capture_channels,
        team_active_seconds=discord.team_active_seconds,
        capture_continuations=discord.capture_continuations,
        grouping_seconds=discord.message_grouping_window_seconds,
    )
    toolbox = None if documents is None else documents.toolbox(usage, settings.kb.internal_topics)
    notes = FileNotes(poster, history, people, Tombstones() if documents is None else documents.cases.gone)
    raw = settings.kb.team_raw_dir
    curation = None if learning is None else curation_parts(settings, learning.asker, usage, gauge)
    if archive_of is None:
        earlier = Captures(archive_files.pairs_in(raw, REMEMBERED_WEEKS), left_alone)
        on_stored = None if curation is None else curation.library.stored
        archive = RawArchive(raw, earlier, on_stored=on_stored, rehearsed=not captures_kept)
    else:
        archive = archive_of(raw, left_alone)
    pictures = None
    if curation is not None:
        redact = redactor_of(settings).text
        pictures = images_of_lessons(settings, curation, images, archive, left_alone, redact)
    services = Services(
        assistant=assistant,
        library=library,
        history=history,
        people=people,
        team=team,
        router=Router(people, history, team, posts, routing, usage),
        context=context,
        posts=posts,
        budget=budget,
        in_flight=InFlight(),
        seen=Seen(marks),
        viewing=viewing,
        images=images,
        evidence=None
        if documents is None or toolbox is None
        else EvidenceParts(
            history,
            people,
            posts,
            documents.cases,
            documents.intake,
            toolbox.forget,
            withheld,
            notes.begun,
            notes.ended,
            notes.reopened,
            documents.embedder,
            gauge,
        ),
        lookup=None if documents is None or toolbox is None else documents.lookup(toolbox, viewing),
        images_of_lessons=pictures,
        curation=curation,
        gauge=gauge,
        usage=usage,
    )
    replies = Replies(poster, posts, history, people, budget, feedback=discord.feedback)
    feedback = Feedback(
        folder, posts, people, poster, discord.escalation_emoji, discord.escalation_channel_id, offered=discord.feedback
    )
    sinks = Sinks(reply=replies.post, archive=archive.keep, feedback=feedback.keep, ends=ends)
    rules = Rules(
        screening,
        answer_rules(settings),
        discord.message_batch_wait_seconds,
        discord.message_batch_max_seconds,
        curation=curation_rules(settings, to_the_end=learning is not None and learning.to_the_end),
        evidence=evidence_rules(settings.documents),
    )
    return Parts(services, sinks, rules, folder, withheld, left_alone, opt_outs, archive.captures, toolbox)


def answer_rules(settings: Settings) -> AnswerRules:
    answering = settings.ai_response
    return AnswerRules(
        chain_seconds=answering.graph_timeout_seconds,
        max_concurrent=answering.max_concurrent_answers,
        max_waiting=answering.max_waiting_answers,
        max_sources=answering.max_sources,
        max_index_chars=answering.max_index_chars,
        max_answer_chars=answering.max_answer_chars,
        require_citations=answering.require_citations,
        enable_verification=answering.enable_verification,
        thread_reuse_seconds=settings.discord.thread_reuse_minutes * 60,
    )


async def save(parts: Parts) -> None:
    """Write what outlives the process.

    Raises:
        OSError: the data folder cannot be written.
    """
    # Rendered here, on the loop: a thread would see marks change while it reads them.
    marks, spent = state.render_marks(parts.services.seen.marks()), render_spent(parts.services.budget.spent)
    await files.in_thread(files.replace, parts.folder.seen, marks)
    await files.in_thread(files.replace, parts.folder.usage, spent)
