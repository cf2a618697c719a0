"""Several processes over one Chroma."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.documents.store.protocol import Search, StoreUnavailable
from tests.services.documents import cases
from tests.services.documents.store import imitated_chroma


async def test_what_one_process_writes_the_other_finds(tmp_path: Path) -> None:
    server = imitated_chroma.Chroma()
    one, two = (imitated_chroma.new_store(tmp_path / name, server) for name in ("one", "two"))
    name = cases.case().name
    assert await two.search(name, Search("card")) == []
    document = await cases.post(one, "shop.log", cases.LOG)
    assert [hit.chunk.text for hit in await two.search(name, Search("card expired"))]
    assert await two.describe(name) is not None
    assert await two.delete_document(name, document.doc_id)
    assert await one.search(name, Search("card")) == []
    await cases.post(two, "depot.log", cases.OTHER_LOG)
    assert await one.search(name, Search("collision"))
    assert await one.delete_collection(name)
    assert await two.describe(name) is None


async def test_a_write_that_chroma_does_not_take_has_not_happened(tmp_path: Path) -> None:
    server = imitated_chroma.Chroma()
    store = imitated_chroma.new_store(tmp_path, server)
    await cases.post(store, "shop.log", cases.LOG)
    server.down = True
    with pytest.raises(StoreUnavailable, match="ConnectionError"):
        await cases.post(store, "depot.log", cases.OTHER_LOG)
    server.down = False
    assert await store.search(cases.case().name, Search("collision")) == []
    assert await store.search(cases.case().name, Search("card"))


async def test_a_collection_made_anew_by_another_process_is_not_taken_for_the_old_one(tmp_path: Path) -> None:
    server = imitated_chroma.Chroma()
    one, two = (imitated_chroma.new_store(tmp_path / name, server) for name in ("one", "two"))
    name = cases.case().name
    await cases.post(one, "shop.log", cases.LOG)
    assert await two.search(name, Search("card"))
    await one.delete_collection(name)
    await cases.post(one, "depot.log", cases.OTHER_LOG)
    assert await two.search(name, Search("card")) == []
    assert await two.search(name, Search("collision"))
