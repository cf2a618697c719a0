"""Folders that live in the log, on a real server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest
from nats.js import JetStreamContext

from clock import cancel_and_wait
from services.storage import FileChange, files
from tests.loopback.nats_server import NatsServer
from tests.transport.folders import contents, copied, opened
from tests.waiting import wait_until
from transport.connection import FileConnection
from transport.fenced_log import Fenced, erase_entry
from transport.folder_log import (
    FolderFollower,
    FolderPublisher,
    LogJournal,
    NotAPath,
    SupersededEntries,
    path_of,
    path_token,
    restore,
)
from transport.streams import BLOBS, LOG, read_stream

pytestmark = pytest.mark.real_time

SECONDS = 20.0


async def until(true: Callable[[], bool]) -> None:
    await wait_until(true, SECONDS)


async def blobs(file_connection: FileConnection) -> list[str]:
    store = await file_connection.do(file_connection.streams.object_store(BLOBS))
    with contextlib.suppress(Exception):
        return [each.name for each in await file_connection.do(store.list()) if not each.deleted]
    return []


def change_all(root: Path) -> None:
    files.replace(root / "state" / "ä b.json", b"one")
    files.replace(root / "state" / "gone.json", b"one")
    files.append(root / "lines.jsonl", b"{}\n")
    files.append(root / "lines.jsonl", b"[]")
    files.append(root / "lines.jsonl", b"x\n", own_line=True)
    files.truncate(root / "lines.jsonl", 5)
    files.append(root / "lines.jsonl", b"y\n", own_line=True)
    files.replace_derived(root / "index.txt", b"two")
    files.move_aside(root / "index.txt", ".old")
    files.remove(root / "state" / "gone.json")


async def test_a_copy_is_the_folder(file_connection: FileConnection, tmp_path: Path) -> None:
    log = await opened(file_connection)
    with files.use_journal(tmp_path / "one", LogJournal(file_connection, log)):
        await asyncio.to_thread(change_all, tmp_path / "one")
    assert await copied(file_connection, log, tmp_path / "two") == contents(tmp_path / "one") != {}


async def test_a_copy_writes_only_what_differs(file_connection: FileConnection, tmp_path: Path) -> None:
    log, copy = await opened(file_connection), tmp_path / "two"
    with files.use_journal(tmp_path / "one", LogJournal(file_connection, log)):
        change_all(tmp_path / "one")
    assert sorted(await file_connection.do(restore(log, copy))) == ["index.txt.old", "lines.jsonl", "state/ä b.json"]
    (copy / "lines.jsonl").write_bytes(b"something else, and longer")
    (copy / "state" / "more").write_bytes(b"x")
    (copy / "search.sqlite").write_bytes(b"its own")
    (copy / "elsewhere").write_bytes(b"x")
    assert await file_connection.do(restore(log, copy, ["state"])) == ["lines.jsonl", "state/more"]
    assert contents(copy) == {**contents(tmp_path / "one"), "search.sqlite": b"its own", "elsewhere": b"x"}


async def test_a_file_may_become_a_folder(file_connection: FileConnection, tmp_path: Path) -> None:
    log, one, copy = await opened(file_connection), tmp_path / "one", tmp_path / "two"
    with files.use_journal(one, LogJournal(file_connection, log)):
        files.replace(one / "a", b"file")
        files.replace(one / "b" / "c", b"below")
        await copied(file_connection, log, copy)
        files.remove(one / "a")
        files.remove_folder(one / "b")
        files.replace(one / "a" / "d", b"below")
        files.replace(one / "b", b"file")
    assert await copied(file_connection, log, copy) == contents(one) == {"a/d": b"below", "b": b"file"}


async def test_what_was_committed_before_a_crash_is_healed(file_connection: FileConnection, tmp_path: Path) -> None:
    """The log has the change, the disk does not."""
    log, root = await opened(file_connection), tmp_path / "one"
    journal = LogJournal(file_connection, log)
    with files.use_journal(root, journal):
        files.replace(root / "a", b"before")
        files.append(root / "b", b"before\n")
    for change in (
        FileChange("replace", "a", b"after"),
        FileChange("append", "b", b"after\n", 7),
        FileChange("replace", "c", b"c"),
    ):
        journal.commit(change)
    assert await copied(file_connection, log, root) == {"a": b"after", "b": b"before\nafter\n", "c": b"c"}


async def test_an_append_that_failed_on_the_disk_counts_once(
    file_connection: FileConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, root = await opened(file_connection), tmp_path / "one"

    def full(_descriptor: int, _data: bytes) -> None:
        raise OSError(28, "No space left on device")

    with files.use_journal(root, LogJournal(file_connection, log)):
        files.append(root / "b", b"one\n")
        with monkeypatch.context() as broken:
            broken.setattr(files, "write_all", full)
            with pytest.raises(OSError, match="No space left"):
                files.append(root / "b", b"two, which is tried again\n")
        files.append(root / "b", b"two\n")
    assert await copied(file_connection, log, tmp_path / "two") == contents(root) == {"b": b"one\ntwo\n"}


async def test_a_file_of_many_lines_is_told_as_a_whole_now_and_then(
    file_connection: FileConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transport.folder_log.MAX_ENTRIES", 3)
    log, root, copy = await opened(file_connection), tmp_path / "one", tmp_path / "two"
    follower = FolderFollower(file_connection, "p03", copy)
    following = asyncio.create_task(follower.run())
    await asyncio.wait_for(follower.wait_caught_up(), SECONDS)
    for _ in range(2):  # the second time by a process that has to find out what there is
        journal = LogJournal(file_connection, log)
        with files.use_journal(root, journal), journal.erasing():
            for number in range(5):
                files.append(root / "lines", f"{number}\n".encode())
    assert contents(root) == {"lines": b"0\n1\n2\n3\n4\n" * 2}
    assert await copied(file_connection, log, tmp_path / "three") == contents(root)
    assert await entries_of(file_connection, "p03") <= 3
    await until(lambda: contents(copy) == contents(root))
    await cancel_and_wait(following)


async def entries_of(file_connection: FileConnection, scope: str) -> int:
    info = await file_connection.do(file_connection.streams.stream_info(LOG, subjects_filter=f"log.{scope}.file.>"))
    return sum((info.state.subjects or {}).values())


async def test_a_late_change_is_neither_in_the_log_nor_on_the_disk(
    file_connection: FileConnection, tmp_path: Path
) -> None:
    former, late = await opened(file_connection), tmp_path / "late"
    with files.use_journal(late, LogJournal(file_connection, former)):
        files.replace(late / "a", b"early")
        log = await opened(file_connection, owner="b")
        for change in (lambda: files.replace(late / "a", b"late"), lambda: files.remove(late / "a")):
            with pytest.raises(Fenced):
                change()
    assert await copied(file_connection, log, tmp_path / "two") == contents(late) == {"a": b"early"}


async def test_large_contents_go_round_and_leave_no_garbage(file_connection: FileConnection, tmp_path: Path) -> None:
    log, root = await opened(file_connection), tmp_path / "one"
    large = bytes(range(256)) * 40_960
    with files.use_journal(root, LogJournal(file_connection, log)):
        files.replace(root / "a", large)
        files.append(root / "a", large[:600_000])
        files.move_aside(root / "a", ".old")
        files.replace(root / "b", large)
        assert await copied(file_connection, log, tmp_path / "two") == contents(root)
        assert len(await blobs(file_connection)) == 2
        files.replace(root / "b", large)  # the same again
        assert await copied(file_connection, log, tmp_path / "three") == contents(root)
    with files.use_journal(root, LogJournal(file_connection, log)):  # another process: it has to find out what there is
        files.replace(root / "b", b"small")
        assert len(await blobs(file_connection)) == 1
        files.remove(root / "a.old")
    assert await blobs(file_connection) == []


async def test_paths_that_lead_out_are_refused(file_connection: FileConnection, tmp_path: Path) -> None:
    log = await opened(file_connection)
    for path in ("../a", "/a", "a/../../b", "", ".", "a//b", "a/", "./a", "a\0b"):
        with pytest.raises(NotAPath):
            path_token(path)
    for path in ("a", "ä/b c.txt", "..a", "a..", "\udce4"):
        assert path_of(f"log.team.file.{path_token(path)}") == path
    foreign = {"Change": "replace"}
    await file_connection.do(log.append("file.Li4vYQ", b"../a", foreign))
    await file_connection.do(log.append("file.!", b"no token", foreign))
    await file_connection.do(log.append(f"file.{path_token('b')}", b"no kind", {"Change": "paint"}))
    assert await copied(file_connection, log, tmp_path / "two") == {}
    assert contents(tmp_path) == {}


async def test_publish_tells_what_differs_and_the_index_last(file_connection: FileConnection, tmp_path: Path) -> None:
    log, root = await opened(file_connection, "knowledge"), tmp_path / "one"
    for name in ("sources/b.md", "sources/deep/a.md", "index.txt", "other/c", "sources/.unfinished-1-1", "z.sqlite"):
        files.replace(root / name, name.encode())
    (root / "sources" / "again").symlink_to(root / "sources" / "deep")
    (root / "sources" / "round").symlink_to(root / "sources")
    (root / "sources" / "out.md").symlink_to(tmp_path / "secret")
    (tmp_path / "secret").write_bytes(b"secret")
    told: list[str] = []
    folders = ["index.txt", "sources"]
    done = await file_connection.do(FolderPublisher(log, root, folders, ["index.txt"]).publish(told.append))
    assert (done.published, done.removed) == (4, 0)
    assert told == ["sources/again/a.md", "sources/b.md", "sources/deep/a.md", "index.txt"]
    copy = await copied(file_connection, log, tmp_path / "two")
    assert copy == {path: (root / path).read_bytes() for path in told}
    done = await file_connection.do(FolderPublisher(log, root, folders, ["index.txt"]).publish())
    assert (done.published, done.removed) == (0, 0)
    files.replace(root / "sources" / "b.md", b"changed")
    files.remove(root / "sources" / "deep" / "a.md")
    done = await file_connection.do(FolderPublisher(log, root, folders, ["index.txt"]).publish())
    assert (done.published, done.removed) == (1, 2)
    assert sorted(await copied(file_connection, log, tmp_path / "two")) == ["index.txt", "sources/b.md"]


@pytest.mark.slow
async def test_a_follower_keeps_up_and_outlives_the_server(
    file_connection: FileConnection, tmp_path: Path, nats_server: NatsServer
) -> None:
    log, one, copy = await opened(file_connection, "team"), tmp_path / "one", tmp_path / "two"
    files.replace(copy / "old", b"of an earlier run")
    told: list[str] = []
    follower = FolderFollower(file_connection, "team", copy, on_change=told.extend)
    with files.use_journal(one, LogJournal(file_connection, log)):
        await asyncio.to_thread(change_all, one)
        following = asyncio.create_task(follower.run())
        await asyncio.wait_for(follower.wait_caught_up(), SECONDS)
        assert contents(copy) == contents(one)
        await until(lambda: sorted(told) == ["index.txt.old", "lines.jsonl", "old", "state/ä b.json"])
        await asyncio.to_thread(change_all, one)
        await asyncio.to_thread(files.append, one / "large", bytes(700_000))
        await until(lambda: contents(copy) == contents(one))
        await until(lambda: "large" in told)

        nats_server.end()
        writing = asyncio.create_task(asyncio.to_thread(files.append, one / "lines.jsonl", b"after\n"))
        nats_server.start()
        await writing
        await until(lambda: contents(copy) == contents(one))
        told.clear()
        await asyncio.to_thread(files.append, one / "lines.jsonl", b"more\n")
        await until(lambda: contents(copy) == contents(one) and "lines.jsonl" in told)
    await cancel_and_wait(following)
    assert following.cancelled()


async def test_a_change_is_told_of_although_something_seems_to_follow_it(
    file_connection: FileConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A beat of the server is counted with the messages that wait."""
    monkeypatch.setattr(JetStreamContext.PushSubscription, "pending_msgs", property(lambda _: 1))
    log, one, told = await opened(file_connection, "team"), tmp_path / "one", list[str]()
    follower = FolderFollower(file_connection, "team", tmp_path / "two", on_change=told.extend)
    following = asyncio.create_task(follower.run())
    await asyncio.wait_for(follower.wait_caught_up(), SECONDS)
    with files.use_journal(one, LogJournal(file_connection, log)):
        await asyncio.to_thread(files.replace, one / "a", b"1")
        await until(lambda: told == ["a"])
    await cancel_and_wait(following)
    assert following.cancelled()


async def test_a_copy_that_somebody_else_changed_is_made_again(file_connection: FileConnection, tmp_path: Path) -> None:
    log, one, copy = await opened(file_connection, "team"), tmp_path / "one", tmp_path / "two"
    follower = FolderFollower(file_connection, "team", copy)
    with files.use_journal(one, LogJournal(file_connection, log)):
        files.append(one / "lines", b"one\n")
        following = asyncio.create_task(follower.run())
        await asyncio.wait_for(follower.wait_caught_up(), SECONDS)
        (copy / "lines").unlink()
        await asyncio.to_thread(files.append, one / "lines", b"two\n")
        await until(lambda: contents(copy) == contents(one))
    await cancel_and_wait(following)


def held(root: Path, word: bytes) -> list[Path]:
    """The server's files that hold a word."""
    return [path for path in root.rglob("*.blk") if word in path.read_bytes()]


@pytest.mark.parametrize("size", [10, 600_000], ids=["in an entry", "in an object"])
async def test_what_is_forgotten_is_overwritten_in_the_servers_files(
    file_connection: FileConnection, nats_server: NatsServer, tmp_path: Path, size: int
) -> None:
    """H5."""
    log, one = await opened(file_connection), tmp_path / "one"
    journal = LogJournal(file_connection, log)
    with files.use_journal(one, journal):
        files.append(one / "words", b"blorptang" + b" " * size)
        files.append(one / "words", b"blorptang again")
        files.replace(one / "gone", b"blorptang")
        files.replace(one / "stays", b"quendry")
        assert held(nats_server.root, b"blorptang")
        with journal.erasing():
            files.replace(one / "words", b"[removed]")
            files.remove(one / "gone")
    assert not held(nats_server.root, b"blorptang")
    assert held(nats_server.root, b"quendry")
    assert await copied(file_connection, log, tmp_path / "two") == {"words": b"[removed]", "stays": b"quendry"}
    with files.use_journal(one, LogJournal(file_connection, log)):
        files.append(one / "words", b" and on")
    assert (await copied(file_connection, log, tmp_path / "two"))["words"] == b"[removed] and on"


def replaced(root: Path, size: int) -> None:
    files.replace(root / "words", b"blorptang one" + b" " * size)
    files.replace(root / "words", b"blorptang two" + b" " * size)
    files.replace(root / "words", b"nothing")


def removed(root: Path, size: int) -> None:
    files.append(root / "gone", b"blorptang" + b" " * size)
    files.remove(root / "gone")


def lines(root: Path, size: int) -> None:
    """Told as a whole after three."""
    for number in range(8):
        files.append(root / "lines", b"blorptang %d\n" % number + b" " * size)
    files.truncate(root / "lines", 9)


def torn(root: Path, size: int) -> None:
    files.append(root / "lines", b"one\n")
    files.append(root / "lines", b"blorptang" + b" " * size)
    files.truncate(root / "lines", 4)


def nothing(*_: object) -> None:
    """As in a process that is killed before it comes to that."""


async def nothing_now(*_: object) -> None:
    """Likewise."""


@pytest.mark.parametrize("size", [10, 600_000], ids=["in an entry", "in an object"])
@pytest.mark.parametrize("change", [replaced, removed, lines, torn])
@pytest.mark.parametrize("later", [False, True], ids=["by its writer", "by the next one"])
async def test_what_was_replaced_before_a_forgetting_is_overwritten_too(
    file_connection: FileConnection,
    nats_server: NatsServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Path, int], None],
    later: bool,
    size: int,
) -> None:
    monkeypatch.setattr("transport.folder_log.MAX_ENTRIES", 3)
    log, one = await opened(file_connection), tmp_path / "one"
    journal = LogJournal(file_connection, log)
    with monkeypatch.context() as killed, files.use_journal(one, journal):
        if later:
            killed.setattr(SupersededEntries, "add", nothing)
            killed.setattr("transport.folder_log.drop_blob", nothing_now)
        change(one, size)
    if later:
        journal = LogJournal(file_connection, log)
    with files.use_journal(one, journal), journal.erasing():
        if (one / "lines").exists():
            files.replace(one / "lines", b"[removed]")
    assert not held(nats_server.root, b"blorptang")
    assert await copied(file_connection, log, tmp_path / "two") == contents(one)


async def test_a_forgetting_waits_for_what_cannot_be_erased_now(
    file_connection: FileConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> None:
        raise TimeoutError

    log, one = await opened(file_connection), tmp_path / "one"
    journal = LogJournal(file_connection, log)
    with files.use_journal(one, journal):
        with monkeypatch.context() as silent:
            silent.setattr("transport.folder_log.erase_entry", away)
            silent.setattr("transport.folder_log.FILE_PATIENCE_SECONDS", 0.2)
            replaced(one, 10)
            with pytest.raises(OSError, match="does not erase"), journal.erasing():
                pass
        assert await entries_of(file_connection, "p03") == 3
        with journal.erasing():
            pass
    assert await entries_of(file_connection, "p03") == 1


async def test_a_file_is_told_as_a_whole_while_its_older_entries_are_erased(
    file_connection: FileConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They go one after another: what is left of them begins in the middle of the file."""
    monkeypatch.setattr("transport.folder_log.MAX_ENTRIES", 3)
    monkeypatch.setattr(SupersededEntries, "add", nothing)
    log, one = await opened(file_connection), tmp_path / "one"

    async def erase_first() -> None:
        entries = read_stream(file_connection.streams, LOG, "log.p03.file.>")
        numbers = [entry.metadata.sequence.stream async for entry in entries]
        await erase_entry(file_connection.streams, LOG, numbers[0])

    with files.use_journal(one, LogJournal(file_connection, log)):
        for number in range(8):
            files.append(one / "lines", b"%d\n" % number)
            if number == 3:
                await file_connection.do(erase_first())
    assert await copied(file_connection, log, tmp_path / "two") == contents(one)
