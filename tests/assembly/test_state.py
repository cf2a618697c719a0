"""What a run leaves in the data folder."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from assembly import state as module
from assembly.state import autosave, read_state
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


@pytest.mark.parametrize(
    ("text", "opts_out"), [("hi !nobot", True), ("hi !NoBot", True), ("!NOBOT", True), ("nobot", False)]
)
async def test_the_marker_opts_out_in_any_case(config: Path, text: str, opts_out: bool) -> None:
    assert read_state(await asyncio.to_thread(load, config)).opted_out(311, text) is opts_out
