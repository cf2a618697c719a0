"""Files through whole updates."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from services.assistant.describing import NotDescribed, SaysNothing
from services.knowledge.source_files import FileRecord
from services.knowledge.source_kinds import UpdateResult
from tests.shelves import Shelf


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


def some(shelf: Shelf, count: int = 3) -> None:
    for number in range(count):
        shelf.write(f"{number}.md", f"Subject {number}\n")


async def test_files_are_described_and_the_index_is_sorted(shelf: Shelf) -> None:
    shelf.write("guides/setup.md", "Setting up\n")
    shelf.write("a.md", "First\n")
    report = await shelf.update()
    assert shelf.index.read_text() == "kb:a.md\nAbout First\n\nkb:guides/setup.md\nAbout Setting up\n"
    assert report.results[UpdateResult.DESCRIBED] == report.descriptions == 2
    assert not report.troubles
    record = shelf.records["guides/setup.md"]
    assert record.is_described
    assert record.summary_key == "key 1"
    assert isinstance(record, FileRecord)
    assert record.file.size_bytes == len("Setting up\n")


async def test_an_unchanged_run_asks_reads_and_writes_nothing(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    some(shelf)
    await shelf.update()
    before = shelf.stamps()

    def unwanted(*_: object) -> None:
        pytest.fail("was read")

    monkeypatch.setattr("services.storage.confined.read", unwanted)
    for again in (False, True, True):
        report = await shelf.update(again=again)
        assert shelf.describer.asked == []
        assert report.descriptions == 3
    assert shelf.stamps() == before


async def test_a_changed_file_costs_one_description_and_a_touched_one_none(shelf: Shelf) -> None:
    some(shelf)
    await shelf.update()
    shelf.write("1.md", "Something else\n")
    os.utime(shelf.sources / "2.md", ns=(1, 1))
    report = await shelf.update()
    assert shelf.describer.asked == ["1.md"]
    assert report.results[UpdateResult.SAME] == 1
    touched = shelf.records["2.md"]
    assert isinstance(touched, FileRecord)
    assert touched.file.mtime_ns == 1
    assert shelf.ids == ["0.md", "1.md", "2.md"]


async def test_white_space_at_line_ends_is_no_change(shelf: Shelf) -> None:
    shelf.write("a.md", "One\nTwo\n")
    await shelf.update()
    shelf.write("a.md", "\r\nOne  \r\nTwo\t\r\n\r\n")
    await shelf.update()
    assert shelf.describer.asked == []


async def test_a_renamed_file_costs_no_description(shelf: Shelf) -> None:
    some(shelf)
    await shelf.update()
    (shelf.sources / "0.md").rename(shelf.sources / "z.md")
    report = await shelf.update()
    assert shelf.describer.asked == []
    assert report.results[UpdateResult.REUSED] == report.results[UpdateResult.GONE] == 1
    assert shelf.ids == ["1.md", "2.md", "z.md"]
    assert "About Subject 0" in shelf.entries


async def test_equal_files_share_one_description(shelf: Shelf) -> None:
    shelf.describer.seconds = 1
    for name in ("a.md", "b.md", "c.md"):
        shelf.write(name, "Same\n")
    await shelf.update()
    assert shelf.describer.asked == ["a.md"]
    assert shelf.ids == ["a.md", "b.md", "c.md"]


async def test_a_file_that_is_gone_leaves_the_index_at_once_and_is_remembered_for_a_day(shelf: Shelf) -> None:
    some(shelf)
    await shelf.update()
    (shelf.sources / "1.md").unlink()
    await shelf.update()
    assert shelf.ids == ["0.md", "2.md"]
    assert shelf.records["1.md"].gone_at
    shelf.write("1.md", "Subject 1\n")
    await shelf.update()
    assert shelf.describer.asked == []
    assert shelf.records["1.md"].gone_at is None
    assert shelf.ids == ["0.md", "1.md", "2.md"]
    (shelf.sources / "1.md").unlink()
    await shelf.update()
    await asyncio.sleep(24 * 3600)
    await shelf.update()
    assert "1.md" not in shelf.records


async def test_what_is_gone_leaves_the_index_while_others_are_still_described(shelf: Shelf) -> None:
    some(shelf)
    await shelf.update()
    (shelf.sources / "1.md").unlink()
    shelf.write("new.md", "New\n")
    shelf.describer.seconds = 20
    running = asyncio.create_task(shelf.update())
    await asyncio.sleep(10)
    assert shelf.ids == ["0.md", "2.md"]
    await running


async def test_a_missing_folder_is_an_error_and_changes_nothing(shelf: Shelf) -> None:
    """Pitfall 11."""
    some(shelf)
    await shelf.update()
    before = shelf.stamps()
    shelf.sources.rename(shelf.sources.with_name("elsewhere"))
    for again in (False, True):
        report = await shelf.update(again=again)
        assert [trouble.fatal for trouble in report.troubles] == [True]
        assert shelf.stamps() == before
    shelf.sources.with_name("elsewhere").rename(shelf.sources)
    report = await shelf.update(again=True)
    assert shelf.describer.asked == []
    assert not report.troubles


async def test_an_empty_mount_costs_no_descriptions(shelf: Shelf) -> None:
    """Pitfall 46."""
    some(shelf)
    await shelf.update()
    full = shelf.index.read_bytes()
    shelf.sources.rename(shelf.sources.with_name("elsewhere"))
    shelf.sources.mkdir()
    await shelf.update(again=True)
    assert shelf.index.read_bytes() == b""
    shelf.sources.rmdir()
    shelf.sources.with_name("elsewhere").rename(shelf.sources)
    await shelf.update()
    assert shelf.describer.asked == []
    assert shelf.index.read_bytes() == full


async def test_a_folder_that_cannot_be_read_keeps_what_was_known_below_it(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf.write("guides/a.md", "A\n")
    shelf.write("b.md", "B\n")
    await shelf.update()
    scandir = os.scandir

    def refusing(path: str) -> object:
        if str(path).endswith("guides"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr("services.knowledge.source_files.os.scandir", refusing)
    (shelf.sources / "b.md").unlink()
    report = await shelf.update()
    assert shelf.ids == ["guides/a.md"]
    assert [trouble.about for trouble in report.troubles] == [str(shelf.sources / "guides")]


async def test_what_is_no_source_is_left_out_and_never_pending(shelf: Shelf) -> None:
    """Pitfall 39: an empty file is no source, so that it cannot be pending for ever."""
    shelf.write("empty.md", "")
    shelf.write("blank.md", " \n\t\n")
    shelf.write("binary.bin", "\x00\x01")
    (shelf.sources / "latin.txt").write_bytes(b"\xe4\xf6\xfc")
    shelf.write("large.md", "x" * 1001)
    shelf.write(".hidden.md", "Hidden\n")
    shelf.write("good.md", "Good\n")
    for again in (False, False, True):
        report = await shelf.update(again=again)
        assert report.left_out == 6
        assert not report.troubles
    assert list(shelf.records) == shelf.ids == ["good.md"]


async def test_a_source_that_becomes_empty_leaves_the_index(shelf: Shelf) -> None:
    some(shelf)
    await shelf.update()
    shelf.write("0.md", "")
    shelf.write("1.md", "\n\n")
    await shelf.update()
    assert shelf.ids == ["2.md"]


async def test_an_empty_description_never_counts_as_done(shelf: Shelf) -> None:
    """Pitfall 39."""
    some(shelf, 1)
    shelf.describer.says = lambda _: " \n\u200b\n"
    report = await shelf.update()
    assert [trouble.message for trouble in report.troubles] == ["the description is empty"]
    assert shelf.records["0.md"].summary_pending
    assert shelf.entries == []
    shelf.describer.says = lambda _: "Fine."
    await shelf.update()
    assert shelf.entries == ["kb:0.md", "Fine."]


async def test_a_record_that_was_done_without_a_description_is_described(shelf: Shelf) -> None:
    """Pitfall 39: a cache of old may hold such a record."""
    some(shelf, 1)
    await shelf.update()
    shelf.doctor(lambda content: content["sources"]["0.md"].update(summary_text=""))
    await shelf.update()
    assert shelf.describer.asked == ["0.md"]


async def test_a_failed_description_is_tried_again_and_the_old_one_stays_meanwhile(shelf: Shelf) -> None:
    some(shelf)
    await shelf.update()
    shelf.write("1.md", "Changed\n")
    shelf.describer.failing["1.md"] = NotDescribed("no")
    report = await shelf.update()
    assert [(trouble.about, trouble.step) for trouble in report.troubles] == [("1.md", "summarise")]
    assert "About Subject 1" in shelf.entries
    del shelf.describer.failing["1.md"]
    await shelf.update()
    assert shelf.describer.asked == ["1.md"]
    assert "About Changed" in shelf.entries


async def test_a_page_without_content_is_in_no_index(shelf: Shelf) -> None:
    some(shelf)
    await shelf.update()
    shelf.write("1.md", "Contents\n")
    shelf.describer.failing["1.md"] = SaysNothing("links only")
    report = await shelf.update()
    assert not report.troubles
    assert shelf.ids == ["0.md", "2.md"]
    del shelf.describer.failing["1.md"]
    await shelf.update()
    assert shelf.ids == ["0.md", "1.md", "2.md"]


async def test_a_description_that_takes_too_long_fails_alone(shelf: Shelf) -> None:
    some(shelf)
    shelf.describer.seconds, shelf.describe_seconds = 10, 5
    report = await shelf.update()
    assert {trouble.message for trouble in report.troubles} == {"took too long"}


async def test_a_bug_in_a_describer_is_logged_and_the_others_go_on(
    shelf: Shelf, caplog: pytest.LogCaptureFixture
) -> None:
    some(shelf)
    shelf.describer.failing["1.md"] = KeyError("oops")
    report = await shelf.update()
    assert shelf.ids == ["0.md", "2.md"]
    assert len(report.troubles) == 1
    assert "summarise failed: a bug" in caplog.text


async def test_a_changed_prompt_or_model_refreshes_all(shelf: Shelf) -> None:
    """Pitfall 41."""
    some(shelf)
    await shelf.update()
    shelf.describer.key = "key 2"
    await shelf.update()
    assert shelf.describer.asked == ["0.md", "1.md", "2.md"]
    assert {record.summary_key for record in shelf.records.values()} == {"key 2"}


async def test_descriptions_are_limited_in_number(shelf: Shelf) -> None:
    some(shelf, 20)
    shelf.describer.seconds, shelf.descriptions_at_once = 1, 4
    await shelf.update()
    assert shelf.describer.most_at_work == 4


async def test_the_text_described_is_the_one_that_is_there_then(shelf: Shelf) -> None:
    some(shelf, 2)
    shelf.descriptions_at_once, shelf.describer.seconds = 1, 10
    running = asyncio.create_task(shelf.update())
    await asyncio.sleep(5)
    shelf.write("1.md", "Newer\n")
    await running
    assert "About Newer" in shelf.entries
    await shelf.update()
    assert shelf.describer.asked == []


async def test_a_file_that_vanishes_or_empties_before_its_description_is_a_trouble(shelf: Shelf) -> None:
    some(shelf, 3)
    shelf.descriptions_at_once, shelf.describer.seconds = 1, 10
    running = asyncio.create_task(shelf.update())
    await asyncio.sleep(5)
    (shelf.sources / "1.md").unlink()
    shelf.write("2.md", "")
    report = await running
    assert [trouble.about for trouble in report.troubles] == ["1.md", "2.md"]
    await shelf.update()
    assert shelf.ids == ["0.md"]


async def test_descriptions_cannot_forge_entries(shelf: Shelf) -> None:
    """Pitfall 20."""
    some(shelf, 1)
    shelf.describer.says = lambda _: "One.\n\nkb:other.md\nTwo."
    await shelf.update()
    assert shelf.entries == ["kb:0.md", "One.", "- kb:other.md", "Two."]
    assert shelf.records["0.md"].summary_text == "One.\n- kb:other.md\nTwo."
    # Nor can a cache into which somebody has written.
    shelf.doctor(lambda content: content["sources"]["0.md"].update(summary_text="One.\n\nkb:other.md\nTwo."))
    shelf.index.unlink()
    for _ in range(2):
        await shelf.update()
        assert shelf.entries == ["kb:0.md", "One.", "- kb:other.md", "Two."]


async def test_two_runs_over_the_same_content_write_the_same_index(shelf: Shelf, tmp_path: Path) -> None:
    some(shelf, 30)
    await shelf.update()
    (tmp_path / "second").mkdir()
    second = Shelf(tmp_path / "second")
    shutil.copytree(shelf.sources, second.sources, dirs_exist_ok=True)
    second.describer.seconds = 3
    await second.update()
    assert second.index.read_bytes() == shelf.index.read_bytes()


async def test_links_that_lead_outside_are_left_out_and_others_followed(shelf: Shelf, tmp_path: Path) -> None:
    """Pitfall 16."""
    (tmp_path / "secret.md").write_text("Secret\n")
    shelf.write("a.md", "A\n")
    (shelf.sources / "out.md").symlink_to(tmp_path / "secret.md")
    (shelf.sources / "in.md").symlink_to(shelf.sources / "a.md")
    (shelf.sources / "up").symlink_to(shelf.sources)
    (shelf.sources / "nowhere.md").symlink_to(shelf.sources / "nothing.md")
    report = await shelf.update()
    assert shelf.ids == ["a.md", "in.md"]
    assert report.left_out == 2
