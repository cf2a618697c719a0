"""Shows the progress and the cost of long work: a bar on a terminal, otherwise a line every ten seconds."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from reporting.cost import Expense, Prices
from services.llm import Usage
from services.telemetry import number_of

LINE_SECONDS = 10.0
MINUTE = 60
BAR_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Count:
    """The progress of long work. `total`: None while unknown; `unit`: such as `message`; `more`: ends the line, such as
    the cost; `label`: the name of the work.
    """

    done: int
    total: int | None
    unit: str
    more: str = ""
    label: str = ""

    def __str__(self) -> str:
        return self.line()

    def line(self, pace: str = "") -> str:
        """Return one line. `pace`: follows the numbers."""
        total = number_of(self.done if self.total is None else self.total, self.unit)
        numbers = total if self.total is None else f"{self.done} of {total}"
        after = "".join(f", {each}" for each in (pace, self.more) if each)
        return (f"{self.label}: " if self.label else "") + numbers + after


class Pace:
    """Measures the speed of work."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began: float | None = None
        self._done_before = 0  # by an earlier run

    def unit_seconds(self, count: Count) -> float | None:
        """Return the seconds per unit; None while unknown."""
        now = self._clock()
        if self._began is None:
            self._began, self._done_before = now, count.done
        done = count.done - self._done_before
        return (now - self._began) / done if done else None

    def seconds_left(self, count: Count) -> float | None:
        """Return the seconds that the rest will take; None while unknown."""
        each = self.unit_seconds(count)
        return None if each is None or count.total is None else each * (count.total - count.done)

    def rate(self, count: Count) -> str:
        """Return the rate, such as `12 a minute` or `3.5 a second`; empty while unknown."""
        each = self.unit_seconds(count)
        if not each:
            return ""
        return f"{1 / each:.3g} a second" if each < 1 else f"{MINUTE / each:.2g} a minute"


def format_duration(seconds: float) -> str:
    """Return a duration such as `about 40 s`, `about 12 min` or `about 1 h 5 min`, rounded up."""
    if seconds <= MINUTE:
        return f"about {math.ceil(seconds)} s"
    hours, minutes = divmod(math.ceil(seconds / MINUTE), 60)
    return "about " + (f"{hours} h {minutes} min" if hours else f"{minutes} min")


@contextmanager
def show_progress(count: Callable[[], Count], console: Console | None = None) -> Generator[None]:
    """Show `count` while the block runs, and how long the rest will take. `console`: None: stderr.

    `count` is called from a thread, since the block's clock may be a virtual one: it must only read numbers.
    """
    console = console or Console(stderr=True)
    with _bar(console) if console.is_terminal else _lines(console) as (show, seconds):
        stop, pace = threading.Event(), Pace()
        pace.seconds_left(count())

        def keep_showing() -> None:
            while not stop.wait(seconds):
                now = count()
                line, left = now.line(pace.rate(now)), pace.seconds_left(now)
                show(now, line if not left else f"{line}; {format_duration(left)} left")

        thread = threading.Thread(target=keep_showing, name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


@contextmanager
def explain_interruption(kept: Callable[[], str]) -> Generator[None]:
    """Give Ctrl-C during the block a message: `kept` says what is saved and how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(kept()) from None


@dataclass(frozen=True, slots=True)
class Spending:
    """The calls and tokens of models, and their prices."""

    usage: Usage
    prices: Prices

    @property
    def money(self) -> float | None:
        """The cost; None if a price is unknown."""
        sums = Expense()
        for step, calls in self.usage.calls.copy().items():  # read from another thread
            prompt, completion = (self.usage.tokens[step, kind] for kind in ("prompt", "completion"))
            sums.add(calls, prompt, completion, self.prices.of(step))
        return sums.money

    def __str__(self) -> str:
        """Return a line such as `31 LLM calls, 41,203 tokens, cost 0.0312`; empty without calls."""
        calls = self.usage.calls.total()
        if not calls:
            return ""
        money = self.money
        cost = "" if money is None else f", cost {money:.4f}"
        return f"{number_of(calls, 'LLM call')}, {self.usage.tokens.total():,} tokens{cost}"


_Display = tuple[Callable[[Count, str], None], float]
"""A function that shows a count and its line, and the seconds between two of its calls."""


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
