"""The knowledge base that builds itself: triggers in, an event for each source out.

start-up, tick, file change
        │ one update at a time, triggers meanwhile cause one more
    discover, each kind by itself ── gone, left out ───────┐
        ├── due files ── fetch, many at once ───────┬──────┤
        ├── due pages ── fetch, throttled ──────────┤      │      (one such line for each kind of source)
        └── descriptions missing or out of date ────┤      │
                                  summarise, throttled ────┤
                                                    source records
                                                           │ now and then, and at the end
                                                    cache and index
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import reactivex as rx
from reactivex import Observable
from reactivex import operators as ops

from dataflow import concat_map_iterable, map_async, of_type
from dataflow.metering import Gauge, operator_gauge, operator_watch
from dataflow.triggering import checkpoint, coalesce
from operators.step import is_expected
from operators.updating import begin, discover, fetch, summarise
from services.assistant import Describer
from services.knowledge import (
    AnyKind,
    Due,
    Pending,
    Purged,
    SourceRecords,
    Trouble,
    UpdateEvent,
    UpdateReport,
    UpdateResult,
    UpToDate,
)
from sinks.knowledge import CacheAndIndex

T = TypeVar("T")
R = TypeVar("R")

WRITE_SHARE = 0.05
"""The share of the sources after which cache and index are written while an update runs."""
WRITE_SECONDS = 30.0
"""After this time cache and index are written in any case."""
PAUSE_SECONDS = 5.0
"""The shortest pause between two writes: a crash loses little more."""
GROUP_SIZE = 64
"""So many events of discovery run through the graph before the event loop has its turn."""

log = logging.getLogger(__name__)

Events = Sequence[UpdateEvent]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeParts:
    """The services and limits of an update.

    Attributes:
        descriptions_at_once: how many sources are described at the same time.
        describe_seconds: the limit for one description, retries included.
    """

    source_records: SourceRecords
    describer: Describer
    files: CacheAndIndex
    descriptions_at_once: int
    describe_seconds: float
    gauge: Gauge | None = None


def knowledge(triggers: Observable[object], parts: KnowledgeParts) -> Observable[UpdateEvent | UpdateReport]:
    """Bring the knowledge base up to date at every trigger: emit an event for each source, then the update's report.

    triggers  --t-----t-t---------------|
    reports   -----r-------r----r-------|

    Completes when the triggers have and the running update has ended; disposing cuts it off, and its events so far are
    in the source records.
    """
    return triggers.pipe(coalesce(lambda _: update(parts)))


def update(parts: KnowledgeParts) -> Observable[UpdateEvent | UpdateReport]:
    """Run one update: emit its events, then its report. It is wired anew each time, without state of earlier ones."""
    source_records, gauge, key = parts.source_records, parts.gauge, parts.describer.key
    report = UpdateReport.of(source_records.kinds)

    begun: Observable[Sequence[AnyKind] | Trouble] = rx.of(None).pipe(
        update_step("load", begin(source_records), one_trouble, 1, gauge), ops.share()
    )
    kinds = begun.pipe(concat_map_iterable(lambda found: () if isinstance(found, Trouble) else found))
    looked = kinds.pipe(
        update_step("discover", discover(source_records, key), one_trouble_listed, len(source_records.kinds), gauge)
    )
    not_begun = begun.pipe(of_type(Trouble), ops.map(lambda trouble: [trouble]))
    discovered: Observable[Events] = rx.merge(not_begun, looked).pipe(
        concat_map_iterable(in_groups),
        map_async(pass_on, on_failure=reraise, max_concurrent=1),
        ops.share(),
    )
    found = discovered.pipe(concat_map_iterable(same_events))
    fetched = [
        discovered.pipe(
            concat_map_iterable(batches_of(kind)),
            update_step(kind.step, fetch(kind, source_records, key), trouble_for_each, kind.concurrency, gauge),
            concat_map_iterable(same_events),
            ops.share(),
        )
        for kind in source_records.kinds
    ]
    describing = summarise(parts.describer, source_records, parts.describe_seconds)
    summarised = rx.merge(found, *fetched).pipe(
        of_type(Pending),
        update_step("summarise", describing, trouble_of_source, parts.descriptions_at_once, gauge),
    )
    events = rx.merge(found, *fetched, summarised).pipe(ops.do_action(update_records(source_records)), ops.share())
    troubles = events.pipe(
        checkpoint(share_of(source_records), enough=WRITE_SHARE, seconds=WRITE_SECONDS, pause=PAUSE_SECONDS),
        update_step("write", parts.files.save, one_trouble_listed, 1, gauge),
        concat_map_iterable(same_events),
    )

    def closing(_scheduler: object) -> Observable[UpdateEvent | UpdateReport]:
        report.descriptions = parts.files.entry_count
        return rx.of(report)

    return rx.concat(rx.merge(events, troubles).pipe(ops.do_action(report.add)), rx.defer(closing))


def update_step(
    name: str,
    fn: Callable[[T], Coroutine[Any, Any, R]],
    on_failure: Callable[[str, T, Exception], R],
    max_concurrent: int,
    gauge: Gauge | None,
) -> Callable[[Observable[T]], Observable[R]]:
    """Return the operator `map_async(fn)`. Its gauge, its log lines and `on_failure` get the `name` of the step."""

    def failed(item: T, error: Exception) -> R:
        if not is_expected(error):
            log.error("%s failed: a bug", name, exc_info=error)
        return on_failure(name, item, error)

    return map_async(
        fn,
        on_failure=failed,
        max_concurrent=max_concurrent,
        gauge=operator_gauge(gauge, name),
        watch=operator_watch(gauge, name),
    )


def one_trouble(name: str, _item: object, error: Exception) -> Trouble:
    about = getattr(error, "filename", None) or "knowledge base"
    return Trouble(str(about), name, message_of(error), fatal=True)


def one_trouble_listed(name: str, item: object, error: Exception) -> Events:
    return [one_trouble(name, item, error)]


def trouble_for_each(name: str, due: Sequence[Due], error: Exception) -> Events:
    return [Trouble(each.source_id, name, message_of(error)) for each in due]


def trouble_of_source(name: str, item: Pending, error: Exception) -> UpdateEvent:
    return Trouble(item.record.source_id, name, message_of(error))


def message_of(error: Exception) -> str:
    """Return the error's message as one line."""
    message = error.strerror if isinstance(error, OSError) else str(error)
    return " ".join((message or ("took too long" if isinstance(error, TimeoutError) else type(error).__name__)).split())


def in_groups(events: Events) -> Iterator[Events]:
    """Cut a long list, which would otherwise hold up the loop while each event runs through the whole graph."""
    return (events[at : at + GROUP_SIZE] for at in range(0, len(events), GROUP_SIZE))


async def pass_on(events: Events) -> Events:
    """Return the events unchanged; under `map_async` this lets the event loop run between two calls."""
    return events


def reraise(_events: Events, error: Exception) -> Events:
    raise error


def same_events(events: Events) -> Events:
    return events


def batches_of(kind: AnyKind) -> Callable[[Events], Iterator[list[Due]]]:
    """Return a function that finds the due sources of a kind among events, in batches of the kind's size."""

    def batches(events: Events) -> Iterator[list[Due]]:
        due = [event for event in events if isinstance(event, Due) and event.kind is kind]
        return (due[at : at + kind.batch] for at in range(0, len(due), kind.batch))

    return batches


def update_records(source_records: SourceRecords) -> Callable[[UpdateEvent], None]:
    """Return a function that applies events to the source records."""

    def keep(event: UpdateEvent) -> None:
        match event:
            case UpToDate(record=record) | Pending(record=record):
                source_records.put(record)
            case Purged(source_id=source_id):
                source_records.drop(source_id)
            case _:
                pass

    return keep


def share_of(source_records: SourceRecords) -> Callable[[UpdateEvent], float]:
    """Return a function that gives the share of the index that an event changes; 1 for a source that is gone."""

    def share(event: UpdateEvent) -> float:
        if not isinstance(event, UpToDate):
            return 0.0
        return 1.0 if event.result is UpdateResult.GONE else 1 / len(source_records.by_id)

    return share
