"""Pitfall 38: an update leaves the event loop to the gateway's heartbeat."""

from __future__ import annotations

import asyncio
import io
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.assistant.extractive.describing import ExtractiveDescriber
from services.knowledge.source_kinds import UpdateEvent, UpdateReport
from services.knowledge.web_interface import NotModified
from streams.knowledge import KnowledgeParts, update
from tests.shelves import Shelf

PAGE = "https://mill.example/a"
AT_A_TIME = 64
"""Events of one step that may run through the graph before the loop has its turn; some steps may have one at once."""


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    made = Shelf(tmp_path)
    for number in range(20):
        made.write(f"part-{number % 3}/{number:02}.md", f"Subject {number}\n")
    made.link(PAGE)
    made.web.serve(PAGE, "The miller's wages\n", '"1"')
    return made


class Watch:
    """Notes from which threads the file system is asked, other than for one `stat`, which costs a microsecond."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.calls: list[str] = []
        self.on_loop: list[str] = []
        self._loop = threading.get_ident()
        for module, name in (
            (os, "scandir"),
            (os, "listdir"),
            (os, "open"),
            (os, "fsync"),
            (os, "rename"),
            (os, "unlink"),
            (io, "open"),
        ):
            patch.setattr(module, name, self._watched(name, getattr(module, name)))

    def _watched(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **options: Any) -> Any:
            self.calls.append(name)
            if threading.get_ident() == self._loop:
                self.on_loop.append(f"{name} {arguments}")
            return real(*arguments, **options)

        return called


async def test_nothing_is_read_written_or_listed_on_the_event_loop(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pitfall 38: at a first run, a changed one, one with something gone, one that forgets, and an unchanged one."""
    with monkeypatch.context() as patch:
        watch = Watch(patch)
        await shelf.update()
        assert watch.on_loop == []
        assert {"scandir", "open", "fsync", "rename"} <= set(watch.calls)
        shelf.web.answers[PAGE] = NotModified(None, None)
        for hours in (0, 73):
            await asyncio.sleep(hours * 3600)
            await shelf.update()
        assert watch.on_loop == []
        shelf.write("part-0/00.md", "Changed\n")
        (shelf.sources / "part-1/01.md").unlink()
        shelf.link()
        watch.on_loop.clear()  # that was the test itself
        await shelf.update()
        await asyncio.sleep(25 * 3600)
        await shelf.update()
        assert watch.on_loop == []
    assert PAGE not in shelf.records
    assert "part-1/01.md" not in shelf.records


async def test_descriptions_without_a_model_are_made_off_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pitfall 38: of a long text that takes as long as a heartbeat may be late."""
    threads: list[int] = []

    def seen(_source_id: str, _text: str) -> str:
        threads.append(threading.get_ident())
        return "About it."

    monkeypatch.setattr("services.assistant.extractive.describing.describe", seen)
    assert await ExtractiveDescriber().summarize_for_kb_index("a.md", "text", 60) == "About it."
    assert threads
    assert threading.get_ident() not in threads


@pytest.mark.real_time
async def test_between_a_few_sources_and_the_next_the_event_loop_has_its_turn(tmp_path: Path) -> None:
    """Pitfall 38: a thousand sources that change at once do not run through the graph in one go."""
    shelf = Shelf(tmp_path)
    for number in range(1_000):
        shelf.write(f"{number:04}.md", f"Subject {number}\n")
    assert most_in_one_turn(await turns_of(shelf.begin())) <= 4 * AT_A_TIME
    shelf.describer.key = "key 2"  # which makes all of them pending at once
    assert most_in_one_turn(await turns_of(shelf.begin())) <= 4 * AT_A_TIME


async def turns_of(parts: KnowledgeParts) -> list[int]:
    """For each event of an update, in which turn of the loop it came."""
    loop = asyncio.get_running_loop()
    turn = 0
    events: list[int] = []
    finished: asyncio.Future[UpdateReport] = loop.create_future()

    def next_turn() -> None:
        nonlocal turn
        turn += 1
        if not finished.done():
            loop.call_soon(next_turn)

    def see(event: UpdateEvent | UpdateReport) -> None:
        events.append(turn)
        if isinstance(event, UpdateReport):
            finished.set_result(event)

    loop.call_soon(next_turn)
    update(parts).subscribe(see, finished.set_exception)
    await finished
    assert len(events) > 2_000
    return events


def most_in_one_turn(events: list[int]) -> int:
    return max(events.count(turn) for turn in set(events))
