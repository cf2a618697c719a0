"""The recorder."""

from __future__ import annotations

import asyncio
import logging
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import ClassVar

import pytest

from clock import now
from model.messages import Attachment
from services.discord.dispatches import Dispatch, render_line
from services.discord.recordings import BadRecording, read
from streams import recording as module
from streams.recording import Recorder, attachments_folder


def opted_out(_author_id: int, text: str) -> bool:
    return "!nobot" in text


def post(message_id: int, text: str = "hi", *files: int) -> Dispatch:
    d = {"id": str(message_id), "channel_id": "2", "author": {"id": "7"}, "content": text}
    return Dispatch(1567637086.25, "MESSAGE_CREATE", {**d, "attachments": [{"id": str(each)} for each in files]})


def record(path: Path, *dispatches: Dispatch, download: Callable[[Attachment], Awaitable[bytes]] | None = None) -> None:
    async def main() -> None:
        recorder = Recorder(path, opted_out=opted_out, download=download)
        for each in dispatches:
            recorder.write(each)
        await recorder.close()

    asyncio.run(main())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "live.jsonl"


def test_what_is_recorded_can_be_replayed(path: Path) -> None:
    wanted = [Dispatch(1567637086.0, "READY", {"user": {"id": "9"}}), post(1), post(2, "größer — 👍")]
    record(path, *wanted, post(3, "!nobot"), Dispatch(1567637087.0, "INTERACTION_CREATE", {"token": "x"}))
    assert list(read(path)) == wanted
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_each_line_is_in_the_file_at_once(path: Path) -> None:
    recorder = Recorder(path, opted_out=opted_out)
    recorder.write(post(1))
    assert list(read(path)) == [post(1)]
    asyncio.run(recorder.close())


@pytest.mark.parametrize("tail", ["", '{"at": "cut of'])
def test_recording_goes_on_in_the_same_file_also_after_a_crash(path: Path, tail: str) -> None:
    path.write_text(render_line(post(1)) + tail, encoding="utf-8")
    record(path, post(2))
    assert list(read(path)) == [post(1), post(2)]


def test_a_file_that_cannot_be_written_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(BadRecording, match="name another file"):
        Recorder(tmp_path, opted_out=opted_out)
    with pytest.raises(BadRecording, match="No such file"):
        Recorder(tmp_path / "no" / "a.jsonl", opted_out=opted_out)


def test_a_failing_disk_is_told_once_and_disturbs_nobody(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Disk:
        full = True

        def write(self, data: bytes) -> int:
            if self.full:
                raise OSError(28, "No space left on device")
            path.write_bytes(path.read_bytes() + data)
            return len(data)

        def close(self) -> None: ...

    recorder = Recorder(path, opted_out=opted_out)
    asyncio.run(recorder.close())
    monkeypatch.setattr(recorder, "_file", Disk())
    with caplog.at_level(logging.INFO):
        recorder.write(post(1))
        recorder.write(post(2))
        Disk.full = False
        recorder.write(post(3))
    assert len(caplog.messages) == 1
    assert "No space left" in caplog.text
    assert list(read(path)) == [post(3)]


def test_a_line_that_was_written_in_part_spoils_only_itself(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Nearly:
        def write(self, data: bytes) -> int:
            with path.open("ab", buffering=0) as file:
                return file.write(data[:20])

    recorder = Recorder(path, opted_out=opted_out)
    with monkeypatch.context() as patch:
        patch.setattr(recorder, "_file", Nearly())
        recorder.write(post(1))
    recorder.write(post(2))
    asyncio.run(recorder.close())
    assert [each.d["id"] for each in read(path)] == ["2"]
    assert "only a part" in caplog.text


def test_a_second_line_that_lacks_only_its_end_spoils_not_the_next(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Disk:
        left: ClassVar = [20, len(render_line(post(2))), 1_000]

        def write(self, data: bytes) -> int:
            with path.open("ab", buffering=0) as file:
                return file.write(data[: self.left.pop(0)])

        def close(self) -> None: ...

    recorder = Recorder(path, opted_out=opted_out)
    asyncio.run(recorder.close())
    monkeypatch.setattr(recorder, "_file", Disk())
    for number in (1, 2, 3):
        recorder.write(post(number))
    assert [each.d["id"] for each in read(path)] == ["2", "3"]


def test_attachments_are_saved_under_their_id_alone(path: Path) -> None:
    asked: list[int] = []

    async def download(file: Attachment) -> bytes:
        asked.append(file.id)
        return b"bytes of %d" % file.id

    record(path, post(1, "look", 55, 56), post(2, "!nobot", 57), post(3, "", 55), download=download)
    record(path, post(4, "", 55), download=download)
    folder = attachments_folder(path)
    assert folder == path.parent / "live.jsonl.attachments"
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == {"55": b"bytes of 55", "56": b"bytes of 56"}
    assert sorted(asked) == [55, 56]


def test_without_a_download_no_attachments_are_saved(path: Path) -> None:
    record(path, post(1, "look", 55))
    assert not attachments_folder(path).exists()


def test_a_failing_download_is_told_and_disturbs_nobody(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def download(file: Attachment) -> bytes:
        raise ConnectionError(f"https://cdn/secret/{file.id}")

    record(path, post(1, "look", 55), download=download)
    assert caplog.messages == ["attachment 55 is not recorded: ConnectionError"]
    assert list(read(path)) == [post(1, "look", 55)]


def test_downloads_are_bounded(path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    running: list[int] = []
    most = 0

    async def download(file: Attachment) -> bytes:
        nonlocal most
        running.append(file.id)
        most = max(most, len(running))
        await asyncio.sleep(0)
        running.remove(file.id)
        return b""

    monkeypatch.setattr(module, "DOWNLOADS_WAITING", 9)
    record(path, post(1, "", *range(50, 60)), download=download)
    assert most == module.DOWNLOADS_AT_ONCE
    assert len(list(attachments_folder(path).iterdir())) == 9
    assert caplog.messages == ["attachment 59 is not recorded: too many are waiting"]


async def test_the_end_waits_for_downloads_only_so_long(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def download(file: Attachment) -> bytes:
        await asyncio.sleep(3600 if file.id == 56 else 5)
        return b""

    recorder = Recorder(path, opted_out=opted_out, download=download)
    recorder.write(post(1, "look", 55, 56))
    began = now()
    await recorder.close(within=20)
    assert now() - began == 20
    assert [file.name for file in attachments_folder(path).iterdir()] == ["55"]
    assert caplog.messages == ["1 attachment not recorded: the downloads took too long"]
