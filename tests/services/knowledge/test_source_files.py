"""Files that change while an update runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from clock import rfc3339
from operators.updating import events_of_missing
from services.knowledge.source_files import FileFacts, FileRecord, TextFiles
from services.knowledge.source_kinds import LeftOut, Trouble, UpToDate
from services.storage import confined
from tests.shelves import source_setup


async def test_a_file_that_is_gone_before_it_is_read_is_left_to_the_next_update(tmp_path: Path) -> None:
    found = await TextFiles(source_setup(tmp_path, 1000)).fetch({"guide.md": None})
    assert found == [LeftOut("guide.md", "it is gone")]


async def test_a_file_that_cannot_be_read_is_reported_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pitfall 11: trouble with reading is no reason to forget."""

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(confined, "read", refuse)
    found = await TextFiles(source_setup(tmp_path, 1000)).fetch({"guide.md": None})
    assert found == [Trouble("guide.md", "read", "Permission denied")]


@pytest.mark.parametrize(("hours", "events"), [(1, 0), (25, 1)])
def test_what_is_gone_is_remembered_for_a_day(tmp_path: Path, hours: int, events: int) -> None:
    files = TextFiles(source_setup(tmp_path, 1000))
    record = FileRecord.new(rfc3339(0), file=FileFacts("guide.md", 5, 1))
    (first,) = events_of_missing(record, files, 0.0)
    assert isinstance(first, UpToDate)
    assert len(list(events_of_missing(first.record, files, hours * 3600.0))) == events
