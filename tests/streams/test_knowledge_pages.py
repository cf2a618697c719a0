"""Web pages through whole updates."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from services.assistant.describing import NotDescribed
from services.knowledge.source_kinds import UpdateResult, stored_name
from services.knowledge.source_pages import UrlRecord
from services.knowledge.web_interface import FetchFailed, FetchTimedOut, NotModified, Page
from tests.shelves import Shelf

ONE, TWO = "https://one.example/a", "https://two.example/b"
HOURS = 3600.0


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    made = Shelf(tmp_path)
    made.link(ONE)
    made.web.serve(ONE, "Page one\n", '"1"')
    return made


def facts(shelf: Shelf, url: str = ONE) -> tuple[str, str | None]:
    record = shelf.records[url]
    assert isinstance(record, UrlRecord)
    return record.url.fetch_status, record.url.etag


def failure(shelf: Shelf) -> str | None:
    """As a later run reads it."""
    kept = shelf.records[ONE]
    assert isinstance(kept, UrlRecord)
    return kept.url.failure


async def test_a_page_is_fetched_kept_and_described_behind_the_files(shelf: Shelf) -> None:
    shelf.write("z.md", "A file\n")
    await shelf.update()
    assert shelf.ids == ["z.md", ONE]
    assert "About Page one" in shelf.entries
    assert (shelf.pages / stored_name(ONE)).read_text() == "Page one\n"
    assert facts(shelf) == ("success", '"1"')
    assert shelf.counted == ["success"]


async def test_a_fresh_page_is_not_asked_for(shelf: Shelf) -> None:
    await shelf.update()
    await asyncio.sleep(72 * HOURS - 10)
    await shelf.update()
    assert shelf.web.asked == []


async def test_not_modified_keeps_text_and_description(shelf: Shelf) -> None:
    await shelf.update()
    await asyncio.sleep(72 * HOURS)
    shelf.web.answers[ONE] = NotModified(None, None)
    await shelf.update()
    assert [etag for _, _, etag in shelf.web.asked] == ['"1"']
    assert shelf.describer.asked == []
    assert facts(shelf) == ("not_modified", '"1"')
    await shelf.update()
    assert shelf.web.asked == []


async def test_an_equal_answer_costs_no_description_and_a_new_one_costs_one(shelf: Shelf) -> None:
    await shelf.update()
    await asyncio.sleep(72 * HOURS)
    shelf.web.serve(ONE, "Page one  \r\n", '"2"')
    await shelf.update()
    assert shelf.describer.asked == []
    assert facts(shelf) == ("success", '"2"')
    await asyncio.sleep(72 * HOURS)
    shelf.web.serve(ONE, "Page one, changed\n", '"3"')
    await shelf.update()
    assert shelf.describer.asked == [ONE]
    assert "About Page one, changed" in shelf.entries


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (FetchFailed("HTTP 500"), "error"),
        (FetchTimedOut("no answer in 30 s"), "timeout"),
        (OSError(28, "full"), "error"),
    ],
)
async def test_a_failing_page_keeps_its_text_and_is_asked_again_after_a_tick(
    shelf: Shelf, error: Exception, status: str
) -> None:
    await shelf.update()
    await asyncio.sleep(72 * HOURS)
    shelf.web.answers[ONE] = error
    report = await shelf.update()
    assert [trouble.about for trouble in report.troubles] == [ONE]
    assert facts(shelf) == (status, '"1"')
    assert "About Page one" in shelf.entries
    await shelf.update()
    assert shelf.web.asked == []
    await asyncio.sleep(300)
    await shelf.update()
    assert [etag for _, _, etag in shelf.web.asked] == ['"1"']
    assert failure(shelf) == str(error)
    await asyncio.sleep(300)
    shelf.web.serve(ONE, "Page one\n", '"1"')
    await shelf.update()
    assert failure(shelf) is None


async def test_a_page_that_was_never_fetched_is_in_no_index_and_asked_again_after_a_tick(shelf: Shelf) -> None:
    shelf.web.answers[ONE] = FetchFailed("HTTP 404")
    await shelf.update()
    assert shelf.ids == []
    assert shelf.records[ONE].content_hash == ""
    await shelf.update()
    assert shelf.web.asked == []
    shelf.link()
    await shelf.update()
    shelf.link(ONE)
    await shelf.update()
    assert shelf.records[ONE].gone_at is None
    await asyncio.sleep(300)
    shelf.web.serve(ONE, "At last\n")
    await shelf.update()
    assert shelf.ids == [ONE]


@pytest.mark.parametrize("answer", [Page(" \n", "A title", None, None), NotModified(None, None)])
async def test_an_answer_without_text_is_an_error(shelf: Shelf, answer: Page | NotModified) -> None:
    shelf.web.answers[ONE] = answer
    report = await shelf.update()
    assert len(report.troubles) == 1
    assert facts(shelf)[0] == "error"


async def test_a_page_whose_text_was_lost_is_fetched_whole(shelf: Shelf) -> None:
    await shelf.update()
    (shelf.pages / stored_name(ONE)).unlink()
    shelf.web.answers[ONE] = FetchFailed("HTTP 500")
    await shelf.update()
    assert [etag for _, _, etag in shelf.web.asked] == [None]
    assert shelf.ids == [ONE]
    shelf.describer.key = "key 2"
    await asyncio.sleep(300)
    await shelf.update()  # its text is not there to be described
    assert shelf.describer.asked == []
    shelf.web.serve(ONE, "Page one\n")
    await asyncio.sleep(300)
    await shelf.update()
    assert shelf.describer.asked == [ONE]
    assert (shelf.pages / stored_name(ONE)).exists()


async def test_what_is_pending_is_described_from_the_kept_text_while_the_page_is_away(shelf: Shelf) -> None:
    shelf.describer.failing[ONE] = NotDescribed("no")
    await shelf.update()
    assert shelf.records[ONE].summary_pending
    shelf.describer.failing.clear()
    shelf.web.answers[ONE] = FetchFailed("HTTP 500")
    await asyncio.sleep(72 * HOURS)
    await shelf.update()
    assert shelf.describer.asked == [ONE]
    assert shelf.ids == [ONE]
    shelf.describer.key = "key 2"
    await shelf.update()
    assert shelf.describer.asked == [ONE]
    assert shelf.web.asked == []


async def test_a_failing_or_slow_page_delays_no_file(shelf: Shelf) -> None:
    """Pitfall 36."""
    shelf.link(ONE, TWO)
    shelf.web.seconds[ONE] = 100
    for number in range(5):
        shelf.write(f"{number}.md", f"File {number}\n")
    running = asyncio.create_task(shelf.update())
    await asyncio.sleep(40)
    assert shelf.ids == [f"{number}.md" for number in range(5)]
    report = await running
    assert ONE in shelf.ids
    assert [trouble.about for trouble in report.troubles] == [TWO]


async def test_downloads_run_side_by_side_within_their_limit_and_host_by_host(shelf: Shelf) -> None:
    """Pitfall 36: new pages are not fetched one after another."""
    urls = [f"https://{host}.example/{number}" for host in ("a", "b", "c", "d") for number in range(2)]
    shelf.link(*urls)
    for url in urls:
        shelf.web.serve(url, f"Text of {url}\n")
        shelf.web.seconds[url] = 5
    await shelf.update()
    assert shelf.web.most_at_work == 3
    assert len(shelf.ids) == len(urls)
    # One page of each host first: nobody waits while a host is given time.
    assert [url for _, url, _ in shelf.web.asked] == sorted(urls, key=lambda url: (url[-1], url))


async def test_no_address_is_asked_that_is_not_in_the_list(shelf: Shelf) -> None:
    """Pitfall 17: whatever a page, a file or a model names."""
    shelf.web.serve(ONE, f"See {TWO} and http://169.254.169.254/latest/\n")
    shelf.write("a.md", f"<{TWO}>\n")
    shelf.describer.says = lambda text: f"{text}\nkb:{TWO}\n{TWO}"
    for hours in (0, 72):
        await asyncio.sleep(hours * HOURS)
        await shelf.update()
        assert [url for _, url, _ in shelf.web.asked] == [ONE]
    assert shelf.ids == ["a.md", ONE]


async def test_a_page_that_is_listed_no_more_is_forgotten_with_its_text_after_a_day(shelf: Shelf) -> None:
    await shelf.update()
    shelf.link()
    report = await shelf.update()
    assert report.results[UpdateResult.GONE] == 1
    assert shelf.ids == []
    assert (shelf.pages / stored_name(ONE)).exists()
    shelf.link(ONE)
    await shelf.update()
    assert shelf.web.asked == shelf.describer.asked == []
    assert shelf.ids == [ONE]
    shelf.link()
    await shelf.update()
    await asyncio.sleep(24 * HOURS)
    await shelf.update()
    assert shelf.records == {}
    assert not (shelf.pages / stored_name(ONE)).exists()


async def test_a_missing_list_is_an_error_once_there_were_pages(shelf: Shelf) -> None:
    """Pitfall 11."""
    await shelf.update()
    shelf.links.unlink()
    shelf.write("a.md", "A\n")
    report = await shelf.update()
    assert [trouble.fatal for trouble in report.troubles] == [True]
    assert shelf.ids == ["a.md", ONE]


async def test_an_unreadable_list_is_an_error(shelf: Shelf) -> None:
    await shelf.update()
    shelf.links.unlink()
    shelf.links.mkdir()
    report = await shelf.update()
    assert [trouble.about for trouble in report.troubles] == [str(shelf.links)]
    assert shelf.ids == [ONE]


async def test_without_any_list_there_are_files_only(shelf: Shelf) -> None:
    shelf.links.unlink()
    shelf.write("a.md", "A\n")
    report = await shelf.update()
    assert not report.troubles
    assert shelf.ids == ["a.md"]


async def test_the_title_stands_above_a_text_that_does_not_open_with_it(shelf: Shelf) -> None:
    shelf.link(ONE, TWO)
    shelf.web.answers[ONE] = Page("Some text.\n", "The  title", None, None)
    shelf.web.answers[TWO] = Page("# The title\n\nSome text.\n", "The title", None, None)
    await shelf.update()
    texts = {(shelf.pages / stored_name(url)).read_text() for url in (ONE, TWO)}
    assert texts == {"# The title\n\nSome text.\n"}


async def test_a_bug_in_the_web_is_a_trouble_of_that_page(shelf: Shelf, caplog: pytest.LogCaptureFixture) -> None:
    shelf.web.answers[ONE] = KeyError("oops")
    shelf.write("a.md", "A\n")
    report = await shelf.update()
    assert [trouble.about for trouble in report.troubles] == [ONE]
    assert shelf.ids == ["a.md"]
    assert "fetch failed: a bug" in caplog.text
