"""Captures that come while others are being flushed are written together, with one flush (group commit)."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from model.outcomes import Outcome
from services.storage import files
from services.team.archive_files import ArchiveUnwritable, StoredBlock, pairs_in
from services.team.captures import Capture
from sinks.team import RawArchive
from tests.sinks.test_archive import (
    PART,
    PowerCut,
    archive_in,
    at,
    capture,
    content,
    conversations,
    cut_at,
    fresh,
    more,
    named,
    texts,
)
from tests.talk import START


class Slow:
    """A disk on which an append takes until it is told to go on; notes what reaches it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.blocks: list[int] = []  # of each append
        self._real = files.append
        monkeypatch.setattr(files, "append", self._append)

    def _append(self, path: Path, data: bytes) -> int:
        self.begun.set()
        assert self.go_on.wait(10)
        self.blocks.append(data.count(b"--- QA ---"))
        return self._real(path, data)

    async def while_the_first_is_flushed(
        self, raw: RawArchive, *captures: Capture
    ) -> tuple[list[asyncio.Task[Outcome]], Callable[[], None]]:
        tasks = [asyncio.create_task(raw.keep(each)) for each in captures[:1]]
        await asyncio.sleep(0)
        assert self.begun.wait(10)
        tasks += [asyncio.create_task(raw.keep(each)) for each in captures[1:]]
        await asyncio.sleep(0)
        return tasks, self.go_on.set


async def test_captures_that_come_during_a_flush_share_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pitfall 7: and none is acknowledged before that."""
    synced: list[int] = []
    done: list[str | None] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        real(descriptor)
        synced.append(len(done))

    monkeypatch.setattr(os, "fsync", fsync)
    disk, raw = Slow(monkeypatch), archive_in(tmp_path)
    stored: list[StoredBlock] = []
    raw.on_stored = stored.append
    tasks, go_on = await disk.while_the_first_is_flushed(raw, *(capture(number) for number in range(1, 6)))
    for task in tasks:
        task.add_done_callback(lambda task: done.append(task.result().qa_id))
    go_on()
    await asyncio.gather(*tasks)
    assert disk.blocks == [1, 4]
    assert synced == [0, 0, 1]  # the file and its folder, then the other four at once
    assert texts(tmp_path) == [f"Question {number}?" for number in range(1, 6)]
    assert done == [pair.id for pair in pairs_in(tmp_path, 1)]
    whole = content(tmp_path)
    assert [each.pair for each in stored] == pairs_in(tmp_path, 1)
    assert [whole[each.start : each.start + len(each.text.encode())].decode() for each in stored] == [
        each.text for each in stored
    ]


async def test_what_goes_on_with_a_capture_that_is_being_written_waits_and_joins_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pitfalls 13 and 15."""
    disk, raw = Slow(monkeypatch), archive_in(tmp_path)
    second = capture(2, "Why?", "So.")
    goes_on = Capture(PART, "reply_77", (second.messages[0], more(90, "P.S.")))
    coming = (capture(1), second, goes_on, second, capture(3, "When?", "Then."))
    tasks, go_on = await disk.while_the_first_is_flushed(raw, *coming)
    go_on()
    outcomes = await asyncio.gather(*tasks)
    assert disk.blocks == [1, 1, 1, 1]
    assert conversations(tmp_path)[1:] == [["Why?", "So."], ["Why?", "So.", "P.S."], ["When?", "Then."]]
    assert [each.qa_id for each in outcomes] == [
        *(pair.id for pair in pairs_in(tmp_path, 1)[:3]),
        pairs_in(tmp_path, 1)[2].id,
        pairs_in(tmp_path, 1)[3].id,
    ]


async def test_where_not_all_fit_on_the_disk_each_is_stored_that_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, raw = Slow(monkeypatch), archive_in(tmp_path)
    coming = (capture(1), capture(2), capture(3, "Long? " * 500, "So."), capture(4))
    tasks, go_on = await disk.while_the_first_is_flushed(raw, *coming)
    real = os.write

    def write(descriptor: int, data: memoryview) -> int:
        if len(data) > 1000:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    go_on()
    *_, third, fourth = outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(third, ArchiveUnwritable)
    assert isinstance(fourth, Outcome)
    assert [isinstance(each, Outcome) for each in outcomes] == [True, True, False, True]
    assert texts(tmp_path) == ["Question 1?", "Question 2?", "Question 4?"]


async def test_captures_are_written_once_where_the_library_cannot_take_them_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disk, raw = Slow(monkeypatch), archive_in(tmp_path)

    def on_stored(_block: StoredBlock) -> None:
        raise ValueError("no room")

    raw.on_stored = on_stored
    tasks, go_on = await disk.while_the_first_is_flushed(raw, *(capture(number) for number in range(1, 4)))
    go_on()
    outcomes = await asyncio.gather(*tasks)
    assert disk.blocks == [1, 2]
    assert [each.qa_id for each in outcomes] == [pair.id for pair in pairs_in(tmp_path, 1)]
    assert texts(tmp_path) == ["Question 1?", "Question 2?", "Question 3?"]
    assert "no room" in caplog.text


@pytest.mark.parametrize("cancelled", [1, 2])
async def test_who_stops_waiting_takes_nothing_from_the_others(
    cancelled: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, raw = Slow(monkeypatch), archive_in(tmp_path)
    tasks, go_on = await disk.while_the_first_is_flushed(raw, *(capture(number) for number in range(1, 5)))
    tasks[cancelled].cancel()
    go_on()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(each, asyncio.CancelledError) for each in outcomes] == [each == cancelled for each in range(4)]
    assert texts(tmp_path) == [f"Question {number + 1}?" for number in range(4) if number != cancelled]


async def test_who_stops_waiting_for_a_flush_that_has_begun_does_not_stop_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, raw = Slow(monkeypatch), archive_in(tmp_path)
    tasks, go_on = await disk.while_the_first_is_flushed(raw, capture(1), capture(2), capture(3))
    disk.begun.clear()
    go_on()
    await tasks[0]
    await asyncio.sleep(0)
    assert disk.begun.wait(10)
    tasks[2].cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(outcomes[1], Outcome)
    assert texts(tmp_path) == ["Question 1?", "Question 2?", "Question 3?"]


def together(folder: Path, last: int, partial: int | None = None) -> tuple[bool, list[str]]:
    """Keep three captures at once on a machine that dies: whether it died, and which counted as stored."""
    raw = archive_in(folder)
    with pytest.MonkeyPatch.context() as monkeypatch:
        died = cut_at(monkeypatch, last, partial)
        try:
            return died(), [pair.id for pair in raw.write([named(number) for number in (2, 3, 4)], START + 5)]
        except PowerCut:
            return died(), []


def test_a_crash_at_any_system_call_leaves_the_first_of_those_written_together(tmp_path: Path) -> None:
    """Pitfalls 7 and 14: none counted as stored."""
    died, last = True, 0
    while died:
        folder = fresh(tmp_path, f"together {last}")
        died, stored = together(folder, last)
        after = texts(folder)
        assert after in (["Question 1?"], [f"Question {number}?" for number in range(1, 5)])
        assert len(stored) in (0, len(after) - 1)
        at(START + 9, capture(9), folder=folder)
        assert texts(folder) == [*after, "Question 9?"]
        last += 1
    assert last >= len(("open", "write", "fsync", "close"))


def test_a_crash_at_any_byte_of_those_written_together_is_healed_by_the_next(tmp_path: Path) -> None:
    """Pitfall 48: what is whole stays, in order, and the rest is moved aside."""
    folder = fresh(tmp_path, "whole")
    sound = content(folder)
    together(folder, 99)
    blocks = content(folder)[len(sound) :]
    for written in range(0, len(blocks), 3):
        (folder / "2026-W01.txt").write_bytes(sound)
        died, stored = together(folder, 1, partial=written)
        assert (died, stored) == (True, [])
        at(START + 9, capture(9), folder=folder)
        *before, last = texts(folder)
        assert before == [f"Question {number}?" for number in range(1, 1 + len(before))]
        assert last == "Question 9?"
