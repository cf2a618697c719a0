"""What only the embedded store can get wrong: files on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.documents.store.protocol import CollectionSummary, LineWhere
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


@pytest.mark.parametrize("way", ["deleted", "withdrawn", "replaced"])
async def test_nothing_of_a_document_that_is_gone_stays_in_the_files_while_others_are_read(
    tmp_path: Path, way: str
) -> None:
    """Pitfall 49: neither in free pages, nor in the log, nor in the index of words."""
    store, name = cases.new_store(tmp_path), cases.case().name
    other = await cases.post(store, "depot.log", cases.OTHER_LOG)
    secret = await cases.post(store, "zebra.log", cases.LOG.replace("Starting version", "zebras on"))
    assert await store.describe(name) is not None, "it is open for reading"
    assert files_with(tmp_path, b"zebra")
    match way:
        case "deleted":
            await store.delete_document(name, secret.doc_id)
        case "withdrawn":
            await store.withdraw(name, secret.doc_id, lambda _: True)
        case _:
            await store.revise(cases.case(), [cases.new("plain.log", cases.LOG)], [secret.doc_id])
    assert not files_with(tmp_path, b"zebra")
    assert (await store.lines(name, LineWhere((other.doc_id,), words=("collision",)))).total == 1
    await store.close()


def files_with(folder: Path, word: bytes) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and word in path.read_bytes()]
