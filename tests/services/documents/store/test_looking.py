"""Documents that are only read, beside the bot that writes them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from services.documents.store.collection_files import TRIES, OpenFile, ReadOnlyFiles
from services.documents.store.document_store import DocumentStore, sqlite_store
from services.documents.store.protocol import LineWhere, StoreUnavailable
from tests.services.documents import cases


def reader_in(folder: Path) -> DocumentStore:
    return sqlite_store(cases.folders(folder), read_only=True)


def file_in(folder: Path) -> Path:
    return next(folder.rglob("case_*.sqlite"))


def traces(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.stat().st_size)
        for path in sorted(folder.rglob("*"))
    }


async def test_reading_leaves_nothing_behind(tmp_path: Path) -> None:
    """Pitfall 50."""
    store, name = cases.new_store(tmp_path), cases.case().name
    doc = await cases.post(store, "zebra.log", cases.LOG)
    await store.close()
    before = traces(tmp_path)
    reader = reader_in(tmp_path)
    assert (await reader.lines(name, LineWhere((doc.doc_id,)))).total == doc.n_lines
    assert await reader.list_collections("case_") == [name]
    assert await reader.describe("case_404") is None
    await reader.close()
    assert traces(tmp_path) == before


async def test_what_the_bot_writes_meanwhile_is_seen_and_what_it_deletes_is_gone(tmp_path: Path) -> None:
    """Pitfall 49: also while the bot has the file open."""
    store, reader, name = cases.new_store(tmp_path), reader_in(tmp_path), cases.case().name
    await cases.post(store, "zebra.log", cases.LOG)
    assert await store.describe(name) is not None, "it is open for reading"
    for posted in ("depot.log", "more.log"):
        await cases.post(store, posted, cases.OTHER_LOG)
        described = await reader.describe(name)
        assert described is not None
        assert posted in {doc.filename for doc in described.documents}
    await store.delete_collection(name)
    assert await reader.describe(name) is None
    await store.close()


async def test_nothing_can_be_written_or_deleted(tmp_path: Path) -> None:
    store, name = cases.new_store(tmp_path), cases.case().name
    doc = await cases.post(store, "zebra.log", cases.LOG)
    await store.close()
    reader = reader_in(tmp_path)
    for attempt in (
        reader.delete_collection(name),
        reader.delete_document(name, doc.doc_id),
        reader.fail(name, doc.doc_id, "no"),
        reader.add(cases.case(), [cases.new("more.log", cases.OTHER_LOG)]),
    ):
        with pytest.raises(StoreUnavailable):
            await attempt
    assert await reader.describe(name) is not None


async def test_a_file_that_changes_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    store, name = cases.new_store(tmp_path), cases.case().name
    await cases.post(store, "zebra.log", cases.LOG)
    await store.close()
    files, path = ReadOnlyFiles(cases.folders(tmp_path)), file_in(tmp_path)
    reads: list[int] = []

    def changing(times: int, error: sqlite3.Error | None = None) -> int:
        def work(_: OpenFile) -> int:
            reads.append(len(reads))
            if len(reads) <= times:
                path.touch()
                if error is not None:
                    raise error
            return len(reads)

        reads.clear()
        return files.look(name, work, 0)

    assert changing(0) == 1
    assert changing(2) == 3
    assert changing(2, sqlite3.DatabaseError("malformed")) == 3
    with pytest.raises(sqlite3.OperationalError, match="all the time"):
        changing(TRIES)


async def test_a_damaged_file_is_reported_at_once(tmp_path: Path) -> None:
    store, name = cases.new_store(tmp_path), cases.case().name
    await cases.post(store, "zebra.log", cases.LOG)
    await store.close()
    file_in(tmp_path).write_bytes(b"no database " * 1000)
    with pytest.raises(StoreUnavailable):
        await reader_in(tmp_path).describe(name)
