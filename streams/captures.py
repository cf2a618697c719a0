"""What the team writes, on its way to the archive."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any

import reactivex as rx
from reactivex import Observable
from reactivex import operators as ops

from clock import now
from model.outcomes import Outcome
from operators import map_async, pass_through, unfold
from operators.coalesce import coalesce
from operators.extract import Extracted, extract
from operators.retry_pending import retry_pending
from operators.step import Gauge, failure_of, named
from services.assistant import CaptureJob
from services.conversations import Context
from services.team import Capture, Pair, PendingFolder, Waiting
from services.telemetry import about
from streams.ticks import ticks

EXTRACTED_AT_ONCE = 16
"""Captures whose conversations may be looked up side by side."""
PUT_INTO_WORDS_AT_ONCE = 4
"""Captures whose images may be looked at side by side."""


@dataclass(frozen=True, slots=True)
class Images:
    """Whom the images of captures are given to."""

    summarised: Callable[[Waiting], Coroutine[Any, Any, Capture]]
    """`operators.summarise_images`: puts those aside with whom it fails."""
    pending: PendingFolder
    keep_late: Callable[[Capture], Coroutine[Any, Any, Pair | None]]
    """Stores those who had to wait."""
    withheld: Callable[[int, str], bool]
    """Which author's text is not to be captured any more."""
    tick_seconds: float = 300.0


def captures(
    parts: Observable[CaptureJob],
    context: Context,
    archive: Callable[[Capture], Coroutine[Any, Any, Outcome]],
    images: Images | None = None,
    gauge: Gauge | None = None,
) -> Observable[Outcome | Pair]:
    """One outcome for each job, and the pairs that could be stored only long after theirs. None is ever dropped,
    however many wait.

    parts             --t1-t2-t3----------------|
    extract           ------t1-o2-t3------------|      side by side, leaving in order; nothing to learn from t2
    summarise images  --------t1-----o3---------|      as above; t3's could not be had, and it waits in a file
    archive           ----------c1-----p3-------|      one at a time, in order; p3 came with a later try
    """
    outcomes = fresh(parts, context, archive, gauge, images)
    if images is None:
        return outcomes
    shared = outcomes.pipe(ops.share())
    ended = shared.pipe(ops.ignore_elements(), ops.concat(rx.of(None)))
    return rx.merge(late(ticks(images.tick_seconds), images).pipe(ops.take_until(ended)), shared)


def fresh(
    parts: Observable[CaptureJob],
    context: Context,
    archive: Callable[[Capture], Coroutine[Any, Any, Outcome]],
    gauge: Gauge | None,
    images: Images | None,
) -> Observable[Outcome]:
    gathering = extract(context)

    async def gathered(job: CaptureJob) -> Extracted | Outcome:
        about.set(job.part)
        return await gathering(job)

    async def worded(extracted: Extracted) -> Extracted | Outcome:
        about.set(extracted.job.part)
        if images is None or not extracted.pictures:
            return extracted
        capture = await images.summarised(Waiting(now(), extracted.capture, extracted.pictures))
        return replace(extracted, capture=capture)

    async def kept(extracted: Extracted) -> Outcome:
        about.set(extracted.job.part)
        # From here on it is stored or it is not: a shutdown waits for a write that has begun.
        extracted.job.token.detach()
        return await archive(extracted.capture)

    return parts.pipe(
        map_async(
            gathered,
            on_failure=lambda job, error: failure_of(job.part, "extract", error),
            max_concurrent=EXTRACTED_AT_ONCE,
            ordered=True,
            token=lambda job: job.token,
            gauge=named(gauge, "extract"),
        ),
        pass_through(
            Outcome,
            map_async(
                worded,
                on_failure=lambda extracted, error: failure_of(extracted.job.part, "summarise_images", error),
                max_concurrent=PUT_INTO_WORDS_AT_ONCE,
                ordered=True,
                token=lambda extracted: extracted.job.token,
                gauge=named(gauge, "summarise_images"),
            ),
        ),
        pass_through(
            Outcome,
            map_async(
                kept,
                on_failure=lambda extracted, error: failure_of(extracted.job.part, "archive", error),
                max_concurrent=1,
                token=lambda extracted: extracted.job.token,
                gauge=named(gauge, "archive"),
            ),
        ),
    )


def late(triggers: Observable[object], images: Images) -> Observable[Pair]:
    """At each trigger another try for the captures that wait; what could be stored."""
    begin = retry_pending(images.pending, images.summarised, images.keep_late, images.withheld)
    return triggers.pipe(coalesce(lambda _: unfold(begin())))
