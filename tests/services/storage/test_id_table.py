"""A table of ids is a dictionary that takes less."""

from __future__ import annotations

import tracemalloc
from array import array
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.storage.id_table import IdTable
from tests.services.quickly import QUICKLY

IDS = st.integers(0, 20) | st.integers(0, 2**64 - 1)


def ids() -> IdTable[int]:
    return IdTable(array("Q"))


@QUICKLY
@given(st.lists(st.tuples(IDS, IDS | st.none())))
@pytest.mark.parametrize("make", [ids, lambda: IdTable(list[int]())])
def test_what_was_put_last_is_there_and_what_was_discarded_is_not(
    make: Callable[[], IdTable[int]], changes: list[tuple[int, int | None]]
) -> None:
    table, known = make(), dict[int, int]()
    for key, value in changes:
        if value is None:
            table.discard(key)
            known.pop(key, None)
        else:
            table.put(key, value)
            known[key] = value
        assert len(table) == len(known)
        assert all((each in table) is (each in known) for each in (key, key + 1))
    keys = [*(key for key, _ in changes), 2**64 + 1]
    assert [table.get(key) for key in keys] == [known.get(key) for key in keys]


def test_an_entry_takes_little() -> None:
    first = 1_500_000_000_000_000_000
    tracemalloc.start()
    table = ids()
    for number in range(first, first + 10_000):
        table.put(number, number)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held / len(table) < 20
