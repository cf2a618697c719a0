from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from model.messages import Attachment
from services.documents import thread_files
from services.documents.store.protocol import Origin
from services.documents.thread_files import Candidate, Tombstones

FILE = Candidate(
    case_id=7,
    guild_id=9,
    place_id=7,
    message_id=70,
    uploader_id=101,
    attachment=Attachment(700, "app.log", 12, ""),
    at=1000.0,
)
BLOCK = replace(FILE, attachment=Attachment(70, "message-70-block-1.log", 12, ""), text="x")
OTHER_BLOCK = replace(BLOCK, attachment=Attachment(70, "message-70-block-2.log", 12, ""))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "gone-files.json"


def kept(path: Path) -> dict[str, Any]:
    return cast("dict[str, Any]", json.loads(path.read_text()))


async def test_what_was_removed_is_known_after_a_restart_until_its_message_is_gone(path: Path) -> None:
    await Tombstones(path).add([FILE.origin, FILE.origin, BLOCK.origin, Origin("runbook.md")])
    again = Tombstones(path)
    assert [again.forbids(candidate) for candidate in (FILE, BLOCK, OTHER_BLOCK)] == [True, True, False]
    assert kept(path)["files"] == {"70": ["700", "message-70-block-1.log"]}
    await again.forget_messages([71])
    assert again.forbids(FILE)
    await again.forget_messages([70])
    assert not Tombstones(path).forbids(FILE)


async def test_of_a_closed_thread_only_later_files_are_read_and_that_is_announced_once(path: Path) -> None:
    gone = Tombstones(path)
    assert not gone.is_unannounced(7)
    await gone.close(7, 1000.0)
    assert gone.forbids(FILE)
    assert not gone.forbids(replace(FILE, at=1000.1))
    assert not gone.forbids(replace(FILE, case_id=8))
    assert Tombstones(path).is_unannounced(7)
    for _ in range(2):
        await gone.note_announced(7)
    assert not Tombstones(path).is_unannounced(7)
    assert Tombstones(path).forbids(FILE)
    await gone.close(7, 2000.0)
    assert gone.is_unannounced(7)


async def test_no_more_is_kept_than_there_is_room_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_files, "MAX_FILES", 2)
    monkeypatch.setattr(thread_files, "MAX_THREADS", 1)
    gone = Tombstones(path)
    for number in range(3):
        await gone.add([replace(FILE.origin, message_id=number)])
        await gone.close(number, 0.0)
    held = kept(path)
    assert (list(held["files"]), list(held["closed"])) == (["1", "2"], ["2"])


@pytest.mark.parametrize("content", ['{"files": 3, "closed": {}}', '{"files": {}, "closed": {"7": 1}}', "nonsense"])
def test_a_damaged_file_is_told_and_taken_for_empty(path: Path, caplog: pytest.LogCaptureFixture, content: str) -> None:
    path.parent.mkdir()
    path.write_text(content)
    with caplog.at_level(logging.WARNING):
        assert not Tombstones(path).forbids(FILE)
    assert "damaged" in caplog.text


async def test_without_a_path_it_is_known_for_as_long_as_the_process_lives() -> None:
    gone = Tombstones()
    await gone.add([FILE.origin])
    assert gone.forbids(FILE)
    assert not Tombstones().forbids(FILE)
