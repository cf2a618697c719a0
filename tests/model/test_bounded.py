from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from model.bounded import BoundedDict
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
