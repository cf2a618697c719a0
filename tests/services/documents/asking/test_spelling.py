"""Typing errors in the words that steer a search."""

from __future__ import annotations

import pytest

from services.documents.asking import vocabulary


@pytest.mark.parametrize(
    ("slip", "meant"),
    [
        ("frist eror", "first error"),
        ("the lastest warnng", "the latest warning"),
        ("how mnay entires", "how many entries"),
        ("lsat messsage", "last message"),
    ],
)
def test_slips_in_words_that_steer_are_put_right(slip: str, meant: str) -> None:
    assert vocabulary.mended(slip) == meant


@pytest.mark.parametrize(
    "question",
    ["fist terror thirst", "the lost list", 'grep for "frist"', "eror_code=7", "frist.log", "/var/eror", "past costs"],
)
def test_other_words_names_and_quotes_keep_their_letters(question: str) -> None:
    assert vocabulary.mended(question) == question
