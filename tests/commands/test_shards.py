from argparse import ArgumentTypeError

import pytest

from commands.arguments import parse_shards


@pytest.mark.parametrize(
    ("text", "shards"),
    [
        ("0-15/64", (range(16), 64)),
        ("3/64", (range(3, 4), 64)),
        ("0/1", (range(1), 1)),
        ("63-63/64", (range(63, 64), 64)),
    ],
)
def test_a_range_of_shards_and_how_many_there_are(text: str, shards: tuple[range, int]) -> None:
    assert parse_shards(text) == shards


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "0-15/64, or 3/64"),
        ("0-15", "0-15/64, or 3/64"),
        ("0-15/", "0-15/64, or 3/64"),
        ("-1/4", "0-15/64, or 3/64"),
        ("0,1/4", "0-15/64, or 3/64"),
        ("٣/64", "0-15/64, or 3/64"),
        (" 0/1", "0-15/64, or 3/64"),
        ("0/0", "not 0"),
        ("0/999999999", "1 to 100,000 shards"),
        ("15-0/64", "0-15/64"),
        ("0-64/64", "the last of 64 is 63"),
        ("64/64", "the last of 64 is 63"),
    ],
)
def test_anything_else_is_one_line(text: str, words: str) -> None:
    with pytest.raises(ArgumentTypeError) as refused:
        parse_shards(text)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
