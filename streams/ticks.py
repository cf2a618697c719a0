"""When to update the knowledge base: at start-up, at intervals, and when files change."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path

import reactivex as rx
from reactivex import Observable, abc
from reactivex import operators as ops
from reactivex.disposable import CompositeDisposable, Disposable

from clock import VirtualLoop
from dataflow import from_coroutine, quiet_window

MAX_WINDOWS = 10
"""If files keep changing, a tick comes after so many times the quiet window."""
LOOK_SECONDS = 5.0
"""How often it is checked that a watched folder is still there."""

log = logging.getLogger(__name__)


class Tick(StrEnum):
    """Why an update is due."""

    START = "start-up"
    TIMER = "timer"
    FILES = "file change"


def ticks(
    every_seconds: float, *, idle: Callable[[], bool] = lambda: False, wake: Observable[object] | None = None
) -> Observable[Tick]:
    """Tick at once and every `every_seconds`.

    S----T----T----T--      ticks(5)

    stirred  -----------------s-------
    ticks    S----T--------------T--       ticks(5, idle=…), idle since the first T, until s

    A virtual clock passes years of silence in an instant, with a hundred thousand ticks in each. There, ticks are left
    out from one that finds everything `idle` until `wake` emits, since only played dispatches change anything; later
    ticks come at their usual times. Never completes; disposing stops it.
    """

    def subscribe(observer: abc.ObserverBase[Tick], scheduler: abc.SchedulerBase | None = None) -> abc.DisposableBase:
        _ = scheduler  # the loop is the only clock
        loop = asyncio.get_running_loop()
        may_rest = isinstance(loop, VirtualLoop)
        began = due = loop.time()

        def tick(why: Tick) -> None:
            nonlocal timer
            timer = None
            if why is Tick.TIMER and may_rest and idle():
                return
            arm()
            observer.on_next(why)

        def arm(_: object = None) -> None:
            nonlocal timer, due
            if timer is None:
                passed = (loop.time() - began) // every_seconds
                due = max(due + every_seconds, began + (passed + 1) * every_seconds)
                timer = loop.call_at(due, tick, Tick.TIMER)

        def stop() -> None:
            if timer is not None:
                timer.cancel()

        timer: asyncio.Handle | None = loop.call_soon(tick, Tick.START)
        waking = Disposable() if wake is None else wake.subscribe(arm, on_error=ignore)
        return CompositeDisposable(waking, Disposable(stop))

    return Observable(subscribe)


def ignore(_: Exception) -> None:
    """Ignore an error of `wake`: subscribers of the same stream handle it."""


def file_changes(folders: Sequence[Path], links_file: Path, quiet_seconds: float) -> Observable[Tick]:
    """Emit a tick once files below `folders`, or the list of links, have changed and been quiet for `quiet_seconds`.

    If files cannot be watched, this is logged, and only the timer ticks.
    """
    # The list is watched through its folder, as an editor puts a new file in the old one's place.
    folder = rx.merge(
        *(from_generator(partial(changes, each, recursive=True)) for each in folders),
        from_generator(lambda: changes(links_file.parent, recursive=False, only=links_file.name)),
    )
    resting = quiet_window(quiet_seconds, all_in_one_window, max_seconds=MAX_WINDOWS * quiet_seconds)
    return folder.pipe(resting, ops.map(lambda _: Tick.FILES))


def all_in_one_window(_tick: Tick) -> None: ...


async def changes(folder: Path, *, recursive: bool, only: str | None = None) -> AsyncGenerator[Tick]:
    """Emit a tick for each set of changes in `folder`, or of its file `only`; and when it disappears or comes back."""
    reported = False
    while True:
        seen = identity(folder)
        try:
            async for names in watched(folder, recursive=recursive):
                if identity(folder) != seen:
                    break
                if names and (only is None or only in names):
                    yield Tick.FILES
        except (OSError, RuntimeError) as error:
            if seen is not None and not reported:
                log.warning("%s cannot be watched (%s); changes are found by the timer only", folder, error)
                reported = True
        if identity(folder) in {None, seen}:
            await asyncio.sleep(LOOK_SECONDS)
        if identity(folder) != seen:
            yield Tick.FILES


async def watched(folder: Path, *, recursive: bool) -> AsyncGenerator[set[str]]:
    """Yield the names of changed files; every few seconds an empty set, so that the caller can check the folder. Raises
    OSError, RuntimeError: there is no such folder, or the system has no watches left.
    """
    # The import takes a tenth of a second, and only the live bot needs it.
    from watchfiles import awatch  # noqa: PLC0415  # pyright: ignore[reportUnknownVariableType] (speaks of trio, too)

    watching = awatch(
        folder,
        watch_filter=None,
        recursive=recursive,
        rust_timeout=int(LOOK_SECONDS * 1000),
        yield_on_timeout=True,
    )
    async for found in watching:
        yield {path.rpartition("/")[2] for _, path in found}


def identity(folder: Path) -> tuple[int, int] | None:
    """Device and inode of a folder, which tell it from another of the same name; None if there is none."""
    try:
        status = os.stat(folder)  # noqa: PTH116 (a microsecond, on the loop)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def from_generator(generate: Callable[[], AsyncGenerator[Tick]]) -> Observable[Tick]:
    """Return an Observable of what an endless generator yields, from subscription to disposal."""

    async def feed(observer: abc.ObserverBase[Tick]) -> None:
        try:
            async with contextlib.aclosing(generate()) as generator:
                async for each in generator:
                    observer.on_next(each)
        except Exception:
            log.exception("files are no longer watched; changes are found by the timer only")

    return from_coroutine(feed)
