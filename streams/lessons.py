"""What the team writes, on its way to the archive."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from reactivex import Observable

from model.outcomes import Outcome
from operators import bypass, map_async
from operators.extract import Extracted, extract
from operators.inquiry import Lesson
from operators.step import Gauge, failure_of, ignore
from services.captures import Capture
from services.context import Context
from services.logs import about

EXTRACTED_AT_ONCE = 16
"""Lessons whose conversations may be looked up side by side."""


def lessons(
    parts: Observable[Lesson],
    context: Context,
    archive: Callable[[Capture], Coroutine[Any, Any, Outcome]],
    gauge: Gauge = ignore,
) -> Observable[Outcome]:
    """One outcome for each lesson. None is ever dropped, however many wait.

    parts    --t1-t2-t3-----------|
    extract  ------t1-o2-t3-------|      side by side, leaving in order; nothing to learn from t2
    archive  --------c1-----c3----|      one at a time, in order
    """
    gathering = extract(context)

    async def gathered(lesson: Lesson) -> Extracted | Outcome:
        about.set(lesson.part)
        return await gathering(lesson)

    async def kept(extracted: Extracted) -> Outcome:
        about.set(extracted.lesson.part)
        # From here on it is stored or it is not: a shutdown waits for a write that has begun.
        extracted.lesson.token.detach()
        return await archive(extracted.capture)

    return parts.pipe(
        map_async(
            gathered,
            on_failure=lambda lesson, error: failure_of(lesson.part, "extract", error),
            max_concurrent=EXTRACTED_AT_ONCE,
            ordered=True,
            token=lambda lesson: lesson.token,
            gauge=lambda count: gauge("extract", count),
        ),
        bypass(
            Outcome,
            map_async(
                kept,
                on_failure=lambda extracted, error: failure_of(extracted.lesson.part, "archive", error),
                max_concurrent=1,
                token=lambda extracted: extracted.lesson.token,
                gauge=lambda count: gauge("archive", count),
            ),
        ),
    )
