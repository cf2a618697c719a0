"""Outcomes in the order in which windows closed, whatever order they were decided in."""

from __future__ import annotations

from collections.abc import Callable

from model.outcomes import Ignored, Outcome, Result


class InOrder:
    """Holds outcomes back until every earlier part has its result.

    Parts are numbered without gaps when they are cut, and each ends once, as an `Outcome` or an `Ignored`.
    """

    def __init__(self, write: Callable[[Outcome], object]) -> None:
        self._write = write
        self._next = 1
        self._early: dict[int, Outcome | None] = {}

    def add(self, result: Result) -> None:
        match result:
            case Outcome(part=part):
                self._early[part.number] = result
            case Ignored(part_number=int(number)):
                self._early[number] = None
            case _:
                return
        while self._next in self._early:
            self._release(self._next)
            self._next += 1

    def flush(self) -> None:
        """Write what is still held back, when a run was cut off."""
        for number in sorted(self._early):
            self._release(number)

    def _release(self, number: int) -> None:
        outcome = self._early.pop(number)
        if outcome is not None:
            self._write(outcome)
