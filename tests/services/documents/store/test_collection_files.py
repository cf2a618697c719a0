"""What only the embedded store can get wrong: files on disk."""

# pyright: reportPrivateUsage=false
# Whether memory is given back cannot be seen from outside.

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from services.documents.store import writing
from services.documents.store.collection_files import CollectionFiles, OpenFile
from services.documents.store.protocol import Collection, Origin
from tests.services.documents import cases

HERE, THERE = cases.case(1), cases.case(2)


def expect(files: CollectionFiles, collection: Collection, filename: str) -> None:
    name = collection.name
    files.transact(name, lambda connection: writing.expect(connection, name, Origin(filename)), (collection, 1.0))


def filenames(files: CollectionFiles, collection: Collection) -> Sequence[str]:
    def work(file: OpenFile) -> Sequence[str]:
        return [doc.filename for doc in writing.describe(file.connection, 0).documents]

    return files.look(collection.name, work, [])


def opened(files: CollectionFiles, collection: Collection) -> OpenFile:
    """A collection with its passages in memory."""

    def work(file: OpenFile) -> list[OpenFile]:
        file.frame_for("")
        return [file]

    return files.look(collection.name, work, [])[0]


def is_open(file: OpenFile) -> bool:
    try:
        file.connection.execute("SELECT 1")
    except sqlite3.ProgrammingError:
        return False
    return True


def test_whoever_reads_while_a_collection_is_deleted_holds_on_to_nothing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = CollectionFiles(cases.folders(tmp_path))
    expect(files, HERE, "shop.log")
    assert filenames(files, HERE) == ["shop.log"]
    unlink, seen = Path.unlink, list[str]()

    def reading_meanwhile(path: Path, missing_ok: bool = False) -> None:
        seen.append(files.look(HERE.name, lambda file: f"{file.path} was opened", "nothing"))
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", reading_meanwhile)
    assert files.delete(HERE.name)
    monkeypatch.undo()
    assert seen == ["nothing"] * 3
    assert not files.delete(HERE.name)
    assert filenames(files, HERE) == []
    expect(files, HERE, "depot.log")
    assert filenames(files, HERE) == ["depot.log"]
    files.close()


@pytest.mark.parametrize(
    ("kept_open", "kept_bytes", "stays"), [(1, 1_000_000, False), (2, 1, False), (2, 1_000_000, True)]
)
async def test_the_file_used_least_recently_is_closed_when_there_are_too_many_or_they_are_too_large(
    tmp_path: Path, kept_open: int, kept_bytes: int, stays: bool
) -> None:
    store = cases.new_store(tmp_path)
    await cases.post(store, "shop.log", cases.LOG, 1)
    await cases.post(store, "depot.log", cases.OTHER_LOG, 2)
    await store.close()
    files = CollectionFiles(cases.folders(tmp_path), kept_bytes=kept_bytes, kept_open=kept_open)
    first, second = opened(files, HERE), opened(files, THERE)
    assert (is_open(first), is_open(second)) == (stays, True)
    assert filenames(files, HERE) == ["shop.log"]
    files.close()
    assert not is_open(second)


def test_of_threads_that_are_over_hardly_anything_stays_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.documents.store.collection_files.KEPT_ENDED", 3)
    files = CollectionFiles(cases.folders(tmp_path))
    for number in range(1, 8):
        expect(files, cases.case(number), "shop.log")
        assert files.delete(cases.case(number).name)
    files.close()
    assert len(files._writing) == 0
    assert len(files._ended) == 3


def test_a_file_that_is_for_the_larger_part_empty_gives_it_back_to_the_disk(tmp_path: Path) -> None:
    """Else who has deleted a large file would have those who posted small ones in that thread pay for it."""
    files = CollectionFiles(cases.folders(tmp_path))
    expect(files, HERE, "small.log")
    (path,) = tmp_path.rglob("*.sqlite")
    size = path.stat().st_size

    def grow(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE documents SET error = ?", ("x" * 1_000_000,))

    def shrink(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE documents SET error = ''")

    files.transact(HERE.name, grow, None)
    files.empty_log(HERE.name)
    assert path.stat().st_size > 1_000_000
    files.transact(HERE.name, shrink, None)
    files.empty_log(HERE.name)
    assert path.stat().st_size <= size
    assert filenames(files, HERE) == ["small.log"]
    files.close()
