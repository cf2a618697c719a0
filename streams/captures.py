"""The branch that captures what the team writes, up to the archive."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf
from typing import Any, TypeVar

import reactivex as rx
from reactivex import Observable
from reactivex import operators as ops

from clock import loop_time, now
from clock.timeouts import Backoff
from dataflow import concat_map_iterable, map_async, of_type, pass_through, unfold
from dataflow.metering import Gauge, operator_gauge, operator_watch
from dataflow.triggering import coalesce
from model.events import Deleted, Edited, Event, PlaceGone
from model.outcomes import Outcome
from model.servers import Servers
from operators.capturing import Change, ExtractedCapture, extract, retry_pending, revisions_of, without_withdrawn
from operators.doubting import Doubt, DoubtedPair
from operators.step import failure_of, is_expected
from services.assistant import CaptureJob
from services.conversations import Context, PersonalWork
from services.discord import LookupFailed
from services.team import Capture, CapturedMessage, Pair, PendingCapture, PendingFolder, Revision, archive_files
from services.telemetry import current_part
from streams.ticks import ticks

T = TypeVar("T", CaptureJob, ExtractedCapture)
R = TypeVar("R")

EXTRACTED_AT_ONCE = 16
STORED_AT_ONCE = 64  # captures that wait for the archive, which writes them in groups
SUMMARISED_AT_ONCE = 4  # captures whose images are described at the same time
LOOKUP_PATIENCE, LONGEST_LOOKUP_PAUSE = 600.0, 60.0  # seconds that a capture waits for Discord, as a reply does

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ImageServices:
    """The services that describe the images of captures, and retry those that failed.

    Attributes:
        summarise: `operators.capturing.summarise_images`, which saves a capture in `pending` if it fails.
        store_late: stores a capture that waited in `pending`.
        withheld: whether a message must not be captured any more.
    """

    summarise: Callable[[PendingCapture], Coroutine[Any, Any, Capture]]
    pending: PendingFolder
    store_late: Callable[[Capture], Coroutine[Any, Any, Pair | None]]
    withheld: Callable[[CapturedMessage], bool]
    tick_seconds: float = 300.0

    def with_personal_work(self, personal_work: PersonalWork) -> ImageServices:
        """Return the same, which describes no images for somebody who withdraws meanwhile what they said."""
        return replace(self, summarise=without_withdrawn(self.summarise, self.withheld, personal_work))


Store = Callable[[Capture], Coroutine[Any, Any, Outcome]]
"""Stores a capture in the archive. Raises ArchiveUnwritable."""
NO_IMAGE_SERVICES = Servers[ImageServices | None]({None: None})


def captures(
    jobs: Observable[CaptureJob],
    context: Context,
    store: Store,
    images: Servers[ImageServices | None] = NO_IMAGE_SERVICES,
    gauge: Gauge | None = None,
    *,
    may_wait: bool = True,
) -> Observable[Outcome | Pair]:
    """Emit one outcome for each job, and the pairs that a later try stores only after it. No job is ever dropped,
    however many wait.

    jobs              --j1-j2-j3----------------|
    extract           ------j1-o2-j3------------|      concurrently, in order; nothing to learn from j2
    summarise images  --------j1-----o3---------|      likewise; j3's could not be loaded, and it waits in a file
    archive           ----------o1-----p3-------|      in groups, in order; p3 came with a later try

    (j: a job; o: an outcome; p: a pair.)

    While the archive cannot be written (a full disk), captures wait and have no outcome; so they do for ten minutes
    while Discord cannot be asked. A shutdown cancels them, and catch-up reads their messages again. Without `may_wait`,
    as in a replay or an import, they fail at once.
    """
    outcomes = capture_outcomes(jobs, context, store, gauge, images, may_wait=may_wait)
    services = [each for each in images.values() if each is not None]
    if not services:
        return outcomes
    shared = outcomes.pipe(ops.share())
    return rx.merge(*(late_pairs(each, shared) for each in services), shared)


@dataclass(frozen=True, slots=True)
class RemoteRevisions:
    """Edits and deletions that another process has seen. `on_handled`: called when they have been handled, with True if
    the archive was revised.
    """

    guild_id: int | None
    revisions: tuple[Revision, ...]
    on_handled: Callable[[bool], object]


Revise = Callable[[int | None, Sequence[Revision]], Coroutine[Any, Any, Sequence[Pair]]]


def store_remote_captures(
    remote_captures: Observable[Capture | RemoteRevisions],
    store: Store,
    revise: Revise,
) -> Observable[Outcome | Pair]:
    """Store captures of other processes, in order, with one outcome for each. For their edits and deletions, emit the
    pairs that are captured again.

    remote_captures  --c1-c2--r----|      r is about a message of c1
    archive          -----o1-o2-p1-|
    """

    async def stored(each: Capture | RemoteRevisions) -> Sequence[Outcome | Pair]:
        if isinstance(each, Capture):
            return [await store(each)]
        pairs = await revise(each.guild_id, each.revisions)
        each.on_handled(True)
        return pairs

    def failed(each: Capture | RemoteRevisions, error: Exception) -> Sequence[Outcome | Pair]:
        if isinstance(each, RemoteRevisions):
            log_unrevised((revision.subject for revision in each.revisions), error)
            each.on_handled(False)
            return ()
        assert each.part is not None, "a capture of another process has its part"  # noqa: S101 (for the type checker)
        return [failure_of(each.part, "archive", error)]

    return remote_captures.pipe(
        map_async(stored, on_failure=failed, max_concurrent=STORED_AT_ONCE, ordered=True),
        concat_map_iterable(lambda found: found),
    )


FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0
"""The pause between two revisions, in seconds: it doubles with each, and is the first one again after the longest pause
without a revision."""
MAX_WAITING = 10_000
"""So many edits and deletions of one server may wait after a failed write (a full disk). More are logged and lost."""


def revised_captures(
    events: Observable[Event | Doubt | DoubtedPair],
    context: Context,
    revise: Revise,
    guild_of: Callable[[int], int | None],
) -> Observable[Pair]:
    """Capture conversations again, as they read now, if one of their messages was edited, deleted or doubted, or their
    channel or thread was deleted.

    events  --m1---(m1→edit)--(m2→delete)--(m3→delete)-(m1→delete)--|
    pairs   ----------p1--------------------------------------p2-|      m2 was in no capture; m3 and m1 were in one

    Each revision stores whole conversations again, so that whoever deletes message after message could fill the disk:
    what comes after a revision waits, and is handled together; so does what cannot be written (a full disk). When
    `events` end, nothing waits any more.
    """
    pending = _PendingRevisions(context, revise, guild_of)
    return events.pipe(
        of_type(Deleted, PlaceGone, Edited, Doubt, DoubtedPair),
        ops.do_action(pending.add, on_completed=pending.stop_waiting),
        coalesce(lambda _: unfold(pending.revise_next)),
        concat_map_iterable(lambda pairs: pairs),
    )


class _PendingRevisions:
    """The edits and deletions that are not in the archive yet, by server."""

    def __init__(self, context: Context, revise: Revise, guild_of: Callable[[int], int | None]) -> None:
        self._context = context
        self._revise = revise
        self._guild_of = guild_of
        self._by_guild: dict[int | None, dict[RevisionKey, Revision]] = {}
        self._ended = asyncio.Event()
        self._revision_backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE)
        self._write_backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE)
        self._not_before = -inf
        """The time of the next revision, unless `stop_waiting` is called before."""

    def add(self, event: Change) -> None:
        try:
            revisions = by_message(revisions_of(event, self._context))
            if revisions:
                # These events name their server: a deleted place cannot be looked up, and a pair has none.
                names_guild = isinstance(event, PlaceGone | DoubtedPair)
                guild_id = event.guild_id if names_guild else self._guild_of(event.channel_id)
                self._by_guild.setdefault(guild_id, {}).update(revisions)
        except Exception as error:  # noqa: BLE001 (one event must not end the branch)
            log_unrevised(ids_of(event), error)

    def stop_waiting(self) -> None:
        """Revise without pauses from now on, and try nothing again."""
        self._ended.set()

    async def revise_next(self) -> Sequence[Pair] | None:
        """Revise the captures of one server, when it is time. Returns the pairs that are captured again; None: nothing
        waits any more.
        """
        if not self._by_guild:
            return None
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, self._not_before - now())):
                await self._ended.wait()
        current_part.set(None)
        guild_id = next(iter(self._by_guild))
        revisions = tuple(self._by_guild.pop(guild_id).values())
        try:
            pairs = await self._revise(guild_id, revisions)
        except Exception as error:  # noqa: BLE001 (it is logged, and the next may succeed)
            self._keep_or_log(guild_id, revisions, error)
            return ()
        self._write_backoff.reset()
        if pairs:
            if now() > self._not_before + LONGEST_PAUSE:
                self._revision_backoff.reset()
            self._not_before = now() + self._revision_backoff.pause()
        return pairs

    def _keep_or_log(self, guild_id: int | None, revisions: Sequence[Revision], error: Exception) -> None:
        """Keep failed revisions for another try if the archive could not be written; else log that they are lost."""
        is_unwritable = isinstance(error, archive_files.ArchiveUnwritable | OSError)
        if not is_unwritable or self._ended.is_set() or len(revisions) > MAX_WAITING:
            log_unrevised((each.subject for each in revisions), error)
            return
        self._by_guild[guild_id] = by_message(revisions) | self._by_guild.get(guild_id, {})
        pause = self._write_backoff.pause()
        self._not_before = now() + pause
        log.warning("what was deleted, edited or doubted: %s; tried again in %g s", error, pause)


RevisionKey = tuple[int | str, bool, bool]
"""Tells revisions apart: an id, whether it is doubted, and whether it is a place. A thread may have the id of the
message that it was opened on.
"""


def by_message(revisions: Iterable[Revision]) -> dict[RevisionKey, Revision]:
    return {(each.subject, each.is_doubt, each.is_place): each for each in revisions}


def ids_of(event: Change) -> Iterable[int | str]:
    match event:
        case Deleted(message_ids=message_ids):
            return message_ids
        case PlaceGone(place_id=place_id):
            return (place_id,)
        case DoubtedPair(pair_id=pair_id):
            return (pair_id,)
        case _:
            return (event.message_id,)


def log_unrevised(ids: Iterable[int | str], error: Exception) -> None:
    log.error(
        "messages, channels or pairs %s were deleted, edited or doubted, and what was captured stays: %s; "
        "see --kb remove",
        ", ".join(map(str, ids)),
        error,
        exc_info=None if is_expected(error) else error,
    )


def late_pairs(images: ImageServices, outcomes: Observable[Outcome]) -> Observable[Pair]:
    """Emit the pairs that could only be stored by a later try, until `outcomes` end."""
    ended = outcomes.pipe(ops.ignore_elements(), ops.concat(rx.of(None)))

    def retry(_: object) -> Observable[Pair]:
        pairs = retry_pending(images.pending, images.summarise, images.store_late, images.withheld)
        return unfold(lambda: anext(pairs, None))

    rounds = ticks(images.tick_seconds, idle=images.pending.is_empty, wake=outcomes)
    return rounds.pipe(coalesce(retry), ops.take_until(ended))


def capture_outcomes(
    jobs: Observable[CaptureJob],
    context: Context,
    store: Store,
    gauge: Gauge | None,
    images: Servers[ImageServices | None],
    *,
    may_wait: bool,
) -> Observable[Outcome]:
    """Emit one outcome for each job: extract it, summarise its images, store it in the archive."""

    async def summarise_images(extracted: ExtractedCapture) -> ExtractedCapture | Outcome:
        services = images[extracted.job.part.guild_id]
        if services is None or not extracted.image_refs:
            return extracted
        capture = await services.summarise(PendingCapture(now(), extracted.capture, extracted.image_refs))
        return replace(extracted, capture=capture)

    async def archive(extracted: ExtractedCapture) -> Outcome:
        token, task, backoff = extracted.job.token, asyncio.current_task(), Backoff()
        assert task is not None  # noqa: S101 (tells the type checker)
        while True:
            # A shutdown does not cut off a write: it waits for its end.
            token.detach()
            try:
                return await store(extracted.capture)
            except archive_files.ArchiveUnwritable as error:
                if not may_wait:
                    raise
                pause = backoff.pause()
                log.warning("%s; tried again in %g s", error, pause)
            token.attach(task.cancel)
            await asyncio.sleep(pause)

    return jobs.pipe(
        capture_step("extract", extract_patiently(context) if may_wait else extract(context), EXTRACTED_AT_ONCE, gauge),
        capture_step("summarise_images", summarise_images, SUMMARISED_AT_ONCE, gauge),
        capture_step("archive", archive, STORED_AT_ONCE, gauge),
    )


def extract_patiently(context: Context) -> Callable[[CaptureJob], Coroutine[Any, Any, ExtractedCapture | Outcome]]:
    """Like `extract`, which is tried again for a while if Discord cannot be asked now."""
    extract_once = extract(context)

    async def extracted(job: CaptureJob) -> ExtractedCapture | Outcome:
        backoff, until = Backoff(longest=LONGEST_LOOKUP_PAUSE), loop_time() + LOOKUP_PATIENCE
        while True:
            try:
                return await extract_once(job)
            except LookupFailed as error:
                pause = backoff.pause()
                if not error.is_passing or loop_time() + pause > until:
                    raise
                log.warning("a capture waits: %s; tried again in %g s", error, pause)
            await asyncio.sleep(pause)

    return extracted


def capture_step(
    name: str, fn: Callable[[T], Coroutine[Any, Any, R]], max_concurrent: int, gauge: Gauge | None
) -> Callable[[Observable[T | Outcome]], Observable[R | Outcome]]:
    """Await `fn` for each job, in order; outcomes pass through. If `fn` fails, the job ends with an outcome."""

    def job_of(each: T) -> CaptureJob:
        return each if isinstance(each, CaptureJob) else each.job

    async def run(each: T) -> R | Outcome:
        current_part.set(job_of(each).part)
        return await fn(each)

    def failed(each: T, error: Exception) -> R | Outcome:
        return failure_of(job_of(each).part, name, error)

    return pass_through(
        Outcome,
        map_async(
            run,
            on_failure=failed,
            max_concurrent=max_concurrent,
            ordered=max_concurrent > 1,
            token=lambda each: job_of(each).token,
            gauge=operator_gauge(gauge, name),
            watch=operator_watch(gauge, name),
        ),
    )
