"""What the team writes, on its way to the archive."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import reactivex as rx
from reactivex import Observable
from reactivex import operators as ops

from clock import now
from model.outcomes import Outcome
from operators import map_async, pass_through, unfold
from operators.coalesce import coalesce
from operators.extract import Extracted, extract
from operators.retry_pending import retry_pending
from operators.step import Gauge, failure_of, ignore
from services.assistant import Lesson
from services.conversations import Context
from services.team import Capture, Pair, PendingFolder, Waiting
from services.telemetry import about
from streams.ticks import ticks

T = TypeVar("T", Lesson, Extracted)
R = TypeVar("R")

EXTRACTED_AT_ONCE = 16
DESCRIBED_AT_ONCE = 4  # lessons whose images are described at the same time


@dataclass(frozen=True, slots=True)
class Images:
    """How the images of captures are described.

    Attributes:
        summarised: `operators.summarise_images`, which saves a capture in `pending` if it fails.
        keep_late: stores those that had to wait.
        withheld: whether an author's text must not be captured any more.
    """

    summarised: Callable[[Waiting], Coroutine[Any, Any, Capture]]
    pending: PendingFolder
    keep_late: Callable[[Capture], Coroutine[Any, Any, Pair | None]]
    withheld: Callable[[int, str], bool]
    tick_seconds: float = 300.0


def lessons(
    parts: Observable[Lesson],
    context: Context,
    archive: Callable[[Capture], Coroutine[Any, Any, Outcome]],
    images: Images | None = None,
    gauge: Gauge = ignore,
) -> Observable[Outcome | Pair]:
    """One outcome for each lesson, and the pairs that could only be stored long after theirs. No lesson is ever
    dropped, however many wait.

    parts             --t1-t2-t3----------------|
    extract           ------t1-o2-t3------------|      concurrently, in order; nothing to learn from t2
    summarise images  --------t1-----o3---------|      likewise; t3's could not be loaded, and it waits in a file
    archive           ----------c1-----p3-------|      one at a time, in order; p3 came with a later try
    """
    outcomes = fresh(parts, context, archive, gauge, images)
    if images is None:
        return outcomes
    shared = outcomes.pipe(ops.share())
    ended = shared.pipe(ops.ignore_elements(), ops.concat(rx.of(None)))
    begin = retry_pending(images.pending, images.summarised, images.keep_late, images.withheld)
    late = ticks(images.tick_seconds).pipe(coalesce(lambda _: unfold(begin())), ops.take_until(ended))
    return rx.merge(late, shared)


def fresh(
    parts: Observable[Lesson],
    context: Context,
    archive: Callable[[Capture], Coroutine[Any, Any, Outcome]],
    gauge: Gauge,
    images: Images | None,
) -> Observable[Outcome]:
    async def worded(extracted: Extracted) -> Extracted | Outcome:
        if images is None or not extracted.pictures:
            return extracted
        capture = await images.summarised(Waiting(now(), extracted.capture, extracted.pictures))
        return replace(extracted, capture=capture)

    async def kept(extracted: Extracted) -> Outcome:
        # From here on it is stored or it is not: a shutdown waits for a write that has begun.
        extracted.lesson.token.detach()
        return await archive(extracted.capture)

    return parts.pipe(
        lesson_step("extract", extract(context), EXTRACTED_AT_ONCE, gauge),
        lesson_step("summarise_images", worded, DESCRIBED_AT_ONCE, gauge),
        lesson_step("archive", kept, 1, gauge),
    )


def lesson_step(
    name: str, fn: Callable[[T], Coroutine[Any, Any, R]], max_concurrent: int, gauge: Gauge
) -> Callable[[Observable[T | Outcome]], Observable[R | Outcome]]:
    """Await `fn` for each lesson, keeping their order, and let outcomes by; one that fails ends as an outcome."""

    def lesson_of(each: T) -> Lesson:
        return each if isinstance(each, Lesson) else each.lesson

    async def begun(each: T) -> R | Outcome:
        about.set(lesson_of(each).part)
        return await fn(each)

    def failed(each: T, error: Exception) -> R | Outcome:
        return failure_of(lesson_of(each).part, name, error)

    return pass_through(
        Outcome,
        map_async(
            begun,
            on_failure=failed,
            max_concurrent=max_concurrent,
            ordered=max_concurrent > 1,
            token=lambda each: lesson_of(each).token,
            gauge=lambda count: gauge(name, count),
        ),
    )
