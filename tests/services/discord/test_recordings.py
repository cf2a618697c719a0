"""Recordings and exports as streams of dispatches."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from model.messages import snowflake_time
from services.discord import recordings
from services.discord.dispatches import Dispatch, render_line
from services.discord.recordings import BadRecording, read

SHARED = Path(__file__).parents[4] / "shared" / "recordings"


def post(message_id: int, at: float | None = None) -> Dispatch:
    time = snowflake_time(message_id) if at is None else at
    return Dispatch(time, "MESSAGE_CREATE", {"id": str(message_id), "channel_id": "2", "author": {"id": "7"}})


def record(path: Path, *dispatches: Dispatch) -> Path:
    path.write_text("".join(map(render_line, dispatches)), encoding="utf-8")
    return path


def export(path: Path, *ids: int, **channel: object) -> Path:
    messages = [{"id": str(each), "type": "Default", "author": {"id": "7", "name": "ada"}} for each in ids]
    about = {"id": "20", "type": "GuildTextChat", "name": "help", **channel}
    path.write_text(json.dumps({"guild": {"id": "1"}, "channel": about, "messages": messages}), encoding="utf-8")
    return path


def ids(dispatches: list[Dispatch]) -> list[str]:
    return [str(each.d["id"]) for each in dispatches if each.t == "MESSAGE_CREATE"]


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recordings of real chats are not here")
@pytest.mark.parametrize(("name", "messages"), [("stripe-0", 1200), ("rust-2", 1188)])
def test_recordings_of_real_chats_are_read_whole_and_rendered_alike(name: str, messages: int) -> None:
    path = SHARED / f"{name}.jsonl"
    dispatches = list(read(path))
    assert [each.t for each in dispatches[:2]] == ["READY", "GUILD_CREATE"]
    assert len(ids(dispatches)) == messages
    assert [json.loads(render_line(each)) for each in dispatches] == [
        json.loads(line) for line in path.read_bytes().splitlines()
    ]


def test_a_recording_keeps_its_order_and_every_type(tmp_path: Path) -> None:
    wanted = [post(9 << 22), post(1 << 22), Dispatch(0.0, "TYPING_START", {}), post(1 << 22)]
    assert list(read(record(tmp_path / "a.jsonl", *wanted))) == wanted


def test_bad_lines_are_reported_with_their_number_and_skipped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "a.jsonl"
    good = render_line(post(1)).encode()
    path.write_bytes(b"\xef\xbb\xbf" + good + b"\n{oops\n" + b"\xff\xfe\n" + good + b'{"at": "cut off')
    with caplog.at_level(logging.WARNING):
        assert len(list(read(path))) == 2
    told = [message.removeprefix(f"{path}, ") for message in caplog.messages]
    assert [message.split(":")[0] for message in told] == ["line 3", "line 4", "line 6"]


def test_of_many_bad_lines_some_are_named_and_the_others_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(render_line(post(1)) + "oops\n" * 40)
    assert len(list(read(path))) == 1
    assert len(caplog.messages) == 11
    assert caplog.messages[-1] == f"{path}: 30 other lines skipped as well"


@pytest.mark.parametrize("content", [b"", b"\n\n", b"not json\n", b'{"guild": {}}\n', b"[]", b"\xff", b"{"])
def test_a_file_without_any_valid_line_is_an_error_with_a_remedy(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    with pytest.raises(BadRecording, match="no valid line") as caught:
        list(read(path))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caplog.messages == []


def test_a_file_that_cannot_be_read_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.jsonl", tmp_path):
        with pytest.raises(BadRecording, match="cannot be read") as caught:
            list(read(path))
        assert str(path) in str(caught.value)


def test_nothing_is_read_before_it_is_asked_for(tmp_path: Path) -> None:
    path = record(tmp_path / "a.jsonl", *(post(each) for each in range(2000)))
    stream = read(path)
    assert next(stream).d["id"] == "0"
    path.write_bytes(b"")
    assert len(list(stream)) < 1999


def test_several_files_are_merged_by_time_and_repeat_no_message(tmp_path: Path) -> None:
    live = record(tmp_path / "a.jsonl", Dispatch(0.0, "READY", {}), *(post(each << 22) for each in (1, 3, 5)))
    late = record(tmp_path / "b.jsonl", post(3 << 22, at=snowflake_time(4 << 22)))
    old = export(tmp_path / "c.json", *(each << 22 for each in (2, 3, 6)))
    merged = list(read(live, late, old))
    assert ids(merged) == [str(each << 22) for each in (1, 2, 3, 5, 6)]
    assert [each.t for each in merged].count("READY") == 1


def test_the_memory_for_repeated_messages_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recordings, "MAX_REMEMBERED_IDS", 2)
    paths = [record(tmp_path / name, *(post(each << 22) for each in (1, 2, 3, 4))) for name in ("a", "b")]
    assert ids(list(read(*paths))) == [str(each << 22) for each in (1, 2, 3, 4)]
    again = record(tmp_path / "c", post(9 << 22), post(8 << 22), post(7 << 22), post(9 << 22))
    assert len(ids(list(read(again, paths[0])))) == 8


def test_exports_begin_like_recordings_though_they_know_no_bot(tmp_path: Path) -> None:
    dispatches = list(
        read(export(tmp_path / "a.json", 1 << 22, 2 << 22), export(tmp_path / "b.json", 3 << 22, id="21"))
    )
    assert [each.t for each in dispatches] == [
        "READY",
        "GUILD_CREATE",
        *["MESSAGE_CREATE"] * 2,
        "GUILD_CREATE",
        "MESSAGE_CREATE",
    ]
    assert dispatches[0].d == {"user": {"id": "0", "username": "bot", "bot": True}}
    assert dispatches[0].at == dispatches[1].at == snowflake_time(1 << 22)


def test_an_empty_export_is_left_out_unless_there_is_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    empty, full = export(tmp_path / "a.json"), export(tmp_path / "b.json", 1)
    assert ids(list(read(empty, full))) == ["1"]
    assert caplog.messages == [f"{empty}: an export without messages"]
    with pytest.raises(BadRecording, match="no messages in this export"):
        list(read(empty))


def test_direct_messages_are_refused(tmp_path: Path) -> None:
    for kind in ("DirectTextChat", "DirectGroupTextChat"):
        with pytest.raises(BadRecording, match="direct messages"):
            list(read(export(tmp_path / "a.json", 1, type=kind)))
