from __future__ import annotations

import os
from pathlib import Path

import pytest

from services.storage import files
from services.team import archive_files
from services.team.archive import Pair, PairTurn, Speaker, qa_id, render


def pair(timestamp: str, text: str = "Why?") -> Pair:
    turns = (PairTurn(Speaker.USER, text), PairTurn(Speaker.TEAM, "So."))
    return Pair(qa_id(timestamp), timestamp, timestamp, "reply_1", (1, 2), (3, 4), turns)


FIRST, SECOND, THIRD = (pair(f"2026-02-01T03:10:5{n}.000000Z") for n in (1, 2, 3))


def test_the_files_of_an_archive_are_those_of_its_weeks_oldest_first(tmp_path: Path) -> None:
    assert archive_files.week_files(tmp_path / "none") == []
    for name in ("2026-W05.txt", "2025-W52.txt", "2026-W05.txt.torn", "notes.txt", ".unfinished-1"):
        (tmp_path / name).touch()
    assert [path.name for path in archive_files.week_files(tmp_path)] == ["2025-W52.txt", "2026-W05.txt"]


def test_the_newest_pairs_are_read_from_the_newest_files(tmp_path: Path) -> None:
    for name, block in (("2025-W52.txt", FIRST), ("2026-W01.txt", SECOND), ("2026-W05.txt", THIRD)):
        (tmp_path / name).write_text(render(block))
    assert archive_files.pairs_in(tmp_path, 2) == [SECOND, THIRD]
    assert archive_files.pairs_in(tmp_path) == [FIRST, SECOND, THIRD]
    assert archive_files.last_timestamp(tmp_path) == THIRD.timestamp


def test_a_file_from_elsewhere_may_lack_its_last_empty_line_and_hold_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "from elsewhere.txt"
    for end in ("", "\n", "\n\n", "\r\n\r\n\n"):
        path.write_bytes((render(FIRST) + render(SECOND).rstrip("\n") + end).encode())
        assert archive_files.pairs_of(path) == [FIRST, SECOND]
    path.write_bytes(render(FIRST).encode().replace(b"Why?", b"Why\xff?"))
    assert [each.turns[0].text for each in archive_files.pairs_of(path)] == ["Why\ufffd?"]


def test_bytes_that_are_no_text_spoil_only_themselves(tmp_path: Path) -> None:
    data = (render(FIRST) + render(SECOND)).encode().replace(b"Why?", b"Why\xff?", 1)
    (tmp_path / "2026-W05.txt").write_bytes(data)
    assert [each.turns[0].text for each in archive_files.pairs_in(tmp_path)] == ["Why\ufffd?", "Why?"]
    assert archive_files.last_timestamp(tmp_path) == SECOND.timestamp


@pytest.mark.parametrize(
    ("begins", "expected"),
    [(b"--- QA ---\n", True), (b"\xef\xbb\xbf--- QA ---\r\n", True), (b"", False), (b"\xff\xfe--- QA ---", False)],
)
def test_an_archive_is_told_by_its_beginning(tmp_path: Path, begins: bytes, expected: bool) -> None:
    path = tmp_path / "some.txt"
    path.write_bytes(begins)
    assert archive_files.is_archive(path) is expected


def test_an_empty_archive_has_no_last_time_stamp(tmp_path: Path) -> None:
    assert archive_files.last_timestamp(tmp_path) is None
    (tmp_path / "2026-W05.txt").touch()
    assert archive_files.last_timestamp(tmp_path) is None


def test_a_file_without_a_sound_block_sends_on_to_the_one_before(tmp_path: Path) -> None:
    (tmp_path / "2026-W04.txt").write_text(render(FIRST))
    (tmp_path / "2026-W05.txt").write_text(render(SECOND)[:-1])
    (tmp_path / "2026-W06.txt").write_text("--- QA ---\nnonsense\n\n")
    assert archive_files.last_timestamp(tmp_path) == FIRST.timestamp


def test_a_malformed_last_block_sends_on_to_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "2026-W05.txt"
    path.write_text(render(FIRST) + render(SECOND) + "--- QA ---\nid: qa_99991231_235959\n\n")
    assert archive_files.last_pair(path) == SECOND


@pytest.mark.parametrize("size", [5, 1000, files.TAIL_BYTES - 100, files.TAIL_BYTES * 5])
def test_however_long_the_last_block_is_it_is_found(size: int, tmp_path: Path) -> None:
    path = tmp_path / "2026-W05.txt"
    long = pair(SECOND.timestamp, "é\n" * (size // 3))
    path.write_text(render(FIRST) + render(long))
    assert archive_files.last_pair(path) == long
    path.write_text(render(long).replace("\n", "\r\n"))
    assert archive_files.last_pair(path) == long


def test_only_the_end_of_the_newest_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "2026-W04.txt").write_text(render(FIRST))
    with (tmp_path / "2026-W05.txt").open("w") as file:
        for number in range(20_000):
            file.write(render(pair(f"2026-02-01T03:10:51.{number:06}Z")))
    read: list[int] = []
    real = files.read_tail

    def tail(path: Path, length: int) -> bytes:
        data = real(path, length)
        read.append(len(data))
        return data

    monkeypatch.setattr(files, "read_tail", tail)
    assert archive_files.last_timestamp(tmp_path) == "2026-02-01T03:10:51.019999Z"
    assert read == [files.TAIL_BYTES]


def test_a_torn_end_is_moved_aside_and_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Pitfall 48."""
    path = tmp_path / "2026-W05.txt"
    for end in (render(SECOND)[:-1], render(THIRD)[:40]):
        path.write_text(render(FIRST) + end)
        archive_files.repair_tail(path)
        assert path.read_text() == render(FIRST)
    assert (tmp_path / "2026-W05.txt.torn").read_text() == f"{render(SECOND)[:-1]}\n{render(THIRD)[:40]}\n"
    assert f"{path}: a truncated last block ({len(render(SECOND)) - 1} bytes" in caplog.messages[0]


def test_a_torn_block_longer_than_one_look_is_moved_whole(tmp_path: Path) -> None:
    path = tmp_path / "2026-W05.txt"
    end = render(pair(SECOND.timestamp, "x\n" * files.TAIL_BYTES))[:-1]
    for sound in (render(FIRST), ""):
        path.write_text(sound + end)
        archive_files.repair_tail(path)
        assert path.read_text() == sound
    assert (tmp_path / "2026-W05.txt.torn").read_text() == f"{end}\n{end}\n"


def test_a_sound_file_or_none_is_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "2026-W05.txt"
    archive_files.repair_tail(path)
    path.write_text(render(FIRST) + "\n")
    archive_files.repair_tail(path)
    assert path.read_text() == render(FIRST) + "\n"
    assert os.listdir(tmp_path) == [path.name]  # noqa: PTH208 (names are what is asked for)
    assert caplog.messages == []
