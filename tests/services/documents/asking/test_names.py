"""Names that are meant letter by letter, with their labels and numbers."""

from __future__ import annotations

import pytest

from tests.services.documents.asking.planning import planned


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
    assert [(mention.text, mention.required) for mention in planned(question).mentions] == [(name, True)]


@pytest.mark.parametrize(
    "question",
    [
        "Did an IndexError occur?",
        "is there a PoolTimeout in the log",
        "any DiskFull?",
        "Where is TimeoutException mentioned?",
        "Was PoolTimeout ever logged?",
        "when did DiskFull show up",
    ],
)
def test_a_spelt_name_that_is_asked_after_is_meant_letter_by_letter(question: str) -> None:
    found = planned(question).mentions
    assert [mention.required for mention in found] == [True]


def test_the_same_name_in_passing_may_be_a_way_of_speaking() -> None:
    found = planned("How did the PoolManager restart?").mentions
    assert [mention.required for mention in found] == [False]


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Was message DEADBEEF bounced?", ["DEADBEEF"]),
        ("what about job j-fffff", ["j-fffff"]),
        ("transaction id CAFEBABE", ["CAFEBABE"]),
        ("the message said RUNNING", []),
        ("why was the job re-run?", []),
    ],
)
def test_what_a_thing_is_called_is_its_name_also_without_digits(question: str, names: list[str]) -> None:
    found = planned(question).mentions
    assert [mention.text for mention in found if mention.required] == names


@pytest.mark.parametrize(("question", "text"), [("what about RID 4711", "RID 4711"), ("pid 471?", "pid 471")])
def test_a_label_and_its_number_belong_together(question: str, text: str) -> None:
    found = planned(question).mentions
    assert [(mention.text, mention.required) for mention in found] == [(text, True)]
    label, number = text.split()
    assert (label, number) in found[0].forms
    assert (number,) not in found[0].forms, "a short number alone stands anywhere by chance"


@pytest.mark.parametrize("name", ["id-00005", "order-00007", "node-12", "task_00009", "session-1234567"])
def test_a_number_that_is_joined_to_a_label_is_part_of_the_name(name: str) -> None:
    found = planned(f"What happened to {name}?").mentions
    assert [(mention.text, mention.required, mention.forms) for mention in found] == [(name, True, ())]


@pytest.mark.parametrize(("number", "alone"), [("00012345", False), ("12345", False), ("1234567", True)])
def test_only_a_long_number_is_looked_for_without_its_label(number: str, alone: bool) -> None:
    (mention,) = planned(f"block {number}").mentions
    assert ((number,) in mention.forms) is alone


@pytest.mark.parametrize("question", ["event id 7034?", "who got status 502?", "exit code 137", "http 404 where"])
def test_numbers_that_stand_in_a_column_are_looked_for_by_themselves(question: str) -> None:
    found, *_ = planned(question).mentions
    assert found.required
    assert any(form == (part,) for form in found.forms for part in form if part.isdigit())


def test_a_port_is_no_number_by_itself() -> None:
    (found,) = planned("who uses port 8080?").mentions
    assert ("8080",) not in found.forms


@pytest.mark.parametrize("name", ["gone.example.net", "com.example.app"])
def test_hosts_and_packages_are_meant_letter_by_letter(name: str) -> None:
    (found,) = planned(f"{name} - did it crash?").mentions
    assert (found.text, found.required) == (name, True)


def test_an_ordinal_is_no_name() -> None:
    assert planned("the 1st one").mentions == ()
