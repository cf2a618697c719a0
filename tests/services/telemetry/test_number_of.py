from __future__ import annotations

import pytest

from model.words import number_of


@pytest.mark.parametrize(("count", "told"), [(0, "0 files"), (1, "1 file"), (2, "2 files")])
def test_one_is_singular(count: int, told: str) -> None:
    assert number_of(count, "file") == told


def test_some_plurals_are_words_of_their_own() -> None:
    assert number_of(1, "person", "people") == "1 person"
    assert number_of(3, "person", "people") == "3 people"
