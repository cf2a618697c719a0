"""How far an update is: a bar on a terminal, a line every ten seconds elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from services.knowledge import DuePage, LeftOut, Pending, Settled, Suspect, Trouble, UpdateEvent
from services.telemetry import number_of

LINE_SECONDS = 10.0


class Progress:
    """Counts the sources that have something to do, and those that are through."""

    def __init__(self, changed: Callable[[int, int], object]) -> None:
        self._changed = changed
        self._open: set[str] = set()
        self.total = 0

    @property
    def done(self) -> int:
        return self.total - len(self._open)

    def see(self, event: UpdateEvent) -> None:
        match event:
            case Suspect(name=name) | DuePage(url=name):
                self._begin(name)
            case Pending(record=record):
                self._begin(record.source_id)
            case Settled(record=record):
                self._end(record.source_id)
            case LeftOut(name=name) | Trouble(about=name):
                self._end(name)
            case _:
                return
        self._changed(self.done, self.total)

    def _begin(self, name: str) -> None:
        if name not in self._open:
            self._open.add(name)
            self.total += 1

    def _end(self, name: str) -> None:
        self._open.discard(name)


@contextmanager
def shown(console: Console) -> Generator[Progress]:
    """Shows on `console` what the `Progress` has seen, while the block runs in an event loop."""
    if not console.is_terminal:
        with lines(console) as progress:
            yield progress
        return
    columns = (TextColumn("Describing sources"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield Progress(lambda done, total: bar.update(task, completed=done, total=total))


@contextmanager
def lines(console: Console) -> Generator[Progress]:
    loop = asyncio.get_running_loop()
    progress = Progress(lambda _done, _total: None)

    def say() -> None:
        nonlocal timer
        timer = loop.call_later(LINE_SECONDS, say)
        console.print(f"{progress.done} of {number_of(progress.total, 'source')} done", soft_wrap=True, highlight=False)

    timer = loop.call_later(LINE_SECONDS, say)
    try:
        yield progress
    finally:
        timer.cancel()
