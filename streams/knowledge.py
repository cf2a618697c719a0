"""The knowledge base that builds itself: triggers in, what became of each source out.

start-up, tick, file change
        │ one update at a time, triggers meanwhile cause one more
    discover ── what is gone, what is left out ───────────────┐
        ├── files with a new size or time ── examine ──┬──────┤
        ├── pages that are due ── fetch (throttled) ───┤      │
        └── descriptions missing or out of date ───────┤      │
                                     summarise (throttled) ───┤
                                                           ledger
                                                              │ rarely, and at the end
                                                       cache and index
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import reactivex as rx
from reactivex import Observable
from reactivex import operators as ops

from operators import map_async, only, spread
from operators.checkpoint import checkpoint
from operators.coalesce import coalesce
from operators.discover import Few, discover, few_at_once
from operators.examine import examine
from operators.fetch import Rechecks, Result, fetch
from operators.step import Gauge, expected, named
from operators.summarise import summarise
from services.assistant import Describer
from services.knowledge import (
    DuePage,
    How,
    Ledger,
    Pending,
    Purged,
    Settled,
    SourcePaths,
    Suspect,
    Trouble,
    UpdateEvent,
    UpdateReport,
    Web,
)

T = TypeVar("T")
R = TypeVar("R")

ENOUGH = 0.05
"""The share of the sources after which cache and index are written while an update runs (SPEC 7)."""
WRITE_SECONDS = 30.0
"""After this time they are written anyway (SPEC 7)."""
PAUSE_SECONDS = 5.0
"""Between two writes: where sources change faster than that, little is lost by a crash."""
READERS = 2
"""Threads that read files, a few dozen at a time: one waits for the disk while the other computes."""

log = logging.getLogger(__name__)


class Saving(Protocol):
    """The sink: `sinks.knowledge.CacheAndIndex`."""

    async def save(self, _sign: object = None) -> list[Trouble]: ...

    @property
    def entries(self) -> int: ...


@dataclass(frozen=True, slots=True)
class KnowledgeParts:
    """Whom an update talks to."""

    ledger: Ledger
    describer: Describer
    web: Web
    files: Saving
    count: Callable[[Result], object] | None = None
    """Called with the result of each download."""
    gauge: Gauge | None = None


@dataclass(frozen=True, slots=True)
class KnowledgeRules:
    places: SourcePaths
    rechecks: Rechecks
    downloads_at_once: int
    descriptions_at_once: int
    describe_seconds: float
    """How long one description may take, repeated attempts included."""


def knowledge(
    triggers: Observable[object], parts: KnowledgeParts, rules: KnowledgeRules
) -> Observable[UpdateEvent | UpdateReport]:
    """Bring the knowledge base up to date at every trigger: what became of each source, then the update's report.

    triggers  --t-----t-t---------------|
    reports   -----r-------r----r-------|

    Completes when the triggers have and the update under way is through; disposing cuts that off, and what it has
    done so far is in the ledger.
    """
    return triggers.pipe(coalesce(lambda _: update(parts, rules)))


def update(parts: KnowledgeParts, rules: KnowledgeRules) -> Observable[UpdateEvent | UpdateReport]:
    """One update; wired anew for each, so that none leaves anything behind."""
    report = UpdateReport()
    ledger, places, key = parts.ledger, rules.places, parts.describer.key

    few: Observable[Few] = rx.of(None).pipe(
        step("discover", discover(ledger, places, key), fails_whole, 1, parts.gauge),
        spread(few_at_once),
        map_async(in_its_turn, on_failure=raising, max_concurrent=1),
        ops.share(),
    )
    found = few.pipe(spread(lambda some: some.events))
    examined = few.pipe(
        spread(suspects),
        step("examine", examine(ledger, places, key), fails_together, READERS, parts.gauge),
        spread(members),
        ops.share(),
    )
    fetched = found.pipe(
        only(DuePage),
        step(
            "fetch",
            fetch(parts.web, ledger, places, key, rules.rechecks, parts.count),
            fails_as_page,
            rules.downloads_at_once,
            parts.gauge,
        ),
        spread(members),
        ops.share(),
    )
    summarised = rx.merge(found, examined, fetched).pipe(
        only(Pending),
        step(
            "summarise",
            summarise(parts.describer, ledger, places, rules.describe_seconds),
            fails_as_source,
            rules.descriptions_at_once,
            parts.gauge,
        ),
    )
    events = rx.merge(found, examined, fetched, summarised).pipe(ops.do_action(keep_in(ledger)), ops.share())
    troubles = events.pipe(
        checkpoint(share_of(ledger), enough=ENOUGH, seconds=WRITE_SECONDS, pause=PAUSE_SECONDS),
        step("write", parts.files.save, fails_whole, 1, parts.gauge),
        spread(members),
    )

    def closing(_scheduler: object) -> Observable[UpdateEvent | UpdateReport]:
        report.descriptions = parts.files.entries
        return rx.of(report)

    return rx.concat(rx.merge(events, troubles).pipe(ops.do_action(report.add)), rx.defer(closing))


def step(
    name: str,
    fn: Callable[[T], Coroutine[Any, Any, R]],
    on_failure: Callable[[str, T, Exception], R],
    max_concurrent: int,
    gauge: Gauge | None,
) -> Callable[[Observable[T]], Observable[R]]:
    """`map_async`, with a failure told as this step's."""

    def failed(item: T, error: Exception) -> R:
        if not expected(error):
            log.error("%s failed: a bug", name, exc_info=error)
        return on_failure(name, item, error)

    return map_async(fn, on_failure=failed, max_concurrent=max_concurrent, gauge=named(gauge, name))


def fails_whole(name: str, _item: object, error: Exception) -> Sequence[UpdateEvent]:
    about = getattr(error, "filename", None) or "knowledge base"
    return [Trouble(str(about), name, message_of(error), fatal=True)]


def fails_together(name: str, item: Sequence[Suspect], error: Exception) -> Sequence[UpdateEvent]:
    return [Trouble(each.name, name, message_of(error)) for each in item]


def fails_as_page(name: str, item: DuePage, error: Exception) -> Sequence[UpdateEvent]:
    return [Trouble(item.url, name, message_of(error))]


def fails_as_source(name: str, item: Pending, error: Exception) -> UpdateEvent:
    return Trouble(item.record.source_id, name, message_of(error))


def message_of(error: Exception) -> str:
    """One line."""
    told = error.strerror if isinstance(error, OSError) else str(error)
    return " ".join((told or ("took too long" if isinstance(error, TimeoutError) else type(error).__name__)).split())


async def in_its_turn(some: Few) -> Few:
    """Nothing: but between two of these calls the event loop has its turn."""
    return some


def raising(_some: Few, error: Exception) -> Few:
    raise error


def suspects(some: Few) -> Iterable[Sequence[Suspect]]:
    """The files among some events, to be read together; nothing where there are none."""
    those = [event for event in some.events if isinstance(event, Suspect)]
    return [those] if those else []


def members(events: Sequence[UpdateEvent]) -> Sequence[UpdateEvent]:
    return events


def keep_in(ledger: Ledger) -> Callable[[UpdateEvent], None]:
    """The fold: what each event means for what is known."""

    def keep(event: UpdateEvent) -> None:
        match event:
            case Settled(record=record) | Pending(record=record):
                ledger.put(record)
            case Purged(source_id=source_id):
                ledger.drop(source_id)
            case _:
                pass

    return keep


def share_of(ledger: Ledger) -> Callable[[UpdateEvent], float]:
    """How much of the index an event changes. What is gone has to leave it at once."""

    def share(event: UpdateEvent) -> float:
        if not isinstance(event, Settled):
            return 0.0
        return 1.0 if event.how is How.GONE else 1 / len(ledger.records)

    return share
