from __future__ import annotations

from collections.abc import Mapping

from services.team.index import DescriptionSchedule
from services.team.topics import Topic
from tests.services.team.pairs import captured


def topic(name: str, count: int) -> Topic:
    return Topic(name, tuple(captured(number) for number in range(count)))


def grown(growth: DescriptionSchedule, name: str, *counts: int) -> list[int]:
    """With how many pairs a topic that goes through these numbers is described."""
    described: list[int] = []
    for count in counts:
        growth.note({name: topic(name, count)} if count else {}, [name])
        described += [len(each.pairs) for each in growth.due()]
    return described


def test_a_topic_is_described_at_its_first_pair_and_each_time_they_have_doubled() -> None:
    assert grown(DescriptionSchedule(), "a", *range(1, 20)) == [1, 2, 4, 8, 16]


def test_pairs_that_go_out_have_to_come_back_first() -> None:
    assert grown(DescriptionSchedule(), "a", 1, 2, 1, 2, 3, 4) == [1, 2, 4]


def test_a_topic_that_was_empty_is_a_new_one() -> None:
    assert grown(DescriptionSchedule(), "a", 1, 2, 0, 1, 2) == [1, 2, 1, 2]


def test_those_that_have_doubled_may_wait_for_each_other_and_new_ones_never_do() -> None:
    assert grown(DescriptionSchedule(4), "a", *range(1, 13)) == [1, 4, 8]


def test_what_is_there_at_the_beginning_counts_as_described() -> None:
    assert grown(DescriptionSchedule(topics={"a": topic("a", 3)}), "a", 4, 5, 6) == [6]


def test_each_is_due_once_in_order_of_name() -> None:
    growth = DescriptionSchedule()
    there: Mapping[str, Topic] = {"b": topic("b", 1), "a": topic("a", 1)}
    growth.note(there, ["b", "a"])
    assert [each.name for each in growth.due()] == ["a", "b"]
    assert growth.due() == []


def test_one_that_went_before_it_was_described_is_not_due() -> None:
    growth = DescriptionSchedule()
    growth.note({"a": topic("a", 1)}, ["a"])
    growth.note({}, ["a"])
    assert growth.due() == []


def test_whether_more_pairs_would_make_a_topic_due_can_be_told_before() -> None:
    growth = DescriptionSchedule(16)
    three = {"a": topic("a", 3), "b": topic("b", 4)}
    growth.note(three, ["a", "b"])
    assert not growth.would_be_due(three, {"a": 2, "b": 3, "new": 9})
    assert growth.would_be_due(three, {"a": 3})
    growth.note({"a": topic("a", 3), "b": topic("b", 8)}, ["b"])
    assert growth.would_be_due({"b": topic("b", 8)}, {})
