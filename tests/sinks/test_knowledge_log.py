import logging

import pytest

from services.knowledge.source_files import HIDDEN
from services.knowledge.source_kinds import Discovered, How, LeftOut, Trouble, UpdateReport
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
    reporting = KnowledgeLog(named=10)
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
    report.settled[How.GONE] += 1
    reporting.report(report)
    reporting.report(LeftOut(".git", HIDDEN))
    reporting.report(UpdateReport({"file": 1}))
    assert [record.levelname for record in caplog.records] == ["INFO", "INFO", "DEBUG"]


def test_what_stops_everything_is_an_error(caplog: pytest.LogCaptureFixture) -> None:
    KnowledgeLog().report(Trouble("sources", "discover", "missing", fatal=True))
    assert [record.levelname for record in caplog.records] == ["ERROR"]
