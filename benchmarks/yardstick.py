"""How fast this machine is now, so that a limit in seconds says the same on every machine.

A limit is written in seconds of a machine on which ten million squares take `REFERENCE_SECONDS`. Here they are timed in
the same run, and the limit grows or shrinks with them: `limit_of_cpu` for CPU time, `limit_of_wall` for real time,
which a quota of CPU stretches too, and `limit_of_a_pause` for the longest time in which nothing happened.
"""

from __future__ import annotations

import time
from functools import cache
from typing import NamedTuple

SQUARES, PIECES = 10_000_000, 500
REFERENCE_SECONDS = 0.52
RUNS = 3


class Slowness(NamedTuple):
    """What the machine makes of the squares."""

    cpu: float
    """How many times as much CPU the squares take."""
    wall: float
    """How many times as long they take."""
    pause: float
    """The longest time for which the machine did something else meanwhile, in seconds."""


def limit_of_cpu(seconds: float) -> float:
    """Return the limit on this machine, in seconds of CPU."""
    return seconds * slowness().cpu


def limit_of_wall(seconds: float) -> float:
    """Return the limit on this machine, in seconds of real time."""
    return seconds * slowness().wall


def limit_of_a_pause(seconds: float) -> float:
    """Return how long a pause may be on this machine, in seconds of real time: what work may take, and a pause that
    squares meet as well.
    """
    return limit_of_cpu(seconds) + slowness().pause


@cache
def slowness() -> Slowness:
    """Time the squares; each figure is the best of three runs. Once for a process, at the first call."""
    runs = [timed_squares() for _ in range(RUNS)]
    cpu, wall, pause = (min(figures) for figures in zip(*runs, strict=True))
    found = Slowness(cpu / REFERENCE_SECONDS, wall / REFERENCE_SECONDS, pause)
    print(
        f"yardstick: {SQUARES:,} squares take {found.cpu:.2f} times the CPU of the reference and {found.wall:.2f} "
        f"times as long, with a pause of {found.pause * 1000:.0f} ms"
    )
    return found


def timed_squares() -> tuple[float, float, float]:
    """Return the CPU seconds and the real seconds of one run, and its longest pause."""
    began = was = time.thread_time(), time.perf_counter()
    longest, total = 0.0, 0
    for piece in range(PIECES):
        for number in range(piece, SQUARES, PIECES):
            total += number * number
        at = time.thread_time(), time.perf_counter()
        longest = max(longest, (at[1] - was[1]) - (at[0] - was[0]))
        was = at
    return was[0] - began[0], was[1] - began[1], longest
