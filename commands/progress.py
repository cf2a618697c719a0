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
    """`total`: None while it is unknown; `unit`: what one of them is called, such as `message`; `more`: a remark."""

    done: int
    total: int | None
    unit: str
    more: str = ""

    def __str__(self) -> str:
        total = number_of(self.done if self.total is None else self.total, self.unit)
        return (total if self.total is None else f"{self.done} of {total}") + (f", {self.more}" if self.more else "")


@contextmanager
def counted(console: Console, count: Callable[[], Count]) -> Generator[None]:
    """Show `count` on `console` while the block runs.

    It is called from a thread, since the block's clock may be a virtual one: it must only read numbers.
    """
    with _bar(console) if console.is_terminal else _lines(console) as (show, seconds):
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


_Display = tuple[Callable[[Count], None], float]
"""What shows a count, and every how many seconds."""


@contextmanager
def _lines(console: Console) -> Generator[_Display]:
    yield lambda count: console.print(str(count), soft_wrap=True, highlight=False, markup=False), LINE_SECONDS


@contextmanager
def _bar(console: Console) -> Generator[_Display]:
    columns = (BarColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield (
            lambda count: bar.update(task, completed=count.done, total=count.total, description=str(count)),
            BAR_SECONDS,
        )
