"""Compares the memory of the soak at the ends of two days, by type of object."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.soak_figures import resident_mb

SHOWN = 40


@dataclass(frozen=True, slots=True)
class Census:
    """How many objects of each type there are, and their bytes."""

    counts: Counter[str]
    sizes: Counter[str]

    @property
    def mb(self) -> float:
        return sum(self.sizes.values()) / 1e6


@dataclass(slots=True)
class Grown:
    """Counts objects at two days' ends, in some seconds each, without slowing what lies between.

    Attributes:
        first, last: the days whose ends are compared.
    """

    first: int
    last: int
    show: Callable[[str], object]
    _before: Census | None = field(default=None, init=False)

    def look(self, day: int) -> None:
        """At the end of a day."""
        if day not in {self.first, self.last}:
            return
        seen = census()
        if self._before is not None:
            for line in lines(self._before, seen, self.last - self.first):
                self.show(line)
        self._before = seen


def census() -> Census:
    """Count what the garbage collector knows, and all that these objects refer to, such as texts and numbers."""
    gc.collect()
    todo: list[object] = gc.get_objects()
    known = {id(todo), *map(id, todo)}
    counts, sizes = Counter[str](), Counter[str]()
    while todo:
        each = todo.pop()
        kind = type(each)
        name = f"{kind.__dict__.get('__module__', 'builtins')}.{kind.__qualname__}"
        counts[name] += 1
        sizes[name] += sys.getsizeof(each, 0)
        for other in gc.get_referents(each):
            if id(other) not in known:
                known.add(id(other))
                todo.append(other)
    return Census(counts, sizes)


def lines(before: Census, after: Census, days: int) -> list[str]:
    """Bytes and objects a day, the most first."""
    grown = sorted(after.sizes.keys(), key=lambda name: before.sizes[name] - after.sizes[name])[:SHOWN]
    more, resident = (after.mb - before.mb) / days, resident_mb()
    return [
        f"{more:.2f} MB a day more in objects, which take {after.mb:.0f} of {resident:.0f} MB, most of it of",
        *(
            f"{(after.sizes[name] - before.sizes[name]) / days / 1000:8.1f} kB"
            f" {(after.counts[name] - before.counts[name]) / days:8.1f}  {name}"
            for name in grown
        ),
    ]
