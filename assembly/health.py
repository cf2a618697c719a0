"""Says whether the program is well: `HealthMonitor.sample` gives a `Condition` for each thing that it needs.

Alerts are made of these (`alert_parts`) and, over NATS, each process has them in its status. `--check` shows
`disk_condition`.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from reactivex.subject import Subject

from assembly.sources import source_kinds
from clock import HOUR, MINUTE, now, utc_minute
from model.health import Condition, HealthTopic, Trouble, merge_conditions
from model.servers import Servers
from model.words import number_of, one_line
from services.discord import GatewayHealth, Poster
from services.knowledge import CannotList, Record, SourceRecords, UpdateEvent, UpdateReport, UpToDate, read_links
from services.llm import Limiter, LLMError, PromptRefused
from services.redaction import Redactor
from services.storage import DataFolder, describe_error, in_thread
from services.telemetry import LastError, Webhook
from settings import AlertSettings, KnowledgeSettings, Settings
from sinks.alerts import Alerts, Send, send_to_channel, send_to_webhook
from streams.alerts import AlertParts

SAMPLE_SECONDS = 30.0
LATE_UPDATES = 3
"""Knowledge is out of date if so many updates in a row were due and did not succeed, and for an hour at least."""
FAILED_CALLS = 2
"""A model is in trouble after so many failed calls in a row."""
LIMIT_SECONDS = 5.0
"""The most time for asking other processes about a budget."""
MB = 1_000_000
DISK_SHARE, DISK_COUNTED = 0.05, 100_000 * MB
"""A disk is nearly full below this share of it, where no more than `DISK_COUNTED` bytes of it count: 5 % of some
terabytes are plenty."""
MAX_SUBJECTS = 200
"""The most failing sources of a server that are named; others are counted."""
SUBJECT_CHARS = 120
"""The most characters of the name of a source."""

log = logging.getLogger(__name__)


def disk_condition(folder: Path, least_mb: int, at: float, subject: str = "") -> Condition:
    """Return how much room there is where `folder` is, or will be. Blocking. `subject`: the name of this machine."""
    existing = next((each for each in (folder, *folder.parents) if each.exists()), Path())
    try:
        disk = shutil.disk_usage(existing)
    except OSError as error:
        return Condition(topic=HealthTopic.DISK, troubles={subject: Trouble(at, at)}, detail=describe_error(error))
    least = max(least_mb * MB, DISK_SHARE * min(disk.total, DISK_COUNTED))
    return Condition(
        topic=HealthTopic.DISK,
        troubles={subject: Trouble(at, at)} if disk.free < least else {},
        detail=f"{disk.free / MB:,.0f} of {disk.total / MB:,.0f} MB are free",
    )


@dataclass(slots=True)
class _Calls:
    """The last calls of one model. `failed`: how many failed in a row."""

    failed: int = 0
    since: float = 0.0
    seen: float = 0.0
    why: str = ""


@dataclass(slots=True)
class UpdateWatch:
    """Watches the updates of one knowledge base.

    Attributes:
        prefix: of the names of its sources: the server that they belong to.
        current_at: when an update last ended without a failure that concerns all sources of a kind, or brought a source
            up to date.
    """

    kb: KnowledgeSettings
    source_records: SourceRecords
    changed: Subject[None]
    current_at: float
    prefix: str = ""
    _why: str = ""
    _failed: tuple[str, ...] = ()
    _failing: frozenset[str] = frozenset()
    _is_outdated: bool = False  # `_failing`
    _since: dict[str, float] = field(default_factory=dict[str, float])

    def on_event(self, event: UpdateEvent | UpdateReport) -> None:
        if isinstance(event, UpToDate):
            self.current_at = now()
        elif isinstance(event, UpdateReport):
            fatal = [trouble for trouble in event.troubles if trouble.fatal]
            self._why = f"{self.prefix}{_source_name(fatal[0].about, self.kb)}: {fatal[0].step}" if fatal else ""
            self.current_at = self.current_at if fatal else now()
            self._failed = tuple(trouble.about for trouble in event.troubles)
            self._is_outdated = True
            self.changed.on_next(None)

    def timeliness(self, at: float) -> Condition:
        """Return whether the updates are in time."""
        late = at - self.current_at > max(LATE_UPDATES * self.kb.runtime_refresh_tick_seconds, HOUR)
        troubles = {self.prefix: Trouble(self.current_at, at)} if late else {}
        told = f"last updated {utc_minute(self.current_at)}"
        return Condition(
            topic=HealthTopic.KNOWLEDGE, troubles=troubles, detail=f"{told}; {self._why}" if self._why else told
        )

    async def source_failures(self, at: float) -> Condition:
        """Return which sources could not be read, each since it was first seen so."""
        if self._is_outdated:
            self._is_outdated = False  # unless an update ends meanwhile
            records = list(self.source_records.by_id.values())
            self._failing = frozenset(await in_thread(self._find_failing, records, self._failed))
        # Those that are known come first: they stay among the named ones.
        since = {name: self._since.get(name, at) for name in sorted(self._failing)}
        self._since = dict(sorted(since.items(), key=lambda each: each[1])[:MAX_SUBJECTS])
        troubles = {name: Trouble(since, at) for name, since in self._since.items()}
        detail = number_of(len(self.source_records.by_id), "source")
        if self._failing:
            detail = f"{number_of(len(self._failing), 'failure')} among {detail}"
        return Condition(topic=HealthTopic.SOURCES, troubles=troubles, detail=detail)

    def _find_failing(self, records: list[Record], failed: tuple[str, ...]) -> set[str]:
        """Name what the last update could not read, or an earlier one if it is not due again yet. Blocking."""
        names = set(failed)
        for record in records:
            if record.gone_at is None and self.source_records.kind_of(record).details(record).trouble:
                names.add(record.source_id)
        kinds = source_kinds(self.kb)
        try:
            links = read_links(self.kb.links_file_path)
        except CannotList:
            links = None  # it is among `failed`
        for line in () if links is None else links.lines:
            if any(result is not None and result.failed for result in (kind.line_result(line) for kind in kinds)):
                names.add(line.url)
        return {f"{self.prefix}{_source_name(name, self.kb)}" for name in names}


def _source_name(name: str, kb: KnowledgeSettings) -> str:
    """Return the name of a source for people: without a query, which may hold a key, and without the folders above."""
    if name.startswith(("http://", "https://")):
        parts = urlsplit(name)
        name = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    elif Path(name).is_absolute():
        inside = Path(name).is_relative_to(kb.sources_dir)
        name = str(Path(name).relative_to(kb.sources_dir)) if inside else Path(name).name
    return one_line(name)[:SUBJECT_CHARS]


class HealthMonitor:
    """Collects what this process knows of its health.

    Attributes:
        gateway: the connection to Discord, if this process holds it; set by `watch_gateway`.
        latest: the conditions of the last sample.
        changed: emits when something has changed that a sample would show.
    """

    def __init__(self, settings: Settings, *, place: str = "") -> None:
        """`place`: the name of this machine, if several processes report to each other."""
        self.gateway: GatewayHealth | None = None
        self.latest: tuple[Condition, ...] = ()
        self.changed = Subject[None]()
        self._place = place
        self._folder, self._least_mb = settings.app.data_dir, settings.alerts.disk_free_mb
        self._calls: dict[str, _Calls] = {}
        self._updates: dict[int | None, UpdateWatch] = {}
        self._errors = LastError(Redactor(settings.secrets).text)
        self._refused: Condition | None = None  # at another process

    def watch_gateway(self, gateway: GatewayHealth) -> None:
        """Report the connection of this process from now on."""
        self.gateway = gateway
        gateway.on_refusal = lambda: self.changed.on_next(None)

    def note_refusal(self, why: str) -> None:
        """Note that Discord refuses another process, which will end. It holds until a later connection is reported."""
        self._refused = _refused_condition(why, now())
        self.changed.on_next(None)

    @asynccontextmanager
    async def watching_errors(self) -> AsyncGenerator[None]:
        """Keep the last error that is logged while the block runs."""
        logging.getLogger().addHandler(self._errors)
        try:
            yield
        finally:
            logging.getLogger().removeHandler(self._errors)

    def on_call(self, model: str, error: LLMError | None) -> None:
        """Note a call of a model. A prompt that it refuses says nothing about the model."""
        calls, at = self._calls.setdefault(model, _Calls()), now()
        was = calls.failed
        if error is None:
            calls.failed, calls.why = 0, ""
        elif not isinstance(error, PromptRefused):
            calls.failed += 1
            calls.since = at if was == 0 else calls.since
            calls.why = type(error).__name__
        calls.seen = at
        if (was < FAILED_CALLS) != (calls.failed < FAILED_CALLS):
            self.changed.on_next(None)

    @asynccontextmanager
    async def watching_updates(
        self, guild_id: int | None, kb: KnowledgeSettings, source_records: SourceRecords
    ) -> AsyncGenerator[UpdateWatch]:
        """Watch the updates of the knowledge base of a server, or of all others, while the block runs."""
        prefix = "" if guild_id is None else f"@{guild_id}/"
        watch = self._updates[guild_id] = UpdateWatch(kb, source_records, self.changed, now(), prefix)
        try:
            yield watch
        finally:
            del self._updates[guild_id]

    async def sample(self, budgets: Servers[Limiter] | None = None) -> list[Condition]:
        """Return the conditions that this process knows of, one of a topic. `budgets`: None: they are not looked at."""
        at = now()
        found = [await in_thread(disk_condition, self._folder, self._least_mb, at, self._place), self._error(at)]
        if self.gateway is not None:
            found += [self._discord(self.gateway, at), *_access(self.gateway, at)]
        if self._refused is not None:
            found.append(self._refused)
        if self._calls:
            found.append(self._models())
        for watch in list(self._updates.values()):
            found += [watch.timeliness(at), await watch.source_failures(at)]
        if budgets is not None:
            found += await budget_condition(budgets, at)
        self.latest = tuple(merge_conditions([found]))
        return list(self.latest)

    async def keep_sampling(self) -> None:
        """Keep `latest` up to date until cancelled."""
        while True:
            try:
                await self.sample()
            except Exception:
                log.exception("the health of this process is not known")
            await asyncio.sleep(SAMPLE_SECONDS)

    def _discord(self, gateway: GatewayHealth, at: float) -> Condition:
        since = gateway.lost_since(at)
        troubles = {} if since is None else {self._place: Trouble(since, at)}
        detail = "" if troubles else f"since {utc_minute(gateway.since)}"
        return Condition(topic=HealthTopic.DISCORD, troubles=troubles, detail=detail)

    def _models(self) -> Condition:
        failing = {name: calls for name, calls in self._calls.items() if calls.failed >= FAILED_CALLS}
        return Condition(
            topic=HealthTopic.MODEL,
            troubles={name: Trouble(calls.since, calls.seen) for name, calls in failing.items()},
            well={name: calls.seen for name, calls in self._calls.items() if not calls.failed},
            detail="; ".join(f"{number_of(calls.failed, 'call')} in a row: {calls.why}" for calls in failing.values()),
        )

    def _error(self, at: float) -> Condition:
        errors = self._errors
        troubles = {"": Trouble(errors.at, errors.at)} if errors.at and at - errors.at < HOUR else {}
        return Condition(topic=HealthTopic.ERRORS, troubles=troubles, detail=errors.text)


def _refused_condition(why: str, at: float) -> Condition:
    return Condition(topic=HealthTopic.ACCESS, troubles={"": Trouble(at, at)}, detail=why)


def _access(gateway: GatewayHealth, at: float) -> list[Condition]:
    """Return whether Discord lets the bot in; nothing while that is not known."""
    if gateway.refusal:
        return [_refused_condition(gateway.refusal, at)]
    return [Condition(topic=HealthTopic.ACCESS, well={"": at})] if gateway.connected else []


async def budget_condition(budgets: Servers[Limiter], at: float) -> list[Condition]:
    """Return which limits of the day are reached; nothing if other processes cannot be asked now."""
    found = dict[str, Trouble]()
    for limiter in dict.fromkeys(budgets.values()):
        try:
            async with asyncio.timeout(LIMIT_SECONDS):
                reached = await limiter.used_up(at)
        except TimeoutError:
            return []
        if reached is not None:
            found[reached] = Trouble(at, at)
    return [Condition(topic=HealthTopic.BUDGET, troubles=found)]


def alert_parts(
    settings: Settings,
    monitor: HealthMonitor,
    sample: Callable[[], Awaitable[Sequence[Condition]]],
    poster: Poster,
    on_open: Callable[[Mapping[str, bool]], object] | None,
) -> AlertParts | None:
    """Return the parts of the branch `alerts`; None if no target is set, and in a dry run. `on_open`: as for `Alerts`.
    Blocking. Raises OSError: its file cannot be read.
    """
    chosen = settings.alerts
    if not chosen.enabled or settings.app.dry_run:
        return None
    targets: dict[str, Send] = {}
    if chosen.channel_id is not None:
        targets["channel_id"] = send_to_channel(poster, chosen.channel_id)
    if address := chosen.webhook_url.get_secret_value():
        targets["webhook_url"] = send_to_webhook(Webhook(address))
    after = seconds_in_trouble(chosen)
    sink = Alerts(DataFolder(settings.app.data_dir).alerts, targets, after, on_open)
    return AlertParts(
        sample=sample,
        states=lambda: sink.states,
        tell=sink.tell,
        is_told=sink.is_told,
        changes=monitor.changed,
        after=after,
        every_seconds=SAMPLE_SECONDS,
    )


def seconds_in_trouble(chosen: AlertSettings) -> dict[HealthTopic, float]:
    """Return how long the trouble of each topic has to last before people are told."""
    return {
        HealthTopic.DISCORD: chosen.discord_lost_minutes * MINUTE,
        HealthTopic.ACCESS: 0.0,
        HealthTopic.MODEL: chosen.model_failing_minutes * MINUTE,
        # The age of the knowledge has a limit of its own: this is for a moment between two processes that keep it.
        HealthTopic.KNOWLEDGE: 5 * MINUTE,
        HealthTopic.SOURCES: chosen.source_failing_hours * HOUR,
        HealthTopic.BUDGET: 0.0,
        HealthTopic.DISK: 0.0,
    }
