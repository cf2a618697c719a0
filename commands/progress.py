"""How far a long piece of work is: a bar on a terminal, a line every ten seconds elsewhere."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from services.telemetry import number_of

LINE_SECONDS = 10.0
MINUTE = 60
BAR_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Count:
    """`total`: None while it is unknown; `unit`: what one of them is called, such as `message`; `more`: a remark."""

    done: int
    total: int | None
    unit: str
    more: str = ""

    def __str__(self) -> str:
        total = number_of(self.done if self.total is None else self.total, self.unit)
        return (total if self.total is None else f"{self.done} of {total}") + (f", {self.more}" if self.more else "")


class Pace:
    """How fast work goes, from the first count on that it is told."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began: float | None = None
        self._there = 0  # what an earlier run had done

    def left(self, count: Count) -> float | None:
        """The seconds that are left at this pace; None while there is none, or no end is known."""
        now = self._clock()
        if self._began is None:
            self._began, self._there = now, count.done
        done = count.done - self._there
        if count.total is None or not done:
            return None
        return (now - self._began) / done * (count.total - count.done)


def in_words(seconds: float) -> str:
    """`about 40 s`, `about 12 min`, `about 1 h 5 min`; never less than was meant."""
    if seconds <= MINUTE:
        return f"about {math.ceil(seconds)} s"
    hours, minutes = divmod(math.ceil(seconds / MINUTE), 60)
    return "about " + (f"{hours} h {minutes} min" if hours else f"{minutes} min")


@contextmanager
def counted(console: Console, count: Callable[[], Count], pace: Pace | None = None) -> Generator[None]:
    """Show `count` on `console` while the block runs, and how long the rest will take.

    It is called from a thread, since the block's clock may be a virtual one: it must only read numbers.
    """
    with _bar(console) if console.is_terminal else _lines(console) as (show, seconds):
        stop = threading.Event()
        pace = pace or Pace()
        pace.left(count())

        def keep_showing() -> None:
            while not stop.wait(seconds):
                known = count()
                left = pace.left(known)
                show(known, str(known) if not left else f"{known}, {in_words(left)} left")

        thread = threading.Thread(target=keep_showing, name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


_Display = tuple[Callable[[Count, str], None], float]
"""What shows a count, and in words; and every how many seconds."""


@contextmanager
def _lines(console: Console) -> Generator[_Display]:
    yield lambda _, text: console.print(text, soft_wrap=True, highlight=False, markup=False), LINE_SECONDS


@contextmanager
def _bar(console: Console) -> Generator[_Display]:
    columns = (BarColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield (
            lambda count, text: bar.update(task, completed=count.done, total=count.total, description=text),
            BAR_SECONDS,
        )
