"""Classes of phrasings that logs of other programs brought up: ordinals, beginnings, slips, columns of numbers."""

from __future__ import annotations

import pytest

from services.documents.asking import mentions, spelling
from services.documents.asking.aggregates import Aggregate
from services.documents.asking.plan import Plan, plan
from services.documents.asking.positions import Position
from services.documents.store.protocol import Document, Origin, State


def planned(question: str, *names: str) -> Plan:
    return plan(question, [Document(name, Origin(name), State.READY) for name in names or ("server.log",)])


@pytest.mark.parametrize(
    "question",
    ["the amount of DEBUG messages?", "hw many warnings", "no. of errors", "quantity of INFO lines", "# of warnings?"],
)
def test_a_number_is_asked_for_by_other_names(question: str) -> None:
    assert planned(question).aggregate is Aggregate.COUNT


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


def test_whether_it_has_happened_before_asks_for_no_neighbour() -> None:
    assert planned("Has the disk failed before?").position is None


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
    assert (understood.which, understood.position) == (which, position)


def test_a_second_is_a_time_as_well() -> None:
    assert planned("Which request took a second?").which is None


@pytest.mark.parametrize(
    ("question", "levels"),
    [
        ("the only emerg entry", ("FATAL", "CRITICAL")),
        ("How many events of type Error?", ("ERROR",)),
        ("the first E line", ("ERROR",)),
        ("last W entry?", ("WARN",)),
        ("any PANIC?", ("FATAL", "CRITICAL")),
    ],
)
def test_levels_are_named_as_other_programs_write_them(question: str, levels: tuple[str, ...]) -> None:
    severity = planned(question).severity
    assert severity is not None
    assert (severity.levels, severity.hard) == (levels, True)


@pytest.mark.parametrize(
    ("slip", "meant"),
    [
        ("frist eror", "first error"),
        ("the lastest warnng", "the latest warning"),
        ("how mnay entires", "how many entries"),
        ("lsat messsage", "last message"),
    ],
)
def test_slips_in_words_that_steer_are_put_right(slip: str, meant: str) -> None:
    assert spelling.mended(slip) == meant


@pytest.mark.parametrize(
    "question",
    ["fist terror thirst", "the lost list", 'grep for "frist"', "eror_code=7", "frist.log", "/var/eror", "past costs"],
)
def test_other_words_names_and_quotes_keep_their_letters(question: str) -> None:
    assert spelling.mended(question) == question


@pytest.mark.parametrize("question", ["event id 7034?", "who got status 502?", "exit code 137", "http 404 where"])
def test_numbers_that_stand_in_a_column_are_looked_for_by_themselves(question: str) -> None:
    (found, *_), _ = mentions.find(question)
    assert found.hard
    assert any(form == (part,) for form in found.forms for part in form if part.isdigit())


def test_a_port_is_no_number_by_itself() -> None:
    (found,), _ = mentions.find("who uses port 8080?")
    assert ("8080",) not in found.forms


@pytest.mark.parametrize("name", ["gone.example.net", "com.example.app"])
def test_hosts_and_packages_are_meant_letter_by_letter(name: str) -> None:
    (found,), _ = mentions.find(f"{name} - did it crash?")
    assert (found.text, found.hard) == (name, True)


def test_an_ordinal_is_no_name() -> None:
    assert mentions.find("the 1st one")[0] == ()


def test_the_words_of_a_single_files_name_say_which_file_is_meant() -> None:
    assert planned("How many errors did the runner have?", "ci-runner.log").words == ()
    assert planned("How many errors did the runner have?", "ci-runner.log", "b.log").words == ("runner",)
