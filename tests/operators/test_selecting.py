from collections.abc import Iterable

import pytest
from reactivex.subject import Subject

from dataflow import concat_map_iterable, of_type
from tests.marbles import play


def twice(item: str) -> list[str]:
    return [item, item]


def count(item: str) -> Iterable[int]:
    return range(int(item))


def shares(item: str) -> Iterable[int]:
    return (1 // (int(item) - n) for n in range(3))


async def test_each_item_becomes_its_members_at_once_and_in_order() -> None:
    assert await play("--1--2--|", concat_map_iterable(twice)) == "--(1 1)--(2 2)--|"


async def test_an_item_may_become_nothing() -> None:
    assert await play("-0-1-|", concat_map_iterable(count)) == "---0-|"


async def test_members_may_be_made_one_by_one() -> None:
    assert await play("-3-|", concat_map_iterable(count)) == "-(0 1 2)-|"


async def test_a_raising_function_ends_the_stream() -> None:
    assert await play("-1-x-1-|", concat_map_iterable(count)) == "-0-#"


async def test_a_function_that_raises_midway_gives_nothing_of_its_item() -> None:
    assert await play("-2-|", concat_map_iterable(shares)) == "-#"


async def test_an_error_goes_through() -> None:
    assert await play("-1-#", concat_map_iterable(twice)) == "-(1 1)-#"


def test_whoever_leaves_after_the_first_member_gets_no_second() -> None:
    source, got = Subject[str](), list[str]()

    def leave(item: str) -> None:
        got.append(item)
        subscription.dispose()

    subscription = source.pipe(concat_map_iterable(twice)).subscribe(leave)
    source.on_next("a")
    assert got == ["a"]
    assert source.observers == []


def test_a_raising_subscriber_is_heard_by_whoever_pushed_and_gets_the_next_item() -> None:
    source, got = Subject[int](), list[float]()
    source.pipe(concat_map_iterable(lambda item: [item])).subscribe(lambda item: got.append(1 / item))
    with pytest.raises(ZeroDivisionError):
        source.on_next(0)
    source.on_next(1)
    assert got == [1.0]


async def test_only_lets_one_type_through() -> None:
    assert await play("--1--a--2--b--|", of_type(str), values={"1": 1, "2": 2}) == "-----a-----b--|"


async def test_only_takes_several_types() -> None:
    values = {"1": 1, "2": 2.5}
    assert await play("-1-a-2-|", of_type(int, str), values=values) == "-1-a---|"
