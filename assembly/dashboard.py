"""Collects from a run the data that the dashboard shows."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from aiohttp import web
from yarl import URL

from assembly.data_folder import run_pseudonym_key
from assembly.graph_parts import Parts
from assembly.reports import prices_of
from assembly.sources import source_kinds
from assembly.team import team_places
from clock import now, rfc3339, run_blocking
from dashboard import AccessControl, DashboardData, DisplayRules, FlowMeter, KnownSource, add_pages
from model.processes import Fleet
from reporting.cost import Costs, Prices, costs
from reporting.reading import TimeSpan, read_newest, read_outcomes
from services.conversations import History
from services.knowledge import AnyKind, Library, Record, SourceDetails, cache
from services.llm import TokenDays
from services.privacy import pseudonym
from services.storage import in_thread
from services.team import Overview, PairLinks, TeamLibrary, corrections, overview
from services.telemetry import PartOutcome
from settings import KnowledgeSettings, MetricsSettings, Settings
from sinks.results import RECENT, OutcomeRecord

DAY, MOMENT = 86_400.0, 0.001

log = logging.getLogger(__name__)


def dashboard_pages(
    settings: Settings,
    parts: Parts,
    meter: FlowMeter,
    *,
    pace: float = 1.0,
    fleet: Callable[[], Awaitable[Fleet]] | None = None,
    ends: OutcomeHistory | None = None,
) -> Callable[[web.Application], None]:
    """Make a function that adds the dashboard's pages to an aiohttp application. `pace`: loop seconds per real second.
    `fleet`: asks all processes, where there are several. `ends`: what all of them have recorded; None: what this run
    has. Blocking.

    Raises:
        OSError: the key of pseudonyms cannot be read or made.
    """
    state, history = parts.state, parts.services.history
    server = parts.servers.default
    curation = server.captures.curation
    kept = ends or LocalOutcomeHistory(state.record, state.folder.outcomes, state.token_days)
    key = run_pseudonym_key(state.folder, durable=state.durable)
    sources = DashboardData(
        meter=meter,
        entries=kept.last,
        costs=partial(costs_of, kept, prices_of(settings)),
        known_sources=partial(known_sources, settings.kb, server.library),
        search=server.search,
        team=DashboardTeam(settings, None if curation is None else curation.library, PairLinks(state.folder.places)),
        may_correct=curation is not None,
        now=now,
        fleet=fleet,
    )
    texts = settings.dashboard.show_texts
    showing = DisplayRules(texts, partial(pseudonym, key), partial(place_name, history, texts=texts))
    token, names = settings.dashboard.token.get_secret_value(), frozenset({settings.metrics.host.lower()})
    access = AccessControl(token, names, time.monotonic)
    return partial(add_pages, sources=sources, showing=showing, access=access, pace=pace)


def place_name(history: History, place_id: int, *, texts: bool) -> str:
    """The name of a channel; a thread's is what somebody wrote, so it is shown only with `texts`."""
    place = history.place(place_id)
    if not place.is_thread:
        return f"#{history.name_of(place_id)}"
    parent = "" if place.parent_id is None else f"#{history.name_of(place.parent_id)}, "
    return f"{parent}{history.name_of(place_id)}" if texts else f"{parent}a {place.kind}"


def address_of(settings: MetricsSettings) -> str:
    """Give the dashboard's address for a browser on this machine."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104 (what others reach)
    return str(URL.build(scheme="http", host=host, port=settings.port, path="/"))


class OutcomeHistory(Protocol):
    """Reads how parts ended and how many tokens models used."""

    async def last(self) -> Sequence[PartOutcome]:
        """The newest `RECENT`, oldest first."""
        ...

    async def of(self, period: TimeSpan) -> Sequence[PartOutcome]:
        """Read the outcomes of a period, oldest first."""
        ...

    async def tokens(self) -> TokenDays: ...


@dataclass(frozen=True, slots=True)
class LocalOutcomeHistory:
    """Reads outcomes of this process: the newest from memory, older ones from the files in `folder`."""

    record: OutcomeRecord
    folder: Path
    spent: TokenDays

    async def last(self) -> Sequence[PartOutcome]:
        return with_recent(await in_thread(read_newest, self.folder, RECENT), self.record)

    async def of(self, period: TimeSpan) -> Sequence[PartOutcome]:
        return await in_thread(read_outcomes, self.folder, period) or [
            entry for entry in self.record.recent if entry.at in period
        ]

    async def tokens(self) -> TokenDays:
        return self.spent


def with_recent(written: Iterable[PartOutcome], record: OutcomeRecord) -> Sequence[PartOutcome]:
    """The newest of both. What is in memory as well is taken from there: it has the replies."""
    recent = tuple(record.recent)
    known = set(map(_identity, recent))
    older = [entry for entry in written if _identity(entry) not in known]
    return sorted((*older, *recent), key=lambda entry: entry.at)[-RECENT:]


async def costs_of(kept: OutcomeHistory, prices: Prices, days: int) -> Costs:
    """Add up tokens and cost of the last `days` days, today included."""
    period = TimeSpan(now() - (days - 1) * DAY, now() + MOMENT)
    return costs((await kept.tokens()).days, await kept.of(period), period, prices)


def _identity(entry: PartOutcome) -> tuple[str, tuple[int, ...]]:
    """Give a key that is the same for an entry in memory and for its line in the file, where the time is cut to
    milliseconds.
    """
    return rfc3339(entry.at), entry.message_ids


async def known_sources(kb: KnowledgeSettings, library: Library) -> list[KnownSource]:
    """The sources of the knowledge base, as index and cache know them, in the order of the index."""
    described = {entry.id: entry.description for entry in await library.index() if entry.id.startswith("kb:")}
    kinds = source_kinds(kb)
    records = await in_thread(_records, kb, kinds)
    found = [
        _known_source(kinds, source_id, records.get(source_id.removeprefix("kb:")), text)
        for source_id, text in described.items()
    ]
    rest = [(f"kb:{bare}", record) for bare, record in records.items() if f"kb:{bare}" not in described]
    return found + [_known_source(kinds, source_id, record, None) for source_id, record in sorted(rest)]


def _records(kb: KnowledgeSettings, kinds: Sequence[AnyKind]) -> Mapping[str, Record]:
    """By id without namespace; none where there is no cache."""
    try:
        data = kb.index_cache_path.read_bytes()
    except FileNotFoundError:
        return {}
    return cache.parse(data, [kind.record for kind in kinds], str(kb.index_cache_path))


def _known_source(
    kinds: Sequence[AnyKind], source_id: str, record: Record | None, description: str | None
) -> KnownSource:
    """`description`: None where it is not in the index."""
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
    return KnownSource(source_id, source_type, state, trouble, facts.size_bytes, facts.changed_at, description or "")


@dataclass(frozen=True, slots=True)
class DashboardTeam:
    """Gives the dashboard the team's library. With `library` None it cannot be corrected."""

    settings: Settings
    library: TeamLibrary | None
    places: PairLinks

    async def overview(self) -> Overview:
        cursor = self.settings.kb.qa_raw_last_processed_id
        return await in_thread(overview, team_places(self.settings), cursor, now())

    def address(self, qa_id: str) -> str | None:
        return self.places.address(qa_id)

    async def correct(self, action: str, qa_id: str) -> str:
        if self.library is None:
            raise corrections.CorrectionRefused("the library is only shown here")
        act = corrections.remove if action == "remove" else corrections.restore
        return await run_blocking(act, self.library, qa_id, rfc3339(now()))
