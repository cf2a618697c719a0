from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from model.bounded import BoundedDict, RateLimit
from tests.services.quickly import QUICKLY


@QUICKLY
@given(st.lists(st.tuples(st.integers(0, 6), st.booleans())), st.integers(1, 5))
def test_the_keys_that_were_set_last_are_kept_in_this_order(steps: list[tuple[int, bool]], most: int) -> None:
    kept, model = BoundedDict[int, int](most), list[tuple[int, int]]()
    for number, (key, touched) in enumerate(steps):
        known = dict(model).get(key)
        value = known if touched and known is not None else number
        if touched:
            assert kept.touch(key, lambda number=number: number) == value
        else:
            kept[key] = value
        model = [*(each for each in model if each[0] != key), (key, value)][-most:]
        assert list(kept.items()) == model


def test_a_limit_is_reached_by_what_happened_lately_for_the_same_key() -> None:
    limit = RateLimit(2, 10.0)
    for at in (0.0, 6.0):
        assert not limit.is_reached("one", at)
        limit.note("one", at)
    assert limit.is_reached("one", 9.0)
    assert not limit.is_reached("other", 9.0)
    assert not limit.is_reached("one", 10.0)
    limit.note("one", 10.0)
    assert limit.is_reached("one", 15.0)
    assert not limit.is_reached("one", 16.0)


def test_what_was_noted_while_the_clock_was_a_year_ahead_does_not_count_once_it_is_right() -> None:
    limit = RateLimit(1, 10.0)
    limit.note("one", 365 * 86_400.0)
    assert not limit.is_reached("one", 0.0)
    limit.note("one", 8.0)
    assert limit.is_reached("one", 0.0), "set back by seconds only"
