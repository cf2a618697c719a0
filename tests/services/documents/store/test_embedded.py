"""What only the embedded store can get wrong: files on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.documents.store.protocol import CollectionSummary
from tests.services.documents import cases


async def test_whoever_reads_while_a_collection_is_deleted_holds_on_to_nothing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, name = cases.new_store(tmp_path), cases.case().name
    await cases.post(store, "shop.log", cases.LOG)
    unlink, seen = Path.unlink, list[CollectionSummary | None]()

    def reading_meanwhile(path: Path, missing_ok: bool = False) -> None:
        # Inside: a public call would wait for the deletion that is being looked at.
        seen.append(store._look(name, lambda shelf: pytest.fail(f"{shelf.path} was opened"), None))  # pyright: ignore[reportPrivateUsage] (as said)
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", reading_meanwhile)
    assert await store.delete_collection(name)
    monkeypatch.undo()
    assert seen == [None] * 3
    assert await store.describe(name) is None
    await cases.post(store, "depot.log", cases.OTHER_LOG)
    described = await store.describe(name)
    assert described is not None
    assert [doc.filename for doc in described.documents] == ["depot.log"]
    await store.close()
