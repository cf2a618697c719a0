from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from services.knowledge.narrowing import narrow, narrowed

from services.knowledge.index_file import IndexEntry, render

INDEX = (
    IndexEntry("team:tokens.txt", "Depositing tokens into the portal."),
    IndexEntry("kb:gpu.md", "Installing NVIDIA drivers, and GPUs that are not detected."),
    IndexEntry("kb:docker.md", "Docker compose files and ports."),
    IndexEntry("kb:中文.md", "如何安装显卡驱动"),
    IndexEntry("kb:billing.md", "Invoices, taxes, and refunds."),
)


def ids(query: str, max_chars: int) -> list[str]:
    return [entry.id for entry in narrow(INDEX, query, max_chars)]


def test_an_index_that_fits_stays_as_it_is() -> None:
    size = len(render(INDEX))
    assert narrow(INDEX, "gpu", size) is INDEX
    assert len(narrow(INDEX, "gpu", size - 1)) == len(INDEX) - 1
    assert narrow((), "gpu", 0) == ()


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("my gpu is not detected", "kb:gpu.md"),
        ("install driver", "kb:gpu.md"),  # stems
        ("REFUND?", "kb:billing.md"),
        ("docker", "kb:docker.md"),
        ("怎么安装驱动", "kb:中文.md"),  # no blanks between words
    ],
)
def test_the_entry_that_ranks_best_for_the_query_is_kept(query: str, best: str) -> None:
    room = next(len(render([entry])) for entry in INDEX if entry.id == best)
    assert ids(query, room) == [best]


def test_what_is_kept_keeps_its_order_and_entries_that_rank_alike_come_in_order() -> None:
    assert ids("docker ports and tokens", 105) == ["team:tokens.txt", "kb:docker.md"]
    assert ids("", 125) == ["team:tokens.txt", "kb:gpu.md"]
    assert ids("zzz", 60) == ids("?!", 60) == ["team:tokens.txt"]


def test_one_entry_too_long_for_the_room_does_not_take_it_from_the_others() -> None:
    entries = (IndexEntry("kb:a", "gpu " * 100), IndexEntry("kb:b", "gpu"), IndexEntry("kb:c", "other"))
    assert [entry.id for entry in narrow(entries, "gpu", 20)] == ["kb:b"]


@pytest.mark.parametrize(
    "query",
    [
        '"',
        'gpu" OR docker NEAR(',
        "-gpu * ^ : {x y}",
        "AND OR NOT NEAR",
        "words:gpu",
        "a_b _ __",
        "\0gpu\0",
        "\ud800gpu",
        "'; DROP TABLE entries; --",
        "x" * 100_000,
        "word " * 10_000,
        " ".join(map(str, range(10_000))),
    ],
)
def test_no_query_is_syntax(query: str) -> None:
    assert 0 < len(narrow(INDEX, query, 130)) < len(INDEX)


@settings(max_examples=15)
@given(
    st.lists(st.builds(IndexEntry, st.text(min_size=1, max_size=5), st.text(st.characters(), max_size=20)), max_size=8),
    st.text(st.characters(), max_size=30),
    st.integers(0, 120),
)
def test_what_is_kept_fits_and_is_a_subsequence_and_the_same_each_time(
    entries: list[IndexEntry], query: str, max_chars: int
) -> None:
    kept = narrow(entries, query, max_chars)
    assert len("\n".join(f"{entry.id}\n{entry.description}\n" for entry in kept)) <= max_chars
    remaining = iter(entries)
    assert all(any(entry == other for other in remaining) for entry in kept)
    assert list(narrow(tuple(entries), query, max_chars)) == list(kept)


def test_an_index_is_built_once_and_the_latest_ones_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str] = []
    real = sqlite3.connect

    def counted(name: str, *, check_same_thread: bool) -> sqlite3.Connection:
        built.append(name)
        return real(name, check_same_thread=check_same_thread)

    monkeypatch.setattr(sqlite3, "connect", counted)
    one, two, three = (INDEX[:count] for count in (2, 3, 4))
    for entries in (one, two, one, two, three, three, two):
        narrow(entries, "gpu", 70)
    assert len(built) == 3
    narrow(one, "gpu", 70)
    assert len(built) == 4
    # A list may change between two calls, so nothing is known about it the second time.
    entries = list(INDEX)
    narrow(entries, "gpu", 70)
    narrow(entries, "gpu", 70)
    assert len(built) == 6


LARGE = tuple(IndexEntry(f"kb:{number:04}.md", f"Mill {number} and its wheel.") for number in range(2_000))


class Spied:
    """A connection that counts the rows somebody takes from it, and may wait before it is filled."""

    def __init__(self, real: sqlite3.Connection) -> None:
        self.real = real
        self.rows = 0
        self.fills = 0
        self.threads: set[int] = set()
        self.may_fill = threading.Event()
        self.may_fill.set()

    def execute(self, *arguments: Any) -> Iterator[tuple[int]]:
        self.threads.add(threading.get_ident())
        return self._counted(self.real.execute(*arguments))

    def _counted(self, found: sqlite3.Cursor) -> Iterator[tuple[int]]:
        for row in found:
            self.rows += 1
            yield row

    def executemany(self, *arguments: Any) -> None:
        assert self.may_fill.wait(10)
        self.fills += 1
        self.real.executemany(*arguments)

    def close(self) -> None:
        self.real.close()


@pytest.fixture
def spied(monkeypatch: pytest.MonkeyPatch) -> Spied:
    spy = Spied(sqlite3.connect(":memory:", check_same_thread=False))

    def connect(*_: object, **__: object) -> Spied:
        return spy

    monkeypatch.setattr(sqlite3, "connect", connect)
    return spy


def test_of_a_large_index_little_more_is_looked_at_than_what_is_kept(spied: Spied) -> None:
    assert narrow((*LARGE, INDEX[2]), "mill 1234 wheel", 400)[-1].id == "kb:1234.md"
    assert spied.rows < 20


async def test_a_large_index_is_searched_off_the_event_loop_and_filled_once(spied: Spied) -> None:
    """Pitfall 38."""
    entries = (*LARGE, INDEX[0])
    first, second = await asyncio.gather(narrowed(entries, "wheel 7", 200), narrowed(entries, "wheel 7", 200))
    assert first == second
    assert spied.fills == 1
    assert spied.threads
    assert threading.get_ident() not in spied.threads


@pytest.mark.real_time
async def test_nobody_waits_on_the_event_loop_while_an_index_is_being_filled(spied: Spied) -> None:
    """Pitfall 38."""
    entries = (*LARGE, INDEX[1])
    spied.may_fill.clear()
    searching = [asyncio.create_task(narrowed(entries, "wheel", 200)) for _ in range(2)]
    for _ in range(10):
        await asyncio.sleep(0)
        assert await narrowed(INDEX, "gpu", 10_000) is INDEX
        assert await narrowed(entries, "gpu", 10_000_000) is entries
    assert not any(task.done() for task in searching)
    spied.may_fill.set()
    assert await searching[0] == await searching[1]


async def test_an_index_that_fits_is_not_worth_leaving_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    def unwanted(*_: object) -> None:
        pytest.fail("left the loop")

    monkeypatch.setattr("services.knowledge.narrowing.in_thread", unwanted)
    assert await narrowed(INDEX, "gpu", 10_000) is INDEX
