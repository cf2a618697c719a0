"""First and last, one of several, the neighbours of a line, and lines by their numbers."""

from __future__ import annotations

import pytest

from services.documents.asking.plan import Position
from tests.services.documents.asking.planning import planned


@pytest.mark.parametrize(
    ("question", "lines"),
    [
        ("What is on line 1045 of server.log?", (1045, 1045)),
        ("what does line 1045 in server.log say", (1045, 1045)),
        ("server.log:1045 please", (1045, 1045)),
        ("Show me the 1045th line of server.log", (1045, 1045)),
        ("Can you quote line no. 1045 from server.log?", (1045, 1045)),
        ("L1045 in server.log?", (1045, 1045)),
        ("Print lines 40-60 of server.log", (40, 60)),
        ("lines 40 to 60 of server.log", (40, 60)),
        ("line #7", (7, 7)),
        ("Whats written in row 12 of server.log", (12, 12)),
        ("server.log line number 3", (3, 3)),
        ("server.log L22-L25", (22, 25)),
        ("read me server.log:10-14", (10, 14)),
    ],
)
def test_a_line_is_asked_for_in_many_ways(question: str, lines: tuple[int, int]) -> None:
    assert planned(question).lines == lines


@pytest.mark.parametrize("question", ["whats on ln 17 of server.log", "the line numbered 17 in server.log"])
def test_a_line_has_short_and_long_names(question: str) -> None:
    assert planned(question).lines == (17, 17)


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
    assert planned(question).lines == lines


@pytest.mark.parametrize(
    "question",
    [
        "What happened to 10.10.34.13:46110?",
        "Which port is 8080 mapped to in deploy/compose.yaml?",
        "What happened at 14:32:15?",
        "Is there an online service?",
    ],
)
def test_other_numbers_are_no_lines(question: str) -> None:
    assert planned(question).lines is None


@pytest.mark.parametrize(
    "question",
    [
        "When did the first ERROR entry appear in server.log?",
        "What is the earliest ERROR message?",
        "first ERROR?",
        "Show me the initial ERROR line",
        "When was ERROR logged first?",
        "Which ERROR record is the oldest?",
        "Give me the first entry at level ERROR",
        "what's the first error-level message in server.log",
    ],
)
def test_the_first_error_is_asked_for_in_many_ways(question: str) -> None:
    understood = planned(question)
    assert understood.position is Position.FIRST
    assert understood.severity is not None
    assert understood.severity.levels == ("ERROR",)
    assert understood.severity.explicit


@pytest.mark.parametrize(
    ("question", "levels"),
    [
        ("What was the last WARN entry in server.log?", {"WARN"}),
        ("the most recent warning?", {"WARN"}),
        ("latest WARNING message", {"WARN"}),
        ("Which FATAL line is the newest?", {"FATAL", "CRITICAL"}),
        ("final critical entry please", {"FATAL", "CRITICAL"}),
        ("what is the last error", {"ERROR", "CRITICAL", "FATAL"}),
        ("last INFO line of error.log", {"INFO"}),
    ],
)
def test_the_last_one_is_asked_for_in_many_ways(question: str, levels: set[str]) -> None:
    understood = planned(question)
    assert understood.position is Position.LAST
    assert understood.severity is not None
    assert set(understood.severity.levels) == levels


@pytest.mark.parametrize(
    ("question", "position"),
    [
        ("When did errors start?", Position.FIRST),
        ("since when do the warnings begin", Position.FIRST),
        ("When did the 502s stop?", Position.LAST),
        ("the 1st ERROR", Position.FIRST),
        ("What did it say before?", Position.PREVIOUS),
        ("and what did it write afterwards?", Position.NEXT),
    ],
)
def test_beginnings_and_neighbours_have_other_names(question: str, position: Position) -> None:
    assert planned(question).position is position


@pytest.mark.parametrize(
    ("question", "position"),
    [
        ("How does server.log end?", Position.LAST),
        ("how did the log finish", Position.LAST),
        ("How does server.log start?", Position.FIRST),
        ("How does it begin?", Position.FIRST),
    ],
)
def test_how_a_log_ends_asks_for_its_last_line(question: str, position: Position) -> None:
    understood = planned(question)
    assert (understood.position, understood.words) == (position, ())


@pytest.mark.parametrize(
    ("question", "which", "position"),
    [
        ("What was the second error?", 2, Position.FIRST),
        ("give me the 3rd WARN message", 3, Position.FIRST),
        ("the second to last warning", -2, Position.LAST),
        ("the penultimate event", -2, Position.LAST),
    ],
)
def test_one_of_several_is_told_by_its_number(question: str, which: int, position: Position) -> None:
    understood = planned(question)
    assert (understood.ordinal, understood.position) == (which, position)


def test_a_second_is_a_time_as_well() -> None:
    assert planned("Which request took a second?").ordinal is None


@pytest.mark.parametrize(
    "question",
    [
        "What was logged right after it?",
        "and what came next?",
        "What happened immediately after that?",
        "the line after that one?",
        "what followed directly?",
        "Which entry follows it?",
        "And then?",
        "What's the next entry?",
        "show me the following line",
        "what was written just after?",
        "what came afterwards",
    ],
)
def test_what_came_next_is_asked_in_many_ways(question: str) -> None:
    assert planned(question).position is Position.NEXT


@pytest.mark.parametrize(
    "question",
    [
        "And what came just before that?",
        "What was logged right before it?",
        "and the one before?",
        "what preceded it?",
        "the previous entry?",
        "Which line comes immediately before?",
        "What happened before that?",
        "show me the line above",
        "what was the preceding message",
        "what led up to that?",
    ],
)
def test_what_came_before_is_asked_in_many_ways(question: str) -> None:
    assert planned(question).position is Position.PREVIOUS


def test_whether_it_has_happened_before_asks_for_no_neighbour() -> None:
    assert planned("Has the disk failed before?").position is None


def test_what_came_after_the_first_error_starts_from_there() -> None:
    understood = planned("What came right after the first ERROR entry?")
    assert (understood.position, understood.start_position) == (Position.NEXT, Position.FIRST)


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
    understood = planned(question)
    assert (understood.side_lines, understood.position) == (steps, position)
