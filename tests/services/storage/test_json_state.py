"""JSON files: what is read of damaged ones, and what an edit leaves."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from services.storage import files, json_state
from services.storage.json_state import LineEdits, Record, edit_records, read_object, read_records, read_text


def test_text_that_is_not_there_is_empty_and_bytes_that_are_no_text_spoil_only_themselves(tmp_path: Path) -> None:
    path = tmp_path / "text"
    assert read_text(path) == ""
    path.write_bytes("größer".encode() + b"\xff!")
    assert read_text(path) == "größer\ufffd!"


@pytest.mark.parametrize("damage", ["{", "{}", '["x"]', '["5", null]', '["5"', '["5"]\0\0', "[1e400]", "[" * 100_000])
def test_ids_that_cannot_be_read_are_none(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "ids.json"
    path.write_text(damage)
    with pytest.raises(json_state.DamagedIds, match=f"^{re.escape(str(path))} is damaged, .*mend it by hand"):
        json_state.read_ids(path)


def test_an_object_that_cannot_be_read_is_empty_and_told_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "object.json"
    assert read_object(path) == {}
    path.write_text('{"a": 1}')
    assert read_object(path) == {"a": 1}
    path.write_text("{}")
    assert read_object(path) == {}
    assert caplog.messages == []
    for damage in ("{", "[]", "null", "[" * 100_000):
        caplog.clear()
        path.write_text(damage)
        assert read_object(path) == {}
        assert caplog.messages == [f"{path} is damaged and taken for empty"]


def test_of_lines_those_count_that_are_objects(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    assert read_records(path) == []
    path.write_bytes(b'{"n": 1}\n[]\n\n{"n": \xff}\n{"n": 2}\n{"n"')
    assert read_records(path) == [{"n": 1}, {"n": 2}]


def halved(record: Record) -> Record | None:
    """Odd ones are dropped, those without a number stay."""
    number = record.get("n")
    if number is None:
        return record
    record["n"] = number // 2
    return None if number % 2 else record


def test_an_edit_changes_and_drops_objects_and_leaves_the_other_lines_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(b'{"n":2}\r\n{"n":3}\n{ "m": 1 }\n\n{"n"\n \n{"n":4, "m":"\xc3\xa9"}')
    assert edit_records(path, halved) == LineEdits(changed=2, dropped=1, damaged=1)
    assert path.read_bytes() == b'{"n": 1}\n{ "m": 1 }\n\n{"n"\n \n' + json.dumps({"n": 2, "m": "é"}).encode() + b"\n"


def test_an_edit_in_which_nothing_changes_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lines.jsonl"
    assert edit_records(path, halved) == LineEdits()
    assert not path.exists()
    path.write_bytes(b'{"n":0}\n{"m":1}\n')

    def refused(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(files, "replace", refused)
    assert edit_records(path, halved) == LineEdits()


def test_an_edit_that_only_drops_or_only_changes_is_written(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    for before, after in ((b'{"n":1}\n', b""), (b'{"n":2}\n', b'{"n": 1}\n')):
        path.write_bytes(before)
        edit_records(path, halved)
        assert path.read_bytes() == after


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_what_is_no_file_is_not_edited(tmp_path: Path, kind: str) -> None:
    """Reading a pipe waits for a writer, and that of a device may never end."""
    path = tmp_path / "audit.jsonl"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(OSError, match="Not a file"):
        edit_records(path, halved)
