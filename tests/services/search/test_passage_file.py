"""What becomes of the passages when their file is damaged, of another format, or out of reach."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from services.search import PassageStore, passage_store
from tests.services.search.test_store import cut, embed, names

PAGE = 4096
LONG = " ".join(f"lever{number}" for number in range(20_000))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kb" / "search.sqlite"


@pytest.fixture
def kept(path: Path) -> Iterator[PassageStore]:
    """Holds one source."""
    made = PassageStore(path)
    made.change([cut("a.md", "one wheel")])
    yield made
    made.close()


def is_usable(store: PassageStore) -> bool:
    store.change([cut("a.md", "one wheel")])
    embed(store)
    return names(store, "wheel") == ["a.md"] and [each.text for each in store.section("kb:a.md", 0)] == ["one wheel"]


def test_a_damaged_file_is_begun_anew_and_said_so(
    path: Path, kept: PassageStore, caplog: pytest.LogCaptureFixture
) -> None:
    kept.close()
    path.write_bytes(b"no database " * 100)
    again = PassageStore(path)
    assert again.sources() == {}
    assert again.times_emptied == 1
    assert is_usable(again)
    again.close()
    assert names(PassageStore(path), "wheel") == ["a.md"]
    assert caplog.messages == [f"{path} is damaged (file is not a database); it is made anew from the sources"]


def test_a_file_that_is_damaged_behind_its_first_page_is_begun_anew_when_that_shows(
    path: Path, kept: PassageStore, caplog: pytest.LogCaptureFixture
) -> None:
    kept.close()
    data = path.read_bytes()
    path.write_bytes(data[:PAGE] + b"\xee" * (len(data) - PAGE))
    again = PassageStore(path)
    assert names(again, "wheel") == []
    assert is_usable(again)
    [line] = caplog.messages
    assert f"{path} is damaged (" in line


@pytest.mark.parametrize("writing", [False, True])
def test_a_file_that_is_damaged_while_it_is_open_is_begun_anew(
    path: Path, kept: PassageStore, writing: bool, caplog: pytest.LogCaptureFixture
) -> None:
    version = kept.version
    path.write_bytes(b"no database " * 1_000)
    if not writing:
        assert kept.section("kb:a.md", 0) == []
        assert names(kept, "wheel") == []
    assert is_usable(kept)
    assert kept.times_emptied == 1
    assert kept.version > version
    assert len(caplog.messages) == 1


def test_after_it_was_damaged_a_second_time_memory_takes_its_place(
    path: Path, kept: PassageStore, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        path.write_bytes(b"no database " * 1_000)
        assert is_usable(kept)
    assert kept.times_emptied == 2
    assert path.read_bytes() == b"no database " * 1_000
    first, second = caplog.messages
    assert "is damaged" in first
    assert second.startswith(f"{path} cannot be used (file is not a database)")
    assert second.endswith("; delete it: it is made anew")


def test_another_format_is_made_anew_and_keeps_the_vectors(
    path: Path, kept: PassageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    embed(kept)
    kept.close()
    monkeypatch.setattr(passage_store, "FORMAT", passage_store.FORMAT + 1)
    again = PassageStore(path)
    assert again.sources() == {}
    again.change([cut("a.md", "one wheel"), cut("b.md", "two wheels")])
    assert embed(again) == ["two wheels"]


def test_a_damaged_file_is_not_left_open(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect, opened = sqlite3.connect, list[sqlite3.Connection]()

    class Damaged(sqlite3.Connection):
        def execute(self, *_: Any) -> sqlite3.Cursor:
            raise sqlite3.DatabaseError("file is not a database")

    def noted(*args: Any, **more: Any) -> sqlite3.Connection:
        opened.append(connect(*args, factory=Damaged, **more))
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", noted)
    with pytest.raises(sqlite3.DatabaseError, match="not a database"):
        PassageStore(path).sources()
    assert opened
    for connection in opened:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.cursor()


def test_a_file_that_lacks_a_table_is_made_anew(path: Path, kept: PassageStore) -> None:
    kept.close()
    other = sqlite3.connect(path)
    other.execute("DROP TABLE sources")
    other.close()
    assert is_usable(PassageStore(path))


@pytest.mark.parametrize("read_only", [False, True])
def test_what_cannot_be_opened_stays_as_it_is_and_memory_takes_its_place(
    path: Path, read_only: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """What is out of reach is not damaged."""
    path.mkdir(parents=True)
    (path / "note").write_text("mine")
    store = PassageStore(path, read_only=read_only)
    assert store.sources() == {}
    assert is_usable(store)
    assert (path / "note").read_text() == "mine"
    [line] = caplog.messages
    assert line.startswith(f"{path} cannot be used (")
    if not read_only:  # then SQLite says "disk I/O error"
        assert "(unable to open database file)" in line
        assert line.endswith("until the next start; make the file and its folder readable and writable")


def test_where_no_folder_can_be_made_memory_takes_the_place_of_the_file(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path.parent.write_text("no folder")
    assert is_usable(PassageStore(path))
    [line] = caplog.messages
    assert f"{path} cannot be used (File exists)" in line
    assert "move that away" in line


def test_where_a_damaged_file_cannot_be_deleted_memory_takes_its_place(
    path: Path, kept: PassageStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_: Path) -> None:
        raise PermissionError(13, "Permission denied")

    kept.close()
    path.write_bytes(b"no database " * 100)
    monkeypatch.setattr("services.storage.files.remove", refuse)
    assert is_usable(PassageStore(path))
    [line] = caplog.messages
    assert f"{path} cannot be used (Permission denied)" in line


def test_what_another_process_holds_is_not_thrown_away(
    path: Path, kept: PassageStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    kept.close()
    monkeypatch.setattr(passage_store, "_BUSY_SECONDS", 0)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    assert is_usable(PassageStore(path))
    other.execute("COMMIT")
    other.close()
    [line] = caplog.messages
    assert "close what else has it open" in line
    assert PassageStore(path).sources().keys() == {"kb:a.md"}


def test_on_a_full_disk_nothing_changes_and_when_there_is_room_again_writing_goes_on(
    path: Path, kept: PassageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.close()
    connect, opened = passage_store.__dict__["_connect"], list[sqlite3.Connection]()

    def with_little_room(uri: str) -> sqlite3.Connection:
        opened.append(connect(uri))
        opened[-1].execute("PRAGMA max_page_count = 40")
        return opened[-1]

    monkeypatch.setattr(passage_store, "_connect", with_little_room)
    store = PassageStore(path)
    with pytest.raises(sqlite3.OperationalError, match="full"):
        store.change([cut("b.md", LONG)], drop=["kb:a.md"])
    with pytest.raises(sqlite3.OperationalError, match="full") as raised:
        store.change([cut("b.md", LONG)], drop=["kb:a.md"])
    assert store.trouble(raised.value) == f"{path} cannot be written (database or disk is full); make room"
    assert names(store, "wheel") == ["a.md"]
    assert store.times_emptied == 0
    opened[-1].execute("PRAGMA max_page_count = 4000")
    store.change([cut("b.md", LONG)])
    assert names(store, "lever7") == ["b.md"]
    store.close()


def test_what_is_deleted_is_overwritten(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pitfall 49. Some systems build SQLite so that it does this anyway."""
    connect = sqlite3.connect

    def without_default(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        connection = connect(*args, **kwargs)
        connection.execute("PRAGMA secure_delete = OFF")
        return connection

    monkeypatch.setattr(sqlite3, "connect", without_default)
    store = PassageStore(path)
    store.change([cut(f"{number}.md", f"The zebra has {number} stripes. " * 30) for number in range(50)])
    store.change((), drop=[f"kb:{number}.md" for number in range(49)])
    left = path.read_bytes()
    assert b"zebra has 49 stripes" in left
    assert b"zebra has 7 stripes" not in left
    store.close()
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_what_is_begun_anew_holds_no_text_and_no_word_and_keeps_its_vectors(path: Path, kept: PassageStore) -> None:
    """Pitfall 49."""
    kept.change([cut("b.md", "the zebra of the mill")])
    embed(kept)
    kept.change((), drop=["kb:b.md"])
    assert b"zebra" in path.read_bytes(), "the index of words marks them as gone, and no more"
    path.with_name(f"{path.name}-wal").write_text("zebra")
    version = kept.version
    kept.empty_file()
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert b"zebra" not in path.read_bytes()
    assert b"wheel" not in path.read_bytes()
    assert kept.sources() == {}
    assert (kept.times_emptied, kept.version > version) == (1, True)
    kept.change([cut("a.md", "one wheel")])
    assert embed(kept) == []
    assert names(kept, "wheel") == ["a.md"]


def test_in_memory_everything_can_be_begun_anew_too() -> None:
    store = PassageStore(None)
    store.change([cut("a.md", "one wheel")])
    store.empty_file()
    assert store.sources() == {}
    assert is_usable(store)


def test_a_file_that_cannot_be_deleted_is_told_of(path: Path) -> None:
    path.mkdir(parents=True)
    store = PassageStore(path)
    with pytest.raises(OSError, match=path.name):
        store.empty_file()


def test_a_mistake_of_ours_is_no_reason_to_throw_the_file_away(kept: PassageStore) -> None:
    with pytest.raises(sqlite3.Error):
        kept.change([cut("b.md", "two wheels")._replace(title={})])  # pyright: ignore[reportArgumentType]
    assert names(kept, "wheel") == ["a.md"]
    assert kept.times_emptied == 0
