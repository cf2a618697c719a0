"""What came of a sample, in figures."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

ENOUGH = 0.85
"""The share of mutants that the tests of an area have to kill."""

_Z = 1.959964
"""Standard deviations on either side that hold 95 % of a normal distribution."""

KILLED = 1
_SURVIVED = {0, 5, 33}
"""mutmut's codes: all tests passed; no test was found; no test reaches the function."""

_OUT_OF_TIME = {-24, 24, 36, 152, 255}


def chosen(names: Iterable[str], size: int, seed: int) -> list[str]:
    """`size` of the names, or all. Which ones follows from the seed and each name alone: where other code changes, the
    sample stays.
    """

    def place(name: str) -> bytes:
        return hashlib.sha256(f"{seed}:{name}".encode()).digest()

    return sorted(names, key=place)[:size]


def wilson(hits: int, tries: int) -> tuple[float, float]:
    """The 95 % interval of a share, after Wilson; (0, 1) where nothing was tried."""
    if tries == 0:
        return 0.0, 1.0
    share, weight = hits / tries, _Z * _Z / tries
    middle = share + weight / 2
    reach = _Z * math.sqrt(share * (1 - share) / tries + weight / tries / 4)
    return max(0.0, (middle - reach) / (1 + weight)), min(1.0, (middle + reach) / (1 + weight))


@dataclass(frozen=True)
class ResultCounts:
    """One area's sample.

    Attributes:
        of: how many mutants there are in all.
        killed: with those whose tests ran out of time, which `timed_out` counts.
        survivors: their names, in order.
    """

    area: str
    of: int
    run: int
    killed: int
    timed_out: int
    survivors: tuple[str, ...]

    @property
    def share(self) -> float:
        return self.killed / self.run if self.run else 0.0

    def line(self) -> str:
        low, high = wilson(self.killed, self.run)
        return (
            f"{self.area}: {self.of} mutants, {self.run} run, {self.killed} killed ({self.timed_out} by time), "
            f"{len(self.survivors)} survived: {self.share:.1%} (95 %: {low:.1%} to {high:.1%})"
        )


def tally(area: str, names: Iterable[str], exit_codes: Mapping[str, int | None]) -> ResultCounts:
    """`exit_codes`: mutmut's, of all mutants of the area. Raises ValueError: one of `names` was not run."""
    names = sorted(names)
    if missing := [name for name in names if exit_codes.get(name) is None]:
        raise ValueError(f"not run: {', '.join(missing)}")
    survivors = tuple(name for name in names if exit_codes[name] in _SURVIVED)
    timed_out = sum(exit_codes[name] in _OUT_OF_TIME for name in names)
    return ResultCounts(area, len(exit_codes), len(names), len(names) - len(survivors), timed_out, survivors)
