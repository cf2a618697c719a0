"""Whether a pattern can be made to cost more than in proportion to a text: pumped, in time and in memory."""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Iterable

from tests.patterns.finding import SEARCHED
from tests.patterns.growth import cost
from tests.patterns.pumping import Pump, pumps, ways

LONGEST = 100_000
_SHORT, _LONGER = 200, 1600
_STEPS = (8_000, LONGEST)
_FEW = (12, 24, 36, 50, 400)
_RUNAWAY = 0.03
"""Seconds: what takes so long with so few characters is exponential, or grows with their third power."""
_SLOWER = 3.5
"""How many times the cost of a character may grow while the text grows by 8 or 100 times: noise included."""
_LEAST = 1e-8
"""Seconds a character: what is cheaper is measured as so much."""
_EACH, _ALL = re.compile("."), "a" * LONGEST
_FEW_WAYS = 1_000
"""A pattern that can match in no more ways than these costs at most so many steps at each place of a text."""
_DEAREST = 5
_LOOKS = 4
"""The dearest pattern that is bounded costs 1.5 looks on one processor, and beyond 1.7 on another."""
_REPEATS_MORE_THAN_A_CHARACTER = re.compile(r"(?:\)|\\\d)(?:[*+]|\{\d*,)")
"""A repeated character needs no memory."""
_PER_CHAR = 8
"""Bytes that a character more may cost: the text itself is not counted."""


def steep(pattern: re.Pattern[str], methods: Iterable[str]) -> Pump | None:
    """A pump with which the pattern's time grows faster than the text."""
    if ways(pattern) <= _FEW_WAYS:
        return None
    run = _Run(pattern, frozenset(methods))
    screened: list[tuple[float, float, Pump]] = []
    for pump in pumps(pattern):
        if any(run.cost(pump.text(chars), 1) > _RUNAWAY for chars in _FEW):
            return pump
        short, longer = (run.cost(pump.text(chars), 1) for chars in (_SHORT, _LONGER))
        if longer > 3 * _RUNAWAY:
            return pump
        screened.append((longer / max(short, _LEAST * _SHORT), longer, pump))
    by_growth = sorted(screened, key=lambda each: -each[0])[:3]
    dearest = sorted(screened, key=lambda each: -each[1])[:1]
    for *_, pump in [*by_growth, *dearest]:
        if run.cost(pump.text(_STEPS[0]), 1) > 10 * _RUNAWAY or all(
            _grows(run, pump, attempts) for attempts in (1, 3, 8)
        ):
            return pump
    return None


def _grows(run: _Run, pump: Pump, attempts: int) -> bool:
    """Whether the cost of a character rises. Noise only adds to a cost: what looks steep is measured more often."""
    text = pump.text(1000)
    base = max(run.cost(text, attempts + 2) / len(text), _LEAST)
    return any(run.cost(text, attempts) / len(text) > _SLOWER * base for text in map(pump.text, _STEPS))


def hungry(pattern: re.Pattern[str], methods: Iterable[str]) -> Pump | None:
    """A pump with which the memory that a match needs grows with the text."""
    if not _REPEATS_MORE_THAN_A_CHARACTER.search(pattern.pattern):
        return None
    run, tried = _Run(pattern, frozenset(methods)), pumps(pattern)
    tracemalloc.start()
    try:
        for pump in tried:
            if run.peak(pump.text(_LONGER)) > 2 * _PER_CHAR * _LONGER:
                short, long = pump.text(LONGEST // 2), pump.text(LONGEST)
                if run.peak(long) - run.peak(short) > _PER_CHAR * (len(long) - len(short)):
                    return pump
    finally:
        tracemalloc.stop()
    return None


def dear(pattern: re.Pattern[str], methods: Iterable[str], chars: int) -> Pump | None:
    """A pump of `chars` characters that costs more than to look `_LOOKS` times at each of `LONGEST` characters."""
    run = _Run(pattern, frozenset(methods))
    short = sorted(((run.cost(pump.text(chars // 4), 1), pump) for pump in pumps(pattern)), reverse=True)
    for _, pump in short[:_DEAREST]:
        if all(_is_dear(run, pump.text(chars), attempts) for attempts in (1, 3, 8)):
            return pump
    return None


def _is_dear(run: _Run, text: str, attempts: int) -> bool:
    return run.cost(text, attempts) > _LOOKS * cost(_look_at_each, attempts)


def _look_at_each() -> None:
    for _ in _EACH.finditer(_ALL):
        pass


class _Run:
    """One pattern, asked as the product asks it."""

    def __init__(self, pattern: re.Pattern[str], methods: frozenset[str]) -> None:
        self._pattern, self._methods = pattern, methods

    def __call__(self, text: str) -> None:
        if SEARCHED in self._methods:
            for _ in self._pattern.finditer(text):
                pass
        if "match" in self._methods:
            self._pattern.match(text)
        if "fullmatch" in self._methods:
            self._pattern.fullmatch(text)

    def cost(self, text: str, attempts: int) -> float:
        return cost(lambda: self(text), attempts)

    def peak(self, text: str) -> int:
        """In bytes, while memory is traced."""
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        self(text)
        return tracemalloc.get_traced_memory()[1] - before
