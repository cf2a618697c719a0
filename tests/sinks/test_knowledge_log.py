import logging
from types import SimpleNamespace
from typing import Any

import pytest

from services.knowledge.source_files import HIDDEN, FileFacts, FileRecord
from services.knowledge.source_kinds import (
    Discovered,
    Due,
    LeftOut,
    Pending,
    Trouble,
    UpdateReport,
    UpdateResult,
    UpToDate,
)
from sinks.knowledge import KnowledgeLog


def test_a_trouble_is_told_once_and_again_after_it_was_gone(caplog: pytest.LogCaptureFixture) -> None:
    reporting = KnowledgeLog()
    for present in (True, True, False, True):
        if present:
            reporting.report(Trouble("a.md", "read", "denied"))
            reporting.report(Trouble("a.md", "read", "denied"))
            reporting.report(LeftOut("b.md", "it is empty"))
        reporting.report(UpdateReport())
    assert caplog.text.count("read: a.md: denied") == caplog.text.count("b.md is left out: it is empty") == 2


def test_an_outage_does_not_flood_the_log(caplog: pytest.LogCaptureFixture) -> None:
    reporting = KnowledgeLog()
    for number in range(100):
        reporting.report(Trouble(f"{number}.md", "summarise", "unreachable"))
    reporting.report(UpdateReport())
    assert len(caplog.records) == 6
    assert "summarise: 95 further failures" in caplog.text


def test_a_folder_of_photographs_does_not_flood_the_log(caplog: pytest.LogCaptureFixture) -> None:
    reporting = KnowledgeLog()
    for number in range(100):
        reporting.report(LeftOut(f"{number}.jpg", "it is binary"))
    reporting.report(UpdateReport())
    reporting.report(UpdateReport())
    assert len(caplog.records) == 21
    assert "80 more are left out" in caplog.text


def test_whoever_sits_there_may_see_more_troubles(caplog: pytest.LogCaptureFixture) -> None:
    reporting = KnowledgeLog(most_named=10)
    for number in range(12):
        reporting.report(Trouble(f"{number}.md", "summarise", "unreachable"))
    reporting.report(UpdateReport())
    assert len(caplog.records) == 11
    assert "summarise: 2 further failures" in caplog.text


def test_hidden_files_and_quiet_updates_are_no_warnings(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    reporting = KnowledgeLog()
    reporting.report(Discovered({}))
    reporting.report(LeftOut(".git", HIDDEN))
    report = UpdateReport({"file": 1})
    report.results[UpdateResult.GONE] += 1
    reporting.report(report)
    reporting.report(LeftOut(".git", HIDDEN))
    reporting.report(UpdateReport({"file": 1}))
    assert [record.levelname for record in caplog.records] == ["INFO", "INFO", "DEBUG"]


def test_what_stops_everything_is_an_error(caplog: pytest.LogCaptureFixture) -> None:
    KnowledgeLog().report(Trouble("sources", "discover", "missing", fatal=True))
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def record(name: str) -> FileRecord:
    return FileRecord.new("2026-01-01T00:00:00Z", file=FileFacts(name, 1, 1))


def test_what_is_told_of_an_update_adds_up() -> None:
    """Each source ends in one way, however often something was tried."""
    report = UpdateReport()
    kind: Any = SimpleNamespace(noun="page")
    for event in (
        Discovered({"file": 4, "page": 4}),
        *(Due(kind, name) for name in ("new", "gone-bad", "no-text", "same")),
        Trouble("gone-bad", "fetch", "404"),
        LeftOut("no-text", "binary"),
        LeftOut("a.png", "no documentation"),
        Trouble("https://a/sitemap.xml", "list", "404"),
        *(Pending(record(name)) for name in ("new", "retried", "file", "undescribed")),
        Trouble("retried", "summarise", "down"),
        Trouble("undescribed", "summarise", "down"),
        *(UpToDate(record(name), UpdateResult.DESCRIBED) for name in ("new", "retried")),
        UpToDate(record("file"), UpdateResult.REUSED),
        UpToDate(record("same"), UpdateResult.SAME),
        UpToDate(record("old"), UpdateResult.GONE),
    ):
        report.add(event)
    assert report.text == (
        "4 files, 3 pages: 2 described, 1 recognised, 2 unchanged, 2 failed; 1 gone, 2 left out, 1 other failure; "
        "the index has 0 entries"
    )


def test_a_kind_says_its_own_plural() -> None:
    kind: Any = SimpleNamespace(noun="entry", plural="entries")
    report = UpdateReport.of([kind])
    assert report.text.startswith("no sources: ")
    report.add(Discovered({"entry": 1}))
    assert report.text.startswith("1 entry: ")
    report.add(Discovered({"entry": 1}))
    assert report.text.startswith("2 entries: ")
