"""What the team writes, on its way to the archive."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from reactivex import Observable

from model.outcomes import Outcome
from operators import map_async
from operators.inquiry import Lesson
from operators.step import failure_of


def lessons(
    parts: Observable[Lesson], archive: Callable[[Lesson], Coroutine[Any, Any, Outcome]]
) -> Observable[Outcome]:
    """One outcome for each lesson, oldest first, one at a time. None is ever dropped.

    parts    --t1-t2---------|
    lessons  ----c1-c2-------|
    """

    def failed(lesson: Lesson, error: Exception) -> Outcome:
        return failure_of(lesson.part, "archive", error)

    return parts.pipe(map_async(archive, on_failure=failed, max_concurrent=1))
