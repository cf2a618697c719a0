"""Collects from a run the data that the dashboard shows."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from aiohttp import web
from yarl import URL

from assembly.answering import approval_rules, open_embedder, open_search, server_libraries
from assembly.data_folder import run_pseudonym_key
from assembly.graph_parts import GraphParts
from assembly.reports import prices_of
from assembly.sources import read_records, source_kinds
from assembly.teaching import LessonStore
from assembly.team import team_paths
from clock import DAY, now, rfc3339, run_blocking
from dashboard import (
    AccessControl,
    DashboardData,
    DisplayRules,
    DraftList,
    FlowMeter,
    GapDismissals,
    KnownSource,
    Team,
    add_pages,
)
from dashboard import History as OutcomesAndVotes
from model.health import Condition
from model.messages import Place
from model.permissions import OWNER, Operator
from model.processes import Fleet
from model.source_ids import DOCUMENT, document_id, is_document
from reporting.cost import Costs, Prices, costs
from reporting.reading import (
    MOMENT,
    DismissedQuestions,
    TimeSpan,
    VotedQuestion,
    end_of_replay,
    join_drafts,
    read_newest,
    read_outcomes,
    read_voted,
)
from services.conversations import Draft, DraftAction, Drafts, History, Post, read_posts
from services.knowledge import AnyKind, Library, Record, SourceDetails
from services.llm import TokenDays, read_token_days
from services.privacy import pseudonym
from services.redaction import Redactor
from services.storage import DataFolder, in_thread
from services.team import (
    AuditEntry,
    AuditLog,
    LessonForm,
    Overview,
    PairLinks,
    TeachingResult,
    TeamLibrary,
    overview,
    read_audit,
    removals,
)
from services.telemetry import PartOutcome
from settings import KnowledgeSettings, MetricsSettings, Settings
from sinks.results import RECENT_ENTRIES, OutcomeRecord

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FleetData:
    """The data of all processes, which the dashboard of one of them shows and changes.

    Attributes:
        processes: asks all processes for their status.
        dismissed: the dismissed gaps.
        team: gives what corrects the team's library, by what shows it here.
        drafts: None: no answer waits for approval.
    """

    processes: Callable[[], Awaitable[Fleet]]
    outcomes: OutcomeHistory
    dismissed: GapDismissals
    team: Callable[[DashboardTeam], Team]
    drafts: DraftList | None


def dashboard_pages(
    settings: Settings,
    parts: GraphParts,
    meter: FlowMeter,
    *,
    pace: float = 1.0,
    health: Callable[[], Awaitable[Sequence[Condition]]] | None = None,
    fleet: FleetData | None = None,
) -> Callable[[web.Application], None]:
    """Make a function that adds the dashboard's pages to an aiohttp application. `pace`: loop seconds per real second.
    `health`: gives the conditions of what the bot needs; None: it is a replay. `fleet`: the data of all processes, if
    there are several; None: that of this run. Blocking. Raises OSError: the key of pseudonyms cannot be read or made.
    """
    state, history = parts.state, parts.services.history
    server = parts.servers.default
    curation = server.captures.curation
    library = None if curation is None else curation.library
    local_team = DashboardTeam(settings, library, PairLinks(state.folder.places), state.audit)
    if fleet is None:
        has_approvals = state.drafts.folder is not None and bool(is_approving(settings) or state.drafts.waiting)
        drafts = LocalDrafts(state.drafts) if has_approvals else None
        kept = LocalOutcomeHistory(state.record, state.folder, state.token_days, state.posts.find)
        dismissed, team = DismissedGaps(DismissedQuestions(state.folder.dismissed), state.audit), local_team
    else:
        drafts, kept, dismissed, team = fleet.drafts, fleet.outcomes, fleet.dismissed, fleet.team(local_team)
    key = run_pseudonym_key(state.folder, is_durable=state.is_durable)
    sources = DashboardData(
        meter=meter,
        history=kept,
        dismissed=dismissed,
        costs=partial(costs_of, kept, prices_of(settings)),
        known_sources=partial(known_sources, settings.kb, server.library),
        search=server.search,
        team=team,
        may_correct=curation is not None or fleet is not None,
        now=now,
        health=health,
        has_model=any(each.ai_response.llm is not None for each in settings.servers.values()),
        notice="" if health or fleet else "A recording is played: nothing is connected or posted.",
        fleet=None if fleet is None else fleet.processes,
        drafts=drafts,
        teacher=None
        if server.captures.teach is None
        else DashboardTeacher(LessonStore(parts, Redactor(settings.secrets))),
        owner_of=settings.servers.owner_of,
    )
    name_of = partial(place_name, history, texts=settings.dashboard.show_texts, is_withheld=state.is_title_withheld)
    rules = display_rules(settings, key, name_of)
    return partial(add_pages, data=sources, rules=rules, access=access_control(settings), pace=pace)


def display_rules(settings: Settings, key: bytes, place: Callable[[int], str]) -> DisplayRules:
    """Return how the dashboard shows people and texts. `key`: of pseudonyms; `place`: gives the names of channels."""
    return DisplayRules(settings.dashboard.show_texts, partial(pseudonym, key), place)


def access_control(settings: Settings) -> AccessControl:
    chosen, names = settings.dashboard, frozenset({settings.metrics.host.lower()})
    operators = {each.token.get_secret_value(): Operator(name, each.role) for name, each in chosen.operators.items()}
    if token := chosen.token.get_secret_value():
        operators[token] = OWNER
    return AccessControl(operators, names, time.monotonic)


@asynccontextmanager
async def pages_of_folder(settings: Settings, *, is_replay: bool) -> AsyncGenerator[Callable[[web.Application], None]]:
    """Give what `dashboard_pages` gives, of a data folder in which nothing runs, until the end of the block. Nothing is
    written. `is_replay`: time has stopped at the end of what the folder holds. Raises OSError: the folder cannot be
    read.
    """
    folder, record = DataFolder(settings.app.data_dir), OutcomeRecord(None, str)
    entries = await in_thread(read_newest, folder.outcomes, RECENT_ENTRIES)
    posts = {post.message_id: post for post in await in_thread(read_posts, folder.posts)}
    questions = {entry.question: entry.message_ids[-1] for entry in entries if entry.question}
    spent = await in_thread(read_token_days, folder.token_days)
    kept = LocalOutcomeHistory(record, folder, spent, posts.get, questions)
    end = await in_thread(end_of_replay, folder.outcomes, folder.feedback) if is_replay else None
    own, library = server_libraries(settings).default
    async with AsyncExitStack() as stack:
        embedder = await stack.enter_async_context(open_embedder(settings.search.embeddings))
        sources = DashboardData(
            meter=None,
            history=kept,
            dismissed=DismissedGaps(DismissedQuestions(folder.dismissed), AuditLog()),
            costs=partial(costs_of, kept, prices_of(settings), until=end),
            known_sources=partial(known_sources, settings.kb, library),
            search=await stack.enter_async_context(open_search(settings, own, embedder)),
            team=DashboardTeam(settings, None, PairLinks(folder.places), AuditLog()),
            may_correct=False,
            now=now if end is None else lambda: end,
            owner_of=settings.servers.owner_of,
            notice=f"This is what {folder.root} holds. Nothing runs here, and nothing can be changed.",
        )
        key = await in_thread(partial(run_pseudonym_key, folder, is_durable=False))
        rules = display_rules(settings, key, recorded_places(entries))
        yield partial(add_pages, data=sources, rules=rules, access=access_control(settings))


def recorded_places(entries: Iterable[PartOutcome]) -> Callable[[int], str]:
    """Make a function that gives the name of a channel as far as the record has it. Names of threads are not in it."""
    names, channels = dict[int, str](), dict[int, int]()
    for entry in entries:
        channels[entry.place_id] = entry.channel_id
        if entry.channel:
            names[entry.channel_id] = f"#{entry.channel}"

    def name_of(place_id: int) -> str:
        channel_id = channels.get(place_id, place_id)
        name = names.get(channel_id, f"#{channel_id}")
        return name if channel_id == place_id else f"{name}, a thread"

    return name_of


def is_approving(settings: Settings) -> bool:
    """Return True if answers wait for approval in any server."""
    return any(approval_rules(settings, guild_id).is_on for guild_id in settings.servers)


@dataclass(frozen=True, slots=True)
class LocalDrafts:
    """Implements `dashboard.DraftList` for one process."""

    drafts: Drafts

    async def waiting(self) -> Sequence[Draft]:
        return self.drafts.waiting

    async def decide(self, draft_id: int, action: DraftAction, *, operator: str, text: str = "", seen: str = "") -> str:
        return await self.drafts.decide(draft_id, action, text=text, seen=seen, operator=operator)


def place_name(
    history: History, place_id: int, *, texts: bool, is_withheld: Callable[[Place], bool] = lambda _: False
) -> str:
    """Return the name of a channel; a thread's is what somebody wrote, so it is shown only with `texts`, and if
    `is_withheld` does not say that its author does not want that.
    """
    place = history.place(place_id)
    if not place.is_thread:
        return f"#{history.name_of(place_id)}"
    parent = "" if place.parent_id is None else f"#{history.name_of(place.parent_id)}, "
    return f"{parent}{history.name_of(place_id)}" if texts and not is_withheld(place) else f"{parent}a {place.kind}"


def address_of(settings: MetricsSettings) -> str:
    """Return the dashboard's address for a browser on this machine."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104 (what others reach)
    return str(URL.build(scheme="http", host=host, port=settings.port, path="/"))


class OutcomeHistory(OutcomesAndVotes, Protocol):
    """Reads outcomes, votes, the audit log, and tokens that models used. `last` gives the newest `RECENT_ENTRIES`."""

    async def tokens(self) -> TokenDays: ...


@dataclass(frozen=True, slots=True)
class LocalOutcomeHistory:
    """Reads outcomes of this process: the newest from memory, older ones from the files of `folder`. `post`: gives the
    record of a reply by its message. `questions`: ids of questions by their texts; a replay records no replies.
    """

    record: OutcomeRecord
    folder: DataFolder
    spent: TokenDays
    post: Callable[[int], Post | None]
    questions: Mapping[str, int] = field(default_factory=dict[str, int])

    async def last(self) -> Sequence[PartOutcome]:
        return with_recent(await in_thread(read_newest, self.folder.outcomes, RECENT_ENTRIES), self.record)

    async def of(self, period: TimeSpan) -> Sequence[PartOutcome]:
        written = await in_thread(read_outcomes, self.folder.outcomes, period)
        since = written[-1].at + MOMENT if written else 0.0  # the file has times cut to milliseconds
        return join_drafts((*written, *(each for each in self.record.recent if each.at in period and each.at >= since)))

    async def votes(self, period: TimeSpan) -> Sequence[VotedQuestion]:
        votes = with_asked(await in_thread(read_voted, self.folder.feedback, period), self.post)
        return [replace(vote, asked_id=vote.asked_id or self.questions.get(vote.question)) for vote in votes]

    async def audit(self) -> Sequence[AuditEntry]:
        return await in_thread(read_audit, self.folder.audit)

    async def tokens(self) -> TokenDays:
        return self.spent


def with_asked(votes: Iterable[VotedQuestion], post: Callable[[int], Post | None]) -> list[VotedQuestion]:
    """Return the votes with the ids of the questions, as far as the replies are known."""
    posts = [(vote, post(vote.message_id)) for vote in votes]
    return [vote if reply is None else replace(vote, asked_id=reply.last_asked_id) for vote, reply in posts]


def with_recent(written: Iterable[PartOutcome], record: OutcomeRecord) -> Sequence[PartOutcome]:
    """Return the newest outcomes of both. An outcome in both is taken from memory, where it has the reply."""
    recent = tuple(record.recent)
    known = set(map(_identity, recent))
    older = [entry for entry in written if _identity(entry) not in known]
    return join_drafts(sorted((*older, *recent), key=lambda entry: entry.at))[-RECENT_ENTRIES:]


async def costs_of(kept: OutcomeHistory, prices: Prices, days: int, until: float | None = None) -> Costs:
    """Add up tokens and cost of `days` days up to `until` (now), that day included."""
    until = now() if until is None else until
    period = TimeSpan(until - (days - 1) * DAY, until + MOMENT)
    return costs((await kept.tokens()).days, await kept.of(period), period, prices)


def _identity(entry: PartOutcome) -> tuple[str, tuple[int, ...]]:
    """Return a key that is the same for an entry and for its line in the file, where the time is cut."""
    return rfc3339(entry.at), entry.message_ids


async def known_sources(kb: KnowledgeSettings, library: Library) -> list[KnownSource]:
    """List the sources of the knowledge base, from index and cache, in the order of the index."""
    described = {entry.id: entry.description for entry in await library.index() if is_document(entry.id)}
    kinds = source_kinds(kb)
    records = await in_thread(read_records, kb, kinds)
    found = [
        _known_source(kinds, source_id, records.get(source_id.removeprefix(DOCUMENT)), text)
        for source_id, text in described.items()
    ]
    rest = [(document_id(bare), record) for bare, record in records.items() if document_id(bare) not in described]
    return found + [_known_source(kinds, source_id, record, None) for source_id, record in sorted(rest)]


def _known_source(
    kinds: Sequence[AnyKind], source_id: str, record: Record | None, description: str | None
) -> KnownSource:
    """Describe a source for the dashboard. `description`: None if it is not in the index."""
    state, trouble = ("indexed", False) if description is not None else ("not in the index", True)
    kind = next((each for each in kinds if isinstance(record, each.record)), None)
    facts = SourceDetails() if kind is None else kind.details(record)
    if record is not None:
        if record.gone_at is not None:
            state, trouble = f"gone since {record.gone_at[:16].replace('T', ' ')}", True
        elif facts.trouble:
            state, trouble = facts.trouble + ("" if description is None else "; earlier text"), True
        elif record.summary_pending:
            state, trouble = "to be described", False
    source_type = "file" if record is None else record.source_type
    return KnownSource(
        source_id,
        source_type,
        state,
        trouble,
        facts.size_bytes,
        facts.changed_at,
        description or "",
        facts.read_at,
    )


@dataclass(frozen=True, slots=True)
class DismissedGaps:
    """Implements `dashboard.GapDismissals`."""

    questions: DismissedQuestions
    audit: AuditLog

    async def read(self) -> Collection[int]:
        return await in_thread(self.questions.read)

    async def change(self, action: str, asked_ids: Collection[int], operator: str) -> None:
        act = self.questions.dismiss if action == "dismiss" else self.questions.restore
        await run_blocking(self.audit.note, now(), operator, f"{action} gap", max(asked_ids, default=0))
        await run_blocking(act, asked_ids)


@dataclass(frozen=True, slots=True)
class DashboardTeacher:
    """Implements `dashboard.Teacher`."""

    teaching: LessonStore

    async def teach(self, form: LessonForm, operator: str) -> TeachingResult:
        told = await self.teaching.teach(form, operator)
        return told._replace(text=told.text.replace("`", ""))  # Discord's markup

    async def may_quote(self, asked: PartOutcome) -> bool:
        return await self.teaching.may_quote(asked)


@dataclass(frozen=True, slots=True)
class DashboardTeam:
    """Gives the dashboard the team's library. With `library` None it cannot be corrected."""

    settings: Settings
    library: TeamLibrary | None
    places: PairLinks
    audit: AuditLog

    async def overview(self) -> Overview:
        cursor = self.settings.kb.qa_raw_last_processed_id
        return await in_thread(overview, team_paths(self.settings), cursor, now())

    def address(self, qa_id: str) -> str | None:
        return self.places.address(qa_id)

    async def correct(self, action: str, qa_id: str, operator: str) -> str:
        if self.library is None:
            raise removals.RemovalRefused("the library is only shown here")
        act = removals.remove if action == "remove" else removals.restore
        note = partial(self.audit.note, now(), operator, f"{action} conversation")
        return await run_blocking(act, self.library, qa_id, rfc3339(now()), note)
