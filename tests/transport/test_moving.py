"""An installation, told to NATS and made files again."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from services.conversations import Post, Watermark, read_posts, read_watermarks, render_watermarks
from services.conversations.drafts import render_draft
from services.conversations.posts import StartedReply, render_post, render_started
from services.llm import TokenDays, read_spent, read_token_days, render_token_days
from services.storage import DataFolder, files
from services.storage.json_state import read_ids, render_ids
from services.team import AuditLog, read_audit
from tests.services.conversations.made_drafts import made_draft
from tests.transport.folders import contents
from transport import folder_log
from transport.address import ServersUnusable
from transport.connection import FileConnection
from transport.fenced_log import FencedLog
from transport.folder_log import restore
from transport.members import Member, Members
from transport.migration import Installation, MigrationProgress, adopt, export, merge_partitions
from transport.streams import CAPTURES, MESSAGES, TEAM, Layout, partition_of, scope_of

pytestmark = pytest.mark.real_time

CHANNEL, THREAD, OTHER = 1_175_948_623_872_000_001, 1_175_948_623_872_000_777, 1_175_948_623_872_000_042
GUILD = 55
FIRST = Post(100.0, 9, THREAD, CHANNEL, 1, 8, opened_thread=True, question="How?", sources=("kb:a",))
SECOND = Post(200.5, 12, OTHER, OTHER, 2, 11, opened_thread=False, question="Why?", sources=())


def vote(message_id: int, at: str) -> bytes:
    return json.dumps({"at": at, "message_id": str(message_id), "vote": "up"}).encode() + b"\n"


def ended(place_id: int, at: str) -> bytes:
    return json.dumps({"at": at, "outcome": "replied", "channel_id": "1", "place_id": str(place_id)}).encode() + b"\n"


def installation(root: Path) -> DataFolder:
    folder = DataFolder(root)
    for post in (FIRST, SECOND):
        files.append(folder.posts, render_post(post))
    files.append(folder.feedback, vote(9, "2026-01-01T00:00:01.000Z") + vote(12, "2026-01-01T00:00:02.000Z"))
    files.append(folder.feedback, b"damaged\n" + vote(9, "2026-01-01T00:00:03.000Z"))
    day = folder.outcomes / "2026-01-01.jsonl"
    files.append(day, ended(CHANNEL, "2026-01-01T00:00:01.000Z") + ended(OTHER, "2026-01-01T00:00:02.000Z"))
    files.append(day, ended(CHANNEL, "2026-01-01T00:00:03.000Z"))
    started = StartedReply(replace(FIRST, last_asked_id=77), ("One.", "Two."), (77,), GUILD)
    files.replace(folder.outbox / "77.json", render_started(started))
    files.replace(folder.drafts / "78.json", render_draft(made_draft(78, channel_id=CHANNEL)))
    files.replace(
        folder.watermarks, render_watermarks({CHANNEL: Watermark(8, {10}), OTHER: Watermark(11), -GUILD: Watermark(3)})
    )
    files.replace(folder.token_days, render_token_days(TokenDays({"2026-01-01": {"gate": (1, 2, 3)}})))  # pyright: ignore[reportArgumentType]
    files.replace(folder.usage, b'{"day": 20000, "answers": 3, "tokens": 44, "begun": {"c0ffee0123456789": [1.5]}}')
    files.replace(folder.guilds / str(GUILD) / "state" / "usage.json", b'{"day": 20000, "answers": 1, "tokens": 2}')
    files.replace(folder.opt_outs, render_ids({5, 6}))
    files.replace(folder.shown_runbooks, render_ids({7}))
    gone = {"files": {"31": ["41", "code-1.py"]}, "closed": {"51": [1.5, True]}}
    files.replace(folder.tombstones, json.dumps(gone, indent=0).encode() + b"\n")
    files.replace(folder.feedback_key, b"k" * 64)
    files.replace(folder.last_report, b'{"until": 1}')
    AuditLog(folder.audit).note(1.0, "ana", "post draft", 78)
    for home in (root, folder.guilds / str(GUILD)):
        files.replace(home / "knowledge-base" / "index.txt", b"kb:a\nAbout a.\n")
        files.replace(home / "knowledge-base" / "sources" / "a.md", b"# A\n" * 200_000)
        files.replace(home / "knowledge-base" / "links.txt", b"https://example.org\n")
        files.replace(home / "team-knowledge" / "raw" / "2026-W01.txt", b"--- QA ---\n")
        files.replace(home / "team-knowledge" / "topics" / "gpu.txt", b"topic")
        files.replace(home / "team-knowledge" / "pending" / "1-2.capture", b"waits\n\0bytes")
    with closing(sqlite3.connect(_made(root / "evidence" / "case_1.sqlite"))) as database:
        database.execute("CREATE TABLE lines (line)")
        database.execute("INSERT INTO lines VALUES ('x')")
        database.commit()
    return folder


def _made(path: Path) -> Path:
    path.parent.mkdir(parents=True)
    return path


def rows(path: Path) -> list[tuple[str]]:
    with closing(sqlite3.connect(path)) as database:
        return database.execute("SELECT * FROM lines").fetchall()


def plain(root: Path) -> dict[str, bytes]:
    return {path: data for path, data in contents(root).items() if not path.endswith((".sqlite", "usage.json"))}


def test_partitions_do_not_change() -> None:
    """As `test_partitions_are_those_of_the_server` has found them."""
    assert [partition_of(each, 32) for each in (CHANNEL, THREAD, OTHER)] == [7, 15, 22]


def test_what_was_decided_in_several_partitions_is_merged_in_order(tmp_path: Path) -> None:
    for at, by, number in ((1.0, "ana", "3"), (3.0, "ana", "3"), (2.0, "bob", "5")):
        AuditLog(DataFolder(tmp_path / number).audit).note(at, by, "post draft", 7)
    merge_partitions([tmp_path / "3", tmp_path / "5"], tmp_path / "into")
    assert [each.by for each in read_audit(DataFolder(tmp_path / "into").audit)] == ["ana", "bob", "ana"]
    assert len(DataFolder(tmp_path / "into").audit.read_text().splitlines()) == 3


async def test_partitions_are_those_of_the_server(file_connection: FileConnection) -> None:
    ids = [CHANNEL + 977 * number * number for number in range(1000)]
    for channel_id in ids:
        await file_connection.do(file_connection.streams.publish(f"messages.{channel_id}", b"x", stream=MESSAGES))
    info = await file_connection.do(file_connection.streams.stream_info(MESSAGES, subjects_filter=">"))
    assert set(info.state.subjects or {}) == {f"messages.{partition_of(each, 32)}.{each}" for each in ids}


async def test_adopted_and_exported_an_installation_is_the_same(
    file_connection: FileConnection, tmp_path: Path
) -> None:
    before = installation(tmp_path / "before")
    moved = MigrationProgress()
    await file_connection.do(adopt(file_connection.streams, Layout(), Installation(before.root), moved))
    assert moved.collections == 1
    await file_connection.do(export(file_connection.streams, Layout(), tmp_path / "after", MigrationProgress()))
    after = DataFolder(tmp_path / "after")
    was, now = plain(before.root), plain(after.root)
    del now[".exported.json"]
    assert sorted(now) == sorted(was)
    different = {path for path in was if now[path] != was[path]}
    assert different == {"feedback.jsonl"}  # its damaged line is the first one now
    assert sorted(after.feedback.read_bytes().splitlines()) == sorted(before.feedback.read_bytes().splitlines())
    assert read_posts(after.posts) == [FIRST, SECOND]
    assert read_ids(after.opt_outs) == {5, 6}
    assert read_spent(after.usage) == read_spent(before.usage)
    assert rows(after.evidence / "case_1.sqlite") == [("x",)]
    # And back again, onto servers that hold the same.
    await file_connection.do(
        adopt(file_connection.streams, Layout(), Installation(before.root), again := MigrationProgress())
    )
    assert not again.paths


async def test_each_partition_gets_what_is_of_its_channels(file_connection: FileConnection, tmp_path: Path) -> None:
    before = installation(tmp_path / "before")
    await file_connection.do(adopt(file_connection.streams, Layout(), Installation(before.root), MigrationProgress()))

    async def part(place: int) -> DataFolder:
        name = scope_of(partition_of(place, 32))
        await file_connection.do(restore(FencedLog(file_connection.streams, name), tmp_path / name))
        return DataFolder(tmp_path / name)

    # A thread that the bot has opened is where its channel is; nothing tells where one of somebody else is.
    channel, thread, other = await part(CHANNEL), await part(THREAD), await part(OTHER)
    assert read_posts(channel.posts) == [FIRST, SECOND]
    assert read_posts(other.posts) == read_posts(thread.posts) == [SECOND]
    assert [path.name for path in channel.outbox.iterdir()] == ["77.json"]
    assert not other.outbox.exists()
    assert [path.name for path in channel.drafts.iterdir()] == ["78.json"]
    assert not other.drafts.exists()
    assert read_watermarks(channel.watermarks) == {CHANNEL: Watermark(8, {10})}
    assert (channel.outcomes / "2026-01-01.jsonl").read_bytes().count(b"\n") == 2
    assert channel.feedback.read_bytes().count(b"\n") == 2
    assert not thread.feedback.exists()
    nowhere = await part_of(file_connection, tmp_path, 0)
    assert read_watermarks(nowhere.watermarks)[-GUILD] == Watermark(3)
    assert b"damaged\n" in nowhere.feedback.read_bytes()
    assert not nowhere.opt_outs.exists()


async def part_of(file_connection: FileConnection, root: Path, number: int) -> DataFolder:
    await file_connection.do(restore(FencedLog(file_connection.streams, scope_of(number)), root / scope_of(number)))
    return DataFolder(root / scope_of(number))


async def test_partitions_are_added_up(file_connection: FileConnection, tmp_path: Path) -> None:
    """What several processes have counted and written since."""
    for number, root in enumerate((tmp_path / "one", tmp_path / "two")):
        folder = DataFolder(root)
        files.replace(folder.token_days, render_token_days(TokenDays({"2026-01-01": {"gate": (1, 2, number)}})))  # pyright: ignore[reportArgumentType]
        files.replace(
            folder.watermarks, render_watermarks({CHANNEL: Watermark(8 + number), -GUILD: Watermark(3 + number)})
        )
        files.replace(folder.posts, render_post(replace(FIRST, at=50.0 - number, message_id=number)))
        files.replace(folder.opt_outs, render_ids({number}))
        log = FencedLog(file_connection.streams, scope_of(number + 4))
        await file_connection.do(log.open("a", 1.0))
        await file_connection.do(entries_of(log, root))
    await file_connection.do(export(file_connection.streams, Layout(), tmp_path / "after", MigrationProgress()))
    after = DataFolder(tmp_path / "after")
    assert read_token_days(after.token_days).days == {"2026-01-01": {"gate": (2, 4, 1)}}
    assert read_watermarks(after.watermarks) == {CHANNEL: Watermark(9), -GUILD: Watermark(3)}
    assert [post.message_id for post in read_posts(after.posts)] == [1, 0]
    assert read_ids(after.opt_outs) == {0, 1}


async def entries_of(log: FencedLog, root: Path) -> None:
    for path, data in contents(root).items():
        await log.append(f"file.{folder_log.path_token(path)}", data, {"Change": "replace"})


async def test_configured_places_are_read(file_connection: FileConnection, tmp_path: Path) -> None:
    before = installation(tmp_path / "before")
    files.replace(tmp_path / "documents" / "b.md", b"elsewhere")
    files.replace(tmp_path / "library" / "gpu.txt", b"of the configured folder")
    outside_paths = {
        "knowledge-base/sources": tmp_path / "documents",
        "team-knowledge/topics": tmp_path / "library",
    }
    await file_connection.do(
        adopt(file_connection.streams, Layout(), Installation(before.root, outside_paths), MigrationProgress())
    )
    await file_connection.do(export(file_connection.streams, Layout(), tmp_path / "after", MigrationProgress()))
    after = DataFolder(tmp_path / "after")
    assert contents(after.sources) == {"b.md": b"elsewhere"}
    assert contents(after.team_topics) == {"gpu.txt": b"of the configured folder"}


async def test_an_adoption_that_was_cut_off_is_finished(
    file_connection: FileConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = installation(tmp_path / "before")
    full = Installation(before.root)
    monkeypatch.setattr("transport.migration.upload_people", _cut_off)
    with pytest.raises(OSError, match="cut off"):
        await file_connection.do(adopt(file_connection.streams, Layout(), full, MigrationProgress()))
    monkeypatch.undo()
    await file_connection.do(adopt(file_connection.streams, Layout(), full, MigrationProgress()))
    await file_connection.do(export(file_connection.streams, Layout(), tmp_path / "after", MigrationProgress()))
    assert sorted(plain(tmp_path / "after")) == sorted([*plain(before.root), ".exported.json"])


async def _cut_off(*_: object) -> None:
    raise OSError("cut off")


async def test_what_was_changed_in_an_exported_folder_is_brought_back(
    file_connection: FileConnection, tmp_path: Path
) -> None:
    """That is how a person is forgotten, and team knowledge corrected."""
    before = installation(tmp_path / "before")
    await file_connection.do(adopt(file_connection.streams, Layout(), Installation(before.root), MigrationProgress()))
    await file_connection.do(export(file_connection.streams, Layout(), tmp_path / "after", MigrationProgress()))
    after = DataFolder(tmp_path / "after")
    files.remove(after.posts)
    files.remove(after.evidence / "case_1.sqlite")
    files.replace(after.opt_outs, render_ids({6, 9}))
    files.replace(after.team_topics / "gpu.txt", b"corrected")
    files.remove_folder(after.team_knowledge / "pending")
    for _ in range(2):  # as one that was cut off is done again
        await file_connection.do(
            adopt(file_connection.streams, Layout(), Installation(after.root), MigrationProgress())
        )
    await file_connection.do(export(file_connection.streams, Layout(), tmp_path / "again", MigrationProgress()))
    mark = {".exported.json": b""}
    assert {**plain(tmp_path / "again"), **mark} == {**plain(after.root), **mark}
    assert list((tmp_path / "again" / "evidence").glob("*")) == []


async def test_what_nats_has_learned_since_an_export_is_not_lost(
    file_connection: FileConnection, tmp_path: Path
) -> None:
    before = installation(tmp_path / "before")
    await file_connection.do(adopt(file_connection.streams, Layout(), Installation(before.root), MigrationProgress()))
    await file_connection.do(export(file_connection.streams, Layout(), tmp_path / "after", MigrationProgress()))
    files.replace(tmp_path / "after" / "team-knowledge" / "topics" / "gpu.txt", b"corrected")
    log = FencedLog(file_connection.streams, TEAM)
    await file_connection.do(log.open("a process", 1.0))
    await file_connection.do(
        log.append(f"file.{folder_log.path_token('team-knowledge/new')}", b"x", {"Change": "replace"})
    )
    with pytest.raises(
        ServersUnusable, match=r"--adopt: NATS holds other data .* perhaps since this folder was exported"
    ):
        await file_connection.do(
            adopt(file_connection.streams, Layout(), Installation(tmp_path / "after"), MigrationProgress())
        )


async def test_servers_with_other_data_are_refused(file_connection: FileConnection, tmp_path: Path) -> None:
    before = installation(tmp_path / "before")
    log = FencedLog(file_connection.streams, TEAM)
    await file_connection.do(log.open("a", 1.0))
    await file_connection.do(
        log.append(f"file.{folder_log.path_token('team-knowledge/raw/x')}", b"x", {"Change": "replace"})
    )
    with pytest.raises(ServersUnusable, match=r"--adopt: NATS holds other data \(team: 'team-knowledge/raw/x'\)"):
        await file_connection.do(
            adopt(file_connection.streams, Layout(), Installation(before.root), MigrationProgress())
        )


async def test_processes_at_work_are_not_disturbed(file_connection: FileConnection, tmp_path: Path) -> None:
    before = installation(tmp_path / "before")
    await file_connection.do(Members(file_connection.streams, Member("host-1-ab", ("worker",))).send_heartbeat())
    with pytest.raises(
        ServersUnusable, match="--adopt: host-1-ab is at work with these servers; stop all processes first"
    ):
        await file_connection.do(
            adopt(file_connection.streams, Layout(), Installation(before.root), MigrationProgress())
        )


async def test_a_folder_with_something_in_it_is_not_written(file_connection: FileConnection, tmp_path: Path) -> None:
    files.replace(tmp_path / "after" / "a", b"x")
    with pytest.raises(ServersUnusable, match=r"--export: .*after is not an empty folder"):
        await file_connection.do(export(file_connection.streams, Layout(), tmp_path / "after", MigrationProgress()))
    assert contents(tmp_path) == {"after/a": b"x"}


async def test_what_is_on_its_way_is_counted(file_connection: FileConnection, tmp_path: Path) -> None:
    for subject, stream in ((f"messages.{CHANNEL}", MESSAGES), ("captures.1", CAPTURES), ("captures.2", CAPTURES)):
        await file_connection.do(file_connection.streams.publish(subject, b"x", stream=stream))
    await file_connection.do(
        export(file_connection.streams, Layout(), tmp_path / "after", moved := MigrationProgress())
    )
    assert (moved.messages, moved.captures) == (1, 2)


async def test_an_export_that_fails_leaves_nothing(
    file_connection: FileConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transport.migration.download_people", _cut_off)
    with pytest.raises(OSError, match="cut off"):
        await file_connection.do(export(file_connection.streams, Layout(), tmp_path / "after", MigrationProgress()))
    assert await asyncio.to_thread(lambda: list(tmp_path.iterdir())) == []
