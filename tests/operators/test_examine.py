"""Files that change under the eyes of an update."""

from __future__ import annotations

from pathlib import Path

import pytest

from clock import rfc3339
from operators import examine as module
from operators.discover import gone
from operators.examine import examine
from services.knowledge.cache import FileFacts, Record
from services.knowledge.ledger import Ledger
from services.knowledge.updates import LeftOut, Settled, SourcePaths, Suspect, Trouble

SUSPECT = Suspect("guide.md", 5, 1)


async def events_after(folder: Path) -> list[object]:
    places = SourcePaths(folder, folder / "links.txt", folder / "web-cache", 1000)
    return list(await examine(Ledger(folder / "cache.json"), places, "key")([SUSPECT]))


async def test_a_file_that_is_gone_before_it_is_read_is_left_to_the_next_update(tmp_path: Path) -> None:
    assert await events_after(tmp_path) == [LeftOut("guide.md", "it is gone", SUSPECT)]


async def test_a_file_that_cannot_be_read_is_reported_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pitfall 11: trouble with reading is no reason to forget."""

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(module, "read_text", refuse)
    assert await events_after(tmp_path) == [Trouble("guide.md", "read", "Permission denied")]


@pytest.mark.parametrize(("hours", "events"), [(1, 0), (25, 1)])
def test_what_is_gone_is_remembered_for_a_day(hours: int, events: int) -> None:
    record = Record(
        source_type="file",
        content_hash="",
        summary_text="",
        summary_key="",
        last_indexed_at=rfc3339(0),
        summary_pending=False,
        file=FileFacts("guide.md", 5, 1),
    )
    (first,) = gone(record, 0.0)
    assert isinstance(first, Settled)
    assert len(list(gone(first.record, hours * 3600.0))) == events
