from __future__ import annotations

from services.search.questions import BEFORE, read_query


def test_what_is_told_weighs_less_than_what_is_asked_and_is_not_missed() -> None:
    query = read_query("My printer is old and loud.\nWhich lever turns the green valve?")
    assert query.weights["valv"] == 1 > query.weights["printer"] > 0
    assert query.counted == {"lever", "turn", "green", "valv"}


def test_a_question_with_few_words_of_its_own_is_about_what_was_told() -> None:
    query = read_query("The green valve leaks. How do I fix it?")
    assert {"fix", "green", "valv", "leak"} <= query.counted


def test_what_was_asked_before_only_helps() -> None:
    query = read_query(f"and on Windows?\n{BEFORE}how do I install it on Linux?")
    assert query.counted == {"window"}
    assert 0 < query.weights["linux"] < 1


def test_names_of_people_and_of_attachments_are_not_looked_for() -> None:
    query = read_query("@Millrace which lever turns the valve?\n[image: vacation.png]\n[file: trace.log, 3 kB]")
    assert set(query.weights) == {"lever", "turn", "valv"}


def test_of_an_endless_message_only_the_beginning_is_read() -> None:
    assert len(read_query("which " + " ".join(f"word{n}x" for n in range(500)) + "?").weights) == 48
