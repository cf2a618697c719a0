"""What a question names beside, and what it does not mean: labels, writers, days, other sides of a time."""

from __future__ import annotations

import pytest

from services.documents.asking import aggregates, key_paths, mentions, rewriting, times
from services.documents.asking.aggregates import Aggregate
from services.documents.asking.plan import Plan, plan
from services.documents.asking.positions import Position
from services.documents.results import ConversationContext
from services.documents.store.protocol import Document, Origin, State

DOCUMENTS = [Document("server.log", Origin("server.log"), State.READY)]


def planned(question: str) -> Plan:
    return plan(question, DOCUMENTS)


@pytest.mark.parametrize("question", ["whats on ln 17 of server.log", "the line numbered 17 in server.log"])
def test_a_line_has_short_and_long_names(question: str) -> None:
    assert planned(question).lines == (17, 17)


def test_was_that_an_error_points_back() -> None:
    assert rewriting.needs_context("was that an error?")
    assert not rewriting.needs_context("how many errors?")


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


def test_what_happened_then_is_no_question_for_the_next_line_when_a_time_is_named() -> None:
    assert planned("10:15:03 - what was going on then?").position is None


def test_and_then_asks_for_the_next_line_even_beside_a_time() -> None:
    assert planned("What was logged at 10:15:03? And then?").position is Position.NEXT


@pytest.mark.parametrize("close", ["right", "just", "immediately", "directly"])
def test_right_after_a_time_is_the_next_line_and_not_all_that_follow(close: str) -> None:
    understood = planned(f"What was logged {close} after 10:15:03?")
    assert understood.position is Position.NEXT
    assert understood.period is not None
    assert understood.period.clocks == ("10:15:03.000000", "10:15:04.000000")


@pytest.mark.parametrize(
    "question",
    [
        "What was the last entry before 05:00 on Dec 4?",
        "On Dec 4, before 05:00, what came last?",
        "the last thing before 05:00, Dec 4",
    ],
)
def test_a_day_beside_a_time_of_day_counts(question: str) -> None:
    period = times.find(question)
    assert period is not None
    assert period.days == ("12-04", "12-04")
    assert period.clocks == ("00:00:00", "05:00:00")


def test_a_day_elsewhere_in_the_question_is_not_that_of_the_time() -> None:
    period = times.find("What did the entry before 05:00 say about the release of Dec 4?")
    assert period is not None
    assert period.days is None


def test_what_came_after_the_first_error_starts_from_there() -> None:
    understood = planned("What came right after the first ERROR entry?")
    assert (understood.position, understood.anchor) == (Position.NEXT, Position.FIRST)


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("How many entries did backupd write?", "backupd"),
        ("how many lines has shop.db.Pool logged", "shop.db.Pool"),
        ("the first WARN from Pool", "Pool"),
        ("how many entries come from component shop.db.Pool", "shop.db.Pool"),
        ("How many entries did su(auth) write?", "su(auth)"),
    ],
)
def test_who_wrote_something_is_named_in_many_ways(question: str, name: str) -> None:
    assert name in planned(question).writers


@pytest.mark.parametrize(
    ("question", "counts"),
    [
        ("how often does backupd show up?", True),
        ("count the lines with backupd", True),
        ("How many entries mention backupd?", True),
        ("How many users are there?", False),
        ("On which host did it fail, and how often?", False),
    ],
)
def test_lines_are_counted_only_where_lines_are_asked_for(question: str, counts: bool) -> None:
    assert planned(question).counts_lines is counts


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
    found, _ = mentions.find(question)
    assert [mention.hard for mention in found] == [True]


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
    found, _ = mentions.find(question)
    assert [mention.text for mention in found if mention.hard] == names


def test_the_same_name_in_passing_may_be_a_way_of_speaking() -> None:
    found, _ = mentions.find("How did the PoolManager restart?")
    assert [mention.hard for mention in found] == [False]


@pytest.mark.parametrize(("question", "text"), [("what about RID 4711", "RID 4711"), ("pid 471?", "pid 471")])
def test_a_label_and_its_number_belong_together(question: str, text: str) -> None:
    found, _ = mentions.find(question)
    assert [(mention.text, mention.hard) for mention in found] == [(text, True)]
    label, number = text.split()
    assert (label, number) in found[0].forms
    assert (number,) not in found[0].forms, "a short number alone stands anywhere by chance"


@pytest.mark.parametrize("name", ["id-00005", "order-00007", "node-12", "task_00009", "session-1234567"])
def test_a_number_that_is_joined_to_a_label_is_part_of_the_name(name: str) -> None:
    found, _ = mentions.find(f"What happened to {name}?")
    assert [(mention.text, mention.hard, mention.forms) for mention in found] == [(name, True, ())]


@pytest.mark.parametrize(("number", "alone"), [("00012345", False), ("12345", False), ("1234567", True)])
def test_only_a_long_number_is_looked_for_without_its_label(number: str, alone: bool) -> None:
    (mention,), _ = mentions.find(f"block {number}")
    assert ((number,) in mention.forms) is alone


@pytest.mark.parametrize(
    ("before", "question", "kept", "gone"),
    [
        ("What was the first WARN entry?", "and the last one?", "WARN", "first"),
        ("What was the first WARN entry?", "and the first ERROR?", "entry", "WARN"),
        ("How many WARN entries are there?", "when was the first of them?", "WARN", "How many"),
        ("What happened to ord-58213?", "and the next line?", "ord-58213", "last"),
    ],
)
async def test_what_a_follow_up_says_anew_is_not_taken_from_before(
    before: str, question: str, kept: str, gone: str
) -> None:
    resolved = await rewriting.resolve(question, ConversationContext(((before, "It is there."),)), None)
    assert resolved.query.endswith(question)
    asked_before = resolved.query.removesuffix(question)
    assert kept in asked_before
    assert gone not in asked_before


@pytest.mark.parametrize(
    ("question", "right", "wrong"),
    [
        ("What does web depend on?", "services.web.depends_on[0]", "services.proxy.depends_on[0]"),
        ("which services must be up before web?", "services.web.depends_on[0]", "services.web.image"),
        ("what does web run when it starts", "services.web.command", "services.web.restart"),
        ("when does the check of web time out?", "services.web.healthcheck.timeout", "services.web.healthcheck.test"),
        ("after how many failed checks is web unhealthy?", "services.web.healthcheck.retries", "services.web.build"),
    ],
)  # fmt: skip
def test_a_setting_is_meant_by_other_words_than_its_name(question: str, right: str, wrong: str) -> None:
    assert key_paths.fit(question, right) > key_paths.fit(question, wrong)


def test_a_count_is_still_a_count_after_all_that() -> None:
    assert planned("How many ERROR entries are in server.log?").aggregate is Aggregate.COUNT
    assert aggregates.without_count("How many are there?").strip() == "are there?"
