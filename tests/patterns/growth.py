"""How the cost of something grows with its input: in time of the processor, which others on the machine do not add to,
and in memory. Costs are compared with each other, never with a number of seconds.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from time import thread_time

TIMES = 4
"""How much longer each input is than the one before."""
STEEP = 9.0
"""What is linear costs 4 times as much, what is quadratic 16 times."""
_ATTEMPTS = 4


def cost(action: Callable[[], object], attempts: int = 2) -> float:
    """In seconds of this thread's processor time: the least of several, as noise only adds to it."""
    costs: list[float] = []
    for _ in range(attempts):
        begun = thread_time()
        action()
        costs.append(thread_time() - begun)
    return min(costs)


def growth(work: Callable[[str], object], made: Callable[[int], str], size: int) -> float:
    """How much more `work` costs with `made(4 * size)` than with `made(size)`. Measured anew while it looks steep."""
    short, long = made(size), made(TIMES * size)
    found = float("inf")
    for _ in range(_ATTEMPTS):
        found = min(found, cost(lambda: work(long)) / max(cost(lambda: work(short)), 1e-5))
        if found < STEEP:
            break
    return found


def peak(action: Callable[[], object]) -> int:
    """How many bytes more are in use at once while `action` runs. Deterministic: Python's own count."""
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        action()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
