"""Each kind of question, asked in the ways in which people ask it."""

from __future__ import annotations

import pytest

from services.documents.asking.aggregates import Aggregate
from services.documents.asking.plan import Plan, plan
from services.documents.asking.positions import Position
from services.documents.store.protocol import Document, Origin, State

NAMES = ("server.log", "deploy/compose.yaml", "staging/compose.yaml", "error.log", "worker-2.log")
DOCUMENTS = [Document(name, Origin(name), State.READY) for name in NAMES]


def planned(question: str) -> Plan:
    return plan(question, DOCUMENTS)


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
        ("read me server.log:10-14", (10, 14)),
    ],
)
def test_a_line_is_asked_for_in_many_ways(question: str, lines: tuple[int, int]) -> None:
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
        "What was logged at 14:32:15 in server.log?",
        "anything at 14:32:15?",
        "What happened at 14:32:15 in server.log?",
        "Show the entries of 14:32:15",
        "Which events does server.log have for 14:32:15?",
        "server.log around 14:32:15",
        "14:32:15 in server.log, what is that?",
    ],
)
def test_a_time_is_asked_for_in_many_ways(question: str) -> None:
    period = planned(question).period
    assert period is not None
    assert period.clocks == ("14:32:15.000000", "14:32:16.000000")


@pytest.mark.parametrize(
    ("question", "clocks"),
    [
        ("What happened between 14:30 and 14:35?", ("14:30:00", "14:36:00.000000")),
        ("from 14:30 to 14:35, what was going on?", ("14:30:00", "14:36:00.000000")),
        ("entries 14:30-14:35", ("14:30:00", "14:36:00.000000")),
        ("everything after 14:30", ("14:30:00", "24:00:00")),
        ("what came in before 9:05?", ("00:00:00", "09:05:00")),
        ("errors since 14:30:10", ("14:30:10.000000", "24:00:00")),
        ("at 2:32 pm", ("14:32:00", "14:33:00.000000")),
        ("what happened at 18:02:49,372?", ("18:02:49.372000", "18:02:49.373000")),
    ],
)
def test_spans_of_time_are_understood(question: str, clocks: tuple[str, str]) -> None:
    period = planned(question).period
    assert period is not None
    assert period.clocks == clocks


@pytest.mark.parametrize(
    ("question", "days"),
    [
        ("What was logged on 2031-03-04?", ("2031-03-04", "2031-03-04")),
        ("anything on Mar 4?", ("03-04", "03-04")),
        ("entries of 4 March", ("03-04", "03-04")),
        ("on March 4th at 10:15", ("03-04", "03-04")),
        ("at 310304 101500?", ("2031-03-04", "2031-03-04")),
        ("31/03/04 10:15:00", ("2031-03-04", "2031-03-04")),
    ],
)
def test_days_are_understood(question: str, days: tuple[str, str]) -> None:
    period = planned(question).period
    assert period is not None
    assert period.days == days


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("What happened to req-38101a0b-2096-447d-96ea-a692162415ae?", "req-38101a0b-2096-447d-96ea-a692162415ae"),
        ("Which log line mentions blk_-6952295868487656571?", "blk_-6952295868487656571"),
        ("find 10.251.73.220:50010", "10.251.73.220:50010"),
        ("Show the entry about worker[2231] with its line number.", "worker[2231]"),
        ("Anything on 0x34f1724a35e000c?", "0x34f1724a35e000c"),
        ("grep ord-58213", "ord-58213"),
        ("Where does port 50022 come up?", "port 50022"),
        ("is E-1042 in there", "E-1042"),
        ("find myid=3", "myid=3"),
        ("search for task_201706092018_0024_m_000043", "task_201706092018_0024_m_000043"),
        ("What became of job_1445144423722_0020?", "job_1445144423722_0020"),
        ("Do you see 192.0.2.250 in server.log?", "192.0.2.250"),
        ("where is 8f14e45fceea167a mentioned", "8f14e45fceea167a"),
        ('which lines contain "connection reset by peer"', "connection reset by peer"),
    ],
)
def test_a_name_is_asked_for_in_many_ways(question: str, name: str) -> None:
    """Each may turn out to be nowhere, and then there is no answer: none is a mere hint."""
    assert [(mention.text, mention.hard) for mention in planned(question).mentions] == [(name, True)]


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
    assert understood.severity.hard


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
    "question",
    [
        "How many ERROR entries are in server.log?",
        "count the ERROR lines of server.log",
        "What is the number of ERROR messages?",
        "how often does ERROR occur",
        "Total number of ERROR records?",
        "How many times was ERROR logged?",
        "Number of entries at level ERROR in server.log, please",
        "how many ERRORs are there altogether?",
    ],
)
def test_a_count_is_asked_for_in_many_ways(question: str) -> None:
    understood = planned(question)
    assert understood.aggregate is Aggregate.COUNT
    assert understood.severity is not None
    assert understood.severity.levels == ("ERROR",)
    assert understood.words == ()


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


@pytest.mark.parametrize(
    ("question", "ids"),
    [
        ("What is the image of db in deploy/compose.yaml?", ("deploy/compose.yaml",)),
        ("deploy/compose.yaml: which image has db?", ("deploy/compose.yaml",)),
        ("Which image does db use (staging/compose.yaml)?", ("staging/compose.yaml",)),
        ("which image has db in compose.yaml", ("deploy/compose.yaml", "staging/compose.yaml")),
        ("In the file STAGING/compose.yaml, what is db's image?", ("staging/compose.yaml",)),
        ("how many lines has the worker-2 log?", ("worker-2.log",)),
    ],
)
def test_a_file_is_named_in_many_ways(question: str, ids: tuple[str, ...]) -> None:
    assert planned(question).doc_ids == ids


def test_the_name_of_a_file_is_no_level() -> None:
    assert planned("What is the first entry of error.log?").severity is None


def test_a_file_that_is_not_there_is_noticed() -> None:
    assert planned("What is on line 3 of other.log?").unknown_file == "other.log"
