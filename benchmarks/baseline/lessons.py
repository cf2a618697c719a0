"""What the team writes becomes knowledge."""

from __future__ import annotations

from reactivex import Observable

from benchmarks.baseline.map_async import map_async
from benchmarks.baseline.model import Batch, Lesson
from benchmarks.baseline.ports import Scribe
from benchmarks.baseline.present import present


def lessons(team: Observable[Batch], scribe: Scribe) -> Observable[Lesson]:
    """Read several at once, but keep the order they were written in."""
    return team.pipe(
        map_async(scribe.describe_images, max_concurrent=4, ordered=True),
        map_async(scribe.extract, max_concurrent=4, ordered=True),
        present,
    )


def integrated(lessons: Observable[Lesson], scribe: Scribe) -> Observable[Lesson]:
    """Fold lessons into the knowledge base, strictly one after another."""
    return lessons.pipe(map_async(scribe.integrate, max_concurrent=1))
