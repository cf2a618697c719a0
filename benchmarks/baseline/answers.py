"""Questions in, verified answers out."""

from __future__ import annotations

from reactivex import Observable
from reactivex import operators as ops

from benchmarks.baseline.map_async import map_async
from benchmarks.baseline.model import Batch, Turn
from benchmarks.baseline.ports import Assistant
from benchmarks.baseline.present import present

IN_FLIGHT = 16


def answers(questions: Observable[Batch], assistant: Assistant) -> Observable[Turn]:
    """Answer what deserves an answer.

    questions  --q1----q2----q3----|
    asked      ----q1----------q3--|      q2 was chatter
    answers    ----------a1--------|      a3 failed verification
    """
    asked = questions.pipe(
        ops.map(Turn),
        map_async(assistant.gate, max_concurrent=IN_FLIGHT),
        present,
    )
    informed = asked.pipe(
        map_async(assistant.select, max_concurrent=IN_FLIGHT),
        present,
        map_async(assistant.load, max_concurrent=IN_FLIGHT),
    )
    return informed.pipe(
        map_async(assistant.generate, max_concurrent=IN_FLIGHT),
        map_async(assistant.verify, max_concurrent=IN_FLIGHT),
        present,
    )
