"""What a run leaves in the data folder."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from assembly import state as module
from assembly.state import autosave, read_state
from model.messages import DISCORD_EPOCH_MS, Author, Message
from model.outcomes import Removed
from services.conversations import read_marks
from services.storage import files
from settings import load


async def test_a_save_that_the_end_cuts_off_is_over_before_the_last_one(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it could put older marks into the place of newer ones."""
    loop, began, go_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
    written: list[Path] = []
    at_once: list[Path] = []
    replace = files.replace

    def slowly(path: Path, data: bytes) -> None:
        written.append(path)
        if len(written) == 1:
            loop.call_soon_threadsafe(began.set)
            go_on.wait(10)
        elif not go_on.is_set():
            at_once.append(path)
        replace(path, data)

    async def go_on_soon() -> None:
        for _ in range(100):
            await asyncio.sleep(0)
        go_on.set()

    monkeypatch.setattr(files, "replace", slowly)
    monkeypatch.setattr(module, "SAVE_SECONDS", 0.0)
    state = read_state(load(config))
    async with autosave(state):
        state.seen.met(1, 1_500_000_000.0)
        await began.wait()
        state.seen.met(2, 1_500_000_000.0)
        going_on = asyncio.ensure_future(go_on_soon())
    await going_on
    assert at_once == []
    assert set(read_marks(state.folder.seen)) == {-1, -2}


async def test_the_marks_of_quiet_places_are_not_kept_for_ever(config: Path) -> None:
    """Threads are many: the file is written anew with every change, and would only grow."""
    state = read_state(load(config))
    await asyncio.sleep(1_500_000_000)
    state.seen.arrived(said(1, 1_400_000_000))
    state.seen.settled(Removed(1, said(1, 1_400_000_000).id))
    state.seen.arrived(said(2, 1_499_999_000))
    state.seen.settled(Removed(2, said(2, 1_499_999_000).id))
    await state.save()
    assert set(read_marks(state.folder.seen)) == {2}


async def test_marks_are_kept_for_as_long_as_catch_up_may_look_back(config: Path) -> None:
    settings = load(config)
    discord = settings.discord.model_copy(update={"catch_up_minutes": 60 * 24 * 365})
    state = read_state(settings.model_copy(update={"discord": discord}))
    await asyncio.sleep(1_500_000_000)
    state.seen.arrived(said(1, 1_480_000_000))
    state.seen.settled(Removed(1, said(1, 1_480_000_000).id))
    await state.save()
    assert set(read_marks(state.folder.seen)) == {1}


def said(place_id: int, at: float) -> Message:
    return Message(round(at * 1000 - DISCORD_EPOCH_MS) << 22, place_id, Author(1, "ann"), "…", at)
