"""How far a long piece of work is: a bar on a terminal, a line every ten seconds elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from services.telemetry import number_of

LINE_SECONDS = 10.0
BAR_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Count:
    """Where the work stands."""

    done: int
    total: int | None
    """None where nobody knows yet."""
    unit: str
    """What is counted, each of them, such as `message`."""
    more: str = ""
    """What else there is to say."""

    def __str__(self) -> str:
        how_far = (
            number_of(self.done, self.unit)
            if self.total is None
            else f"{self.done} of {number_of(self.total, self.unit)}"
        )
        return how_far + (f", {self.more}" if self.more else "")


@contextmanager
def counted(console: Console, count: Callable[[], Count]) -> Generator[None]:
    """Show `count` on `console` while the block runs.

    Asked from a thread of its own, since the block's clock may be a virtual one: `count` only reads numbers.
    """
    with terminal(console) if console.is_terminal else lines(console) as (show, seconds):
        stop = threading.Event()

        def keep_showing() -> None:
            while not stop.wait(seconds):
                show(count())

        thread = threading.Thread(target=keep_showing, name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


Shown = tuple[Callable[[Count], None], float]
"""What shows a count, and how often."""


@contextmanager
def lines(console: Console) -> Generator[Shown]:
    def show(count: Count) -> None:
        console.print(str(count), soft_wrap=True, highlight=False, markup=False)

    yield show, LINE_SECONDS


@contextmanager
def terminal(console: Console) -> Generator[Shown]:
    columns = (BarColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)

        def show(count: Count) -> None:
            bar.update(task, completed=count.done, total=count.total, description=str(count))

        yield show, BAR_SECONDS
