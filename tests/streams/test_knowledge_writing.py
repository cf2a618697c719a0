"""Cache and index: when they are written, and what happens to damaged ones."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest
import reactivex as rx
from reactivex.subject import Subject

from services.knowledge.source_kinds import UpdateEvent, UpdateReport
from services.storage import files
from streams.knowledge import knowledge
from tests.shelves import Shelf


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    made = Shelf(tmp_path)
    for number in range(40):
        made.write(f"{number:02}.md", f"Subject {number}\n")
    return made


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []
    replace = files.replace

    def counting(path: Path, data: bytes) -> None:
        names.append(path.name)
        replace(path, data)

    monkeypatch.setattr("services.storage.files.replace", counting)
    return names


async def test_cache_and_index_are_written_rarely(shelf: Shelf, written: list[str]) -> None:
    """Pitfall 37."""
    shelf.describer.seconds = 0.01
    await shelf.update()
    assert len(written) <= 4


async def test_a_slow_run_is_written_every_twentieth_of_the_sources(shelf: Shelf, written: list[str]) -> None:
    shelf.describer.seconds, shelf.descriptions_at_once = 3, 1
    running = asyncio.create_task(shelf.update())
    await asyncio.sleep(7)
    assert shelf.ids == ["00.md", "01.md"]
    await running
    assert written.count("index-cache.json") == written.count("index.txt") == 20


async def test_a_very_slow_run_is_written_every_half_a_minute(shelf: Shelf, written: list[str]) -> None:
    shelf.describer.seconds, shelf.descriptions_at_once = 25, 1
    running = asyncio.create_task(shelf.update())
    await asyncio.sleep(31)
    assert shelf.ids == ["00.md"]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await asyncio.sleep(1)
    assert written.count("index.txt") == 1


async def test_a_deleted_or_spoilt_index_is_rebuilt_from_the_cache(shelf: Shelf) -> None:
    """Pitfall 40."""
    await shelf.update()
    index = shelf.index.read_bytes()
    shelf.index.unlink()
    await shelf.update(again=True)
    assert shelf.index.read_bytes() == index
    for damage in (b"", b"kb:00.md\nForged\n", index[:100]):
        shelf.index.write_bytes(damage)
        await shelf.update()
        assert shelf.index.read_bytes() == index
        assert shelf.describer.asked == []


async def test_a_crash_between_cache_and_index_is_mended_by_the_next_update(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pitfall 40: the cache is written first, so that no description is lost or paid for twice."""
    replace = files.replace

    def crashing(path: Path, data: bytes) -> None:
        if path == shelf.index:
            raise OSError(5, "crashed", str(path))
        replace(path, data)

    await shelf.update()
    shelf.write("07.md", "Changed\n")
    with monkeypatch.context() as patch:
        patch.setattr("services.storage.files.replace", crashing)
        await shelf.update()
        assert "About Changed" not in shelf.entries
    await shelf.update()
    assert shelf.describer.asked == []
    assert "About Changed" in shelf.entries


async def test_a_deleted_cache_is_written_again_by_whoever_has_it_in_memory(shelf: Shelf) -> None:
    await shelf.update()
    cache = shelf.records
    shelf.cache.unlink()
    await shelf.update(again=True)
    assert shelf.records == cache


async def test_an_index_without_cache_and_sources_is_left_alone(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    shelf.index.write_text("kb:by-hand.md\nMade by hand\n")
    report = await shelf.update()
    assert report.descriptions == 0
    assert shelf.ids == ["by-hand.md"]


async def test_a_cache_that_cannot_be_read_is_no_empty_cache(shelf: Shelf) -> None:
    await shelf.update()
    index = shelf.index.read_bytes()
    kept = shelf.cache.rename(shelf.cache.with_name("kept"))
    shelf.cache.mkdir()
    report = await shelf.update()
    assert [(trouble.about, trouble.fatal) for trouble in report.troubles] == [(str(shelf.cache), True)]
    assert shelf.describer.asked == []
    assert shelf.index.read_bytes() == index
    shelf.cache.rmdir()
    kept.rename(shelf.cache)
    await shelf.update(again=True)
    assert shelf.describer.asked == []


async def test_one_bad_record_costs_one_description(shelf: Shelf, caplog: pytest.LogCaptureFixture) -> None:
    """Pitfall 12."""
    await shelf.update()
    shelf.doctor(lambda content: content["sources"]["07.md"].update(content_hash=7))
    await shelf.update()
    assert shelf.describer.asked == ["07.md"]
    assert "07.md" in caplog.text


async def test_a_torn_cache_costs_what_was_torn(shelf: Shelf) -> None:
    await shelf.update()
    whole = shelf.cache.read_bytes()
    shelf.cache.write_bytes(whole[: len(whole) // 2])
    await shelf.update()
    assert 15 < len(shelf.describer.asked) < 25
    assert len(shelf.ids) == 40


async def test_a_file_that_cannot_be_written_is_a_trouble_and_tried_again(shelf: Shelf) -> None:
    shelf.index.mkdir()
    report = await shelf.update()
    assert {trouble.about for trouble in report.troubles} == {str(shelf.index)}
    shelf.index.rmdir()
    report = await shelf.update(again=True)
    assert not report.troubles
    assert len(shelf.ids) == 40


async def test_updates_never_overlap_and_triggers_meanwhile_cause_one_more(shelf: Shelf) -> None:
    shelf.describer.seconds = 5
    triggers: Subject[object] = Subject()
    reports: list[UpdateReport] = []
    ended: list[bool] = []
    parts = shelf.begin()

    def see(event: UpdateEvent | UpdateReport) -> None:
        if isinstance(event, UpdateReport):
            reports.append(event)

    knowledge(triggers, parts).subscribe(see, on_completed=lambda: ended.append(True))
    for _ in range(4):
        triggers.on_next(None)
        await asyncio.sleep(1)
    triggers.on_completed()
    await asyncio.sleep(100)
    assert len(reports) == 2
    assert len(shelf.describer.asked) == 40
    assert ended == [True]


async def test_what_a_cut_off_update_has_done_can_still_be_written(shelf: Shelf) -> None:
    shelf.describer.seconds, shelf.descriptions_at_once = 3, 1
    parts = shelf.begin()
    subscription = knowledge(rx.of(None), parts).subscribe()
    await asyncio.sleep(5)
    subscription.dispose()
    assert await parts.files.save() == []
    assert shelf.ids == ["00.md"]
    shelf.describer.seconds = 0
    await shelf.update()
    assert "00.md" not in shelf.describer.asked
    assert len(shelf.describer.asked) == 39


async def test_a_bug_in_discovery_ends_the_update_and_no_more(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("oops")

    with monkeypatch.context() as patch:
        patch.setattr("services.knowledge.source_files.list_files", broken)
        report = await shelf.update()
    assert [trouble.about for trouble in report.troubles] == ["knowledge base"]
    assert "discover failed: a bug" in caplog.text
    with monkeypatch.context() as patch, caplog.at_level(logging.CRITICAL):
        patch.setattr("services.storage.confined.read", broken)
        report = await shelf.update()
    assert len(report.troubles) == 40
