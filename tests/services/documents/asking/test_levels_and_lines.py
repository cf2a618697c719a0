"""Levels as sets, lines by their numbers, steps: what a question says exactly."""

from __future__ import annotations

import pytest

from services.documents.asking import aggregates, cited, files_named, levels, line_spans, positions
from services.documents.results import Citation, ConversationContext
from services.documents.store.protocol import Document, Origin, State

DOCUMENTS = [
    Document("a", Origin("app.log"), State.READY, n_lines=400),
    Document("b", Origin("old/app.log"), State.READY, n_lines=20),
]
FATAL = {"FATAL", "CRITICAL"}
WORSE = FATAL | {"ERROR"}


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("how many ERROR or FATAL entries?", WORSE),
        ("ERROR and WARN", {"ERROR", "WARN"}),
        ("ERROR/WARN lines", {"ERROR", "WARN"}),
        ("ERROR, WARN and FATAL?", WORSE | {"WARN"}),
        ("error and fatal entries", WORSE),
        ("errors and warnings", WORSE | {"WARN"}),
        ("info or debug messages", {"INFO", "DEBUG"}),
        ("entries that are not INFO", WORSE | {"WARN", "DEBUG", "TRACE"}),
        ("all but INFO", WORSE | {"WARN", "DEBUG", "TRACE"}),
        ("non-INFO lines", WORSE | {"WARN", "DEBUG", "TRACE"}),
        ("everything except DEBUG and INFO", WORSE | {"WARN", "TRACE"}),
        ("ERROR but not FATAL", {"ERROR"}),
        ("WARN or above", WORSE | {"WARN"}),
        ("at least WARN", WORSE | {"WARN"}),
        ("above WARN", WORSE),
        ("INFO or below", {"INFO", "DEBUG", "TRACE"}),
        ('entries at level "ERROR"', {"ERROR"}),
        ("[ERROR] entries", {"ERROR"}),
    ],
)
def test_levels_are_a_set(question: str, wanted: set[str]) -> None:
    found, rest = levels.find(question)
    assert found is not None
    assert set(found.levels) == wanted
    assert levels.severity(rest) is None


@pytest.mark.parametrize("question", ['lines with "ERROR: disk is full"', "what happened?", "see `FATAL flaw` there"])
def test_what_is_quoted_is_no_level(question: str) -> None:
    assert levels.find(question) == (None, question)


@pytest.mark.parametrize(
    ("question", "lines"),
    [
        ("line 1,000", (1000, 1000)),
        ("lines 1,000 to 2,500", (1000, 2500)),
        ("what is on line 12345678?", (12345678, 12345678)),
        ("app.log:12345678", (12345678, 12345678)),
        ("lines 60-40", (40, 60)),
        ("the 1,045th line", (1045, 1045)),
        ('what does `File "x.py", line 17` mean?', None),
    ],
)
def test_lines_have_numbers_of_any_size(question: str, lines: tuple[int, int] | None) -> None:
    assert line_spans.find(question) == lines


@pytest.mark.parametrize(
    ("question", "ids"),
    [
        ("In app.log, what is on line 3 of app.log?", {"a", "b"}),
        ("old/app.log please", {"b"}),
        ("old/app.log and app.log", {"a", "b"}),
    ],
)
def test_every_file_that_is_named_counts(question: str, ids: set[str]) -> None:
    files = files_named.find(question, DOCUMENTS)
    assert set(files.doc_ids) == ids
    assert "app.log" not in files.rest


@pytest.mark.parametrize(
    ("question", "steps", "position"),
    [
        ("what were the next 5 lines?", 5, "next"),
        ("the following three entries", 3, "next"),
        ("two lines after that", 2, "next"),
        ("3 lines later", 3, "next"),
        ("5 more lines please", 5, "next"),
        ("a few lines further down", 3, "next"),
        ("3 lines before it", 3, "previous"),
        ("the previous 4 messages", 4, "previous"),
        ("ten lines earlier", 10, "previous"),
        ("the next line", 1, "next"),
        ("999 lines after it", 50, "next"),
    ],
)
def test_steps_are_counted(question: str, steps: int, position: str) -> None:
    number, plain = positions.without_steps(question)
    assert (number, positions.position(plain)) == (steps, position)


@pytest.mark.parametrize(
    ("question", "columns"),
    [
        ("breakdown by level", ("severity",)),
        ("how many entries per component and per hour?", ("component", "hour")),
        ("severity distribution", ("severity",)),
        ("which service has the fewest warnings?", ("component",)),
        ("the noisiest module?", ("component",)),
        ("number of lines for each day", ("day",)),
        ("how many entries come by process 4711", ()),
        ("which component could not reach the database?", ()),
    ],
)
def test_what_lines_are_counted_by_is_told(question: str, columns: tuple[str, ...]) -> None:
    assert aggregates.grouping(question)[0].columns == columns


def test_the_lines_that_an_answer_cites_are_those_of_files_that_are_there() -> None:
    answer = "See app.log:40 (10:00:40), old/app.log:3-5, other.log:7, app.log:900 and line 12 of app.log."
    found = cited.cited_in(answer, DOCUMENTS)
    assert [(each.source, each.line_start, each.line_end) for each in found] == [
        ("app.log", 40, 40),
        ("old/app.log", 3, 5),
        ("app.log", 12, 12),
    ]


def test_citations_that_were_given_are_not_read_anew() -> None:
    given = ConversationContext((("a?", "app.log:40"),), (Citation("b", "old/app.log", 1, 1, None, "b:L1"),))
    assert cited.with_citations(given, DOCUMENTS) == given
    assert cited.with_citations(None, DOCUMENTS) is None
    read = cited.with_citations(ConversationContext((("a?", "app.log:40"),)), DOCUMENTS)
    assert read is not None
    assert [each.line_start for each in read.citations] == [40]
