"""What takes more memory at the end of one day of the soak than at the end of another, by where it was allocated."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

FRAMES = 3
SHOWN = 60
HERE = Path(__file__).parents[1]


@dataclass(slots=True)
class Grown:
    """Looks from its making on, which makes the run twice as long and its resident memory meaningless.

    Attributes:
        first, last: the days whose ends are compared.
    """

    first: int
    last: int
    show: Callable[[str], object]
    _before: tracemalloc.Snapshot | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        tracemalloc.start(FRAMES)

    def look(self, day: int) -> None:
        """At the end of a day."""
        if day not in {self.first, self.last}:
            return
        gc.collect()
        seen = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(False, tracemalloc.__file__)])
        if self._before is None:
            self._before = seen
            return
        for line in lines(self._before, seen, self.last - self.first):
            self.show(line)
        tracemalloc.stop()


def lines(before: tracemalloc.Snapshot, after: tracemalloc.Snapshot, days: int) -> list[str]:
    """Bytes and objects a day, and whence: the innermost place first."""
    grown = sorted(after.compare_to(before, "traceback"), key=lambda each: -each.size_diff)[:SHOWN]
    total = sum(each.size_diff for each in after.compare_to(before, "filename"))
    told = [
        f"{each.size_diff / days / 1000:8.1f} kB {each.count_diff / days:8.1f}  "
        + " < ".join(f"{_short(frame.filename)}:{frame.lineno}" for frame in reversed(each.traceback))
        for each in grown
    ]
    return [f"{total / days / 1e6:.2f} MB a day more, most of it from", *told]


def _short(name: str) -> str:
    return name.removeprefix(f"{HERE}/").rpartition("site-packages/")[2]
