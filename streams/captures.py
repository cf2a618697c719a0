"""The branch that captures what the team writes, up to the archive."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import reactivex as rx
from reactivex import Observable
from reactivex import operators as ops

from clock import now
from clock.timeouts import Backoff
from dataflow import map_async, pass_through, unfold
from dataflow.metering import Gauge, named, watched
from dataflow.triggering import coalesce
from model.outcomes import Outcome
from model.servers import Servers
from operators.capturing import Extracted, extract, retry_pending, without_withdrawn
from operators.step import failure_of
from services.assistant import CaptureJob
from services.conversations import Context, PersonalWork
from services.team import Capture, CapturedMessage, Pair, PendingCapture, PendingFolder, archive_files
from services.telemetry import current_part
from streams.ticks import ticks

T = TypeVar("T", CaptureJob, Extracted)
R = TypeVar("R")

EXTRACTED_AT_ONCE = 16
STORED_AT_ONCE = 64  # captures that wait for the archive, which writes them together
DESCRIBED_AT_ONCE = 4  # captures whose images are described at the same time

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Images:
    """How the images of captures are described.

    Attributes:
        summarised: `operators.capturing.summarise_images`, which saves a capture in `pending` if it fails.
        keep_late: stores those that had to wait.
        withheld: whether a message must not be captured any more.
    """

    summarised: Callable[[PendingCapture], Coroutine[Any, Any, Capture]]
    pending: PendingFolder
    keep_late: Callable[[Capture], Coroutine[Any, Any, Pair | None]]
    withheld: Callable[[CapturedMessage], bool]
    tick_seconds: float = 300.0

    def heeding(self, personal: PersonalWork) -> Images:
        """Return the same, which describes no images for somebody who withdraws meanwhile what they said."""
        return replace(self, summarised=without_withdrawn(self.summarised, self.withheld, personal))


NO_IMAGES = Servers[Images | None]({None: None})


def captures(
    parts: Observable[CaptureJob],
    context: Context,
    archive: Callable[[Capture], Coroutine[Any, Any, Outcome]],
    images: Servers[Images | None] = NO_IMAGES,
    gauge: Gauge | None = None,
    *,
    may_wait: bool = True,
) -> Observable[Outcome | Pair]:
    """One outcome for each job, and the pairs that could only be stored long after theirs. No job is ever
    dropped, however many wait.

    parts             --t1-t2-t3----------------|
    extract           ------t1-o2-t3------------|      concurrently, in order; nothing to learn from t2
    summarise images  --------t1-----o3---------|      likewise; t3's could not be loaded, and it waits in a file
    archive           ----------c1-----p3-------|      together, in order; p3 came with a later try

    While the archive cannot be written (a full disk), captures wait and have no outcome; a shutdown calls them off, and
    catch-up brings their messages again. Without `may_wait`, as in a replay or an import, they fail at once.
    """
    outcomes = fresh(parts, context, archive, gauge, images, may_wait=may_wait)
    described = [each for each in images.values() if each is not None]
    if not described:
        return outcomes
    shared = outcomes.pipe(ops.share())
    return rx.merge(*(late(each, shared) for each in described), shared)


def store_remote_captures(
    remote_captures: Observable[Capture], archive: Callable[[Capture], Coroutine[Any, Any, Outcome]]
) -> Observable[Outcome]:
    """Store captures that other processes have made, in order; one outcome for each.

    remote_captures  --c1-c2-------|
    archive          -----o1-o2----|
    """

    def failed(capture: Capture, error: Exception) -> Outcome:
        assert capture.part is not None, "what is handed over has its part"  # noqa: S101 (for the type checker)
        return failure_of(capture.part, "archive", error)

    return remote_captures.pipe(map_async(archive, on_failure=failed, max_concurrent=STORED_AT_ONCE, ordered=True))


def late(images: Images, outcomes: Observable[Outcome]) -> Observable[Pair]:
    """Emit the pairs that could only be stored by a later try, until `outcomes` end."""
    ended = outcomes.pipe(ops.ignore_elements(), ops.concat(rx.of(None)))
    begin = retry_pending(images.pending, images.summarised, images.keep_late, images.withheld)
    rounds = ticks(images.tick_seconds, idle=images.pending.is_empty, wake=outcomes)
    return rounds.pipe(coalesce(lambda _: unfold(begin())), ops.take_until(ended))


def fresh(
    parts: Observable[CaptureJob],
    context: Context,
    archive: Callable[[Capture], Coroutine[Any, Any, Outcome]],
    gauge: Gauge | None,
    images: Servers[Images | None],
    *,
    may_wait: bool,
) -> Observable[Outcome]:
    async def worded(extracted: Extracted) -> Extracted | Outcome:
        here = images[extracted.job.part.guild_id]
        if here is None or not extracted.image_refs:
            return extracted
        capture = await here.summarised(PendingCapture(now(), extracted.capture, extracted.image_refs))
        return replace(extracted, capture=capture)

    async def store(extracted: Extracted) -> Outcome:
        token, task, backoff = extracted.job.token, asyncio.current_task(), Backoff()
        assert task is not None  # noqa: S101 (tells the type checker)
        while True:
            # From here on it is stored or it is not: a shutdown waits for a write that has begun.
            token.detach()
            try:
                return await archive(extracted.capture)
            except archive_files.ArchiveUnwritable as error:
                if not may_wait:
                    raise
                pause = backoff.pause()
                log.warning("%s; tried again in %g s", error, pause)
            token.attach(task.cancel)
            await asyncio.sleep(pause)

    return parts.pipe(
        capture_step("extract", extract(context), EXTRACTED_AT_ONCE, gauge),
        capture_step("summarise_images", worded, DESCRIBED_AT_ONCE, gauge),
        capture_step("archive", store, STORED_AT_ONCE, gauge),
    )


def capture_step(
    name: str, fn: Callable[[T], Coroutine[Any, Any, R]], max_concurrent: int, gauge: Gauge | None
) -> Callable[[Observable[T | Outcome]], Observable[R | Outcome]]:
    """Await `fn` for each job, keeping their order, and let outcomes by; one that fails ends as an outcome."""

    def job_of(each: T) -> CaptureJob:
        return each if isinstance(each, CaptureJob) else each.job

    async def begun(each: T) -> R | Outcome:
        current_part.set(job_of(each).part)
        return await fn(each)

    def failed(each: T, error: Exception) -> R | Outcome:
        return failure_of(job_of(each).part, name, error)

    return pass_through(
        Outcome,
        map_async(
            begun,
            on_failure=failed,
            max_concurrent=max_concurrent,
            ordered=max_concurrent > 1,
            token=lambda each: job_of(each).token,
            gauge=named(gauge, name),
            watch=watched(gauge, name),
        ),
    )
