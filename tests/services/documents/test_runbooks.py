"""Runbooks that are being added when all of a person's are removed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import pytest

from clock import FairTurns
from services.conversations import Withdrawn
from services.documents import Runbooks
from services.documents.store import DocumentStore, Folders, sqlite_store
from services.storage import in_thread

P = ParamSpec("P")
T = TypeVar("T")

ADA, BOB = 1, 2
TEXT = b"# Restarting\n\n1. Stop it.\n2. Start it.\n"


@pytest.fixture
def store(tmp_path: Path) -> DocumentStore:
    return sqlite_store(Folders(tmp_path / "evidence", tmp_path / "runbooks"))


async def added(runbooks: Runbooks, user_id: int, *, fetching: float = 0.0) -> str:
    async with runbooks.turn(user_id) as token:
        await asyncio.sleep(fetching)
        return (await runbooks.add(user_id, "r.md", TEXT, "r", token)).filename


async def test_what_waits_or_is_fetched_or_read_is_given_up_and_others_go_on(
    store: DocumentStore, tmp_path: Path
) -> None:
    async def slowly(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        await asyncio.sleep(10)
        return await in_thread(work, *args, **kwargs)

    runbooks = Runbooks(store=store, shown_path=tmp_path / "shown.json", run=slowly, turns=FairTurns(2))
    adding = [asyncio.create_task(added(runbooks, *each)) for each in ((ADA,), (BOB,), (ADA,))]
    await asyncio.sleep(5)
    assert await runbooks.forget(ADA) == 0
    fetching = asyncio.create_task(added(runbooks, ADA, fetching=10))
    await asyncio.sleep(1)
    assert await runbooks.forget(ADA) == 0
    ends = await asyncio.gather(*adding, fetching, return_exceptions=True)
    assert [end if isinstance(end, str) else type(end) for end in ends] == [Withdrawn, "r.md", Withdrawn, Withdrawn]
    assert not runbooks.has_any(ADA)
    assert await store.list_collections() == [f"user_{BOB}_kb"]
    assert await added(runbooks, ADA) == "r.md"  # nothing of theirs is waiting any more


async def test_what_is_being_stored_is_removed_right_afterwards(
    store: DocumentStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runbooks = Runbooks(store=store, shown_path=tmp_path / "shown.json", run=in_thread)
    add, storing = store.add, asyncio.Event()

    async def slowly(*args: Any, **named: Any) -> Any:
        storing.set()
        await asyncio.sleep(10)
        return await add(*args, **named)

    monkeypatch.setattr(store, "add", slowly)
    adding = asyncio.create_task(added(runbooks, ADA))
    await storing.wait()
    assert await runbooks.forget(ADA) == 1
    assert await adding == "r.md"
    assert await store.list_collections() == []
