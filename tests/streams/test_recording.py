"""Recordings, played at their times."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import aclosing
from pathlib import Path
from typing import TypeVar

import pytest

import clock
from clock import VirtualLoop
from services.discord.dispatches import Dispatch, render_line
from services.discord.recordings import BadRecording
from streams.recording import dispatches, first_time

T = TypeVar("T")
START = 1000.1


def run(main: Coroutine[object, object, T], start: float = 0.0) -> T:
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(start)) as runner:
        return runner.run(main)


def record(tmp_path: Path, *times: float) -> Path:
    path = tmp_path / "a.jsonl"
    lines = [render_line(Dispatch(at, "READY", {"n": n})) for n, at in enumerate(times)]
    path.write_text("".join(lines), encoding="utf-8")
    return path


async def played(path: Path, delay: float = 0.0) -> list[tuple[object, float]]:
    return [(dispatch.d["n"], clock.now()) async for dispatch in dispatches(path, delay=delay)]


def test_each_dispatch_comes_at_its_very_instant(tmp_path: Path) -> None:
    times = [START, START + 0.3, START + 0.3, START + 7.123456, START + 86_400.7]
    path = record(tmp_path, *times)
    stamps = [clock.from_rfc3339(clock.rfc3339(at, digits=6)) for at in times]
    assert run(played(path), first_time(path)) == list(enumerate(stamps))


def test_time_never_goes_back(tmp_path: Path) -> None:
    path = record(tmp_path, START + 5, START, START + 4, START + 6)
    assert run(played(path), START + 5) == [(0, START + 5), (1, START + 5), (2, START + 5), (3, START + 6)]


def test_a_recording_plays_on_a_clock_that_is_elsewhere_in_time(tmp_path: Path) -> None:
    path = record(tmp_path, START, START + 10)
    (first, at), (second, later) = run(played(path, delay=1000 - first_time(path)), 1000.0)
    assert (first, at, second) == (0, 1000.0, 1)
    assert later == pytest.approx(1010.0)


def test_on_an_ordinary_loop_it_takes_real_time(tmp_path: Path) -> None:
    async def main() -> tuple[list[tuple[object, float]], float]:
        now = clock.now()
        return await played(record(tmp_path, START, START + 0.05), delay=now - START), now

    with asyncio.Runner() as runner:
        (first, second), began = runner.run(main())
    assert first[1] - began < 0.04
    assert 0.045 < second[1] - began < 1.0


def test_what_others_do_meanwhile_gets_its_turn(tmp_path: Path) -> None:
    async def main() -> tuple[int, ...]:
        seen: list[int] = []
        async for _ in dispatches(record(tmp_path, START, START, START)):
            asyncio.get_running_loop().call_soon(seen.append, len(seen))
        return tuple(seen)

    assert run(main(), START) == (0, 1)


def test_a_player_can_be_stopped_while_it_waits(tmp_path: Path) -> None:
    async def main() -> float:
        async with aclosing(dispatches(record(tmp_path, START, START + 10))) as stream:
            await anext(stream)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(stream), 10)  # both are due at one instant
        return clock.now()

    assert run(main(), START) == START + 10


def test_a_bad_recording_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(BadRecording):
        first_time(tmp_path / "absent.jsonl")
    with pytest.raises(BadRecording):
        run(played(tmp_path / "absent.jsonl"))
