"""Answers in pieces."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from services.discord.text import pieces, split, units
from tests.patterns.growth import STEEP, growth

words = st.sampled_from(["a", "word", "Ends.", "What?", "👍🏽", "x" * 70, "é", "`code`", "naïve…", "1.", "    four"])
lines = st.lists(words, max_size=12).map(" ".join)
fences = st.sampled_from(["```", "```python", "````md", "~~~", "~~~ text", "  ```sh", "`````", "```a`b"])
answers = st.lists(st.one_of(lines, lines, fences, st.just("")), max_size=30).map("\n".join)
limits = st.integers(60, 300)


def squeezed(text: str) -> str:
    return re.sub(r"\s", "", text)


def left_open(piece: str, limit: int) -> str | None:
    """The mark of a code block that a piece opens and does not close: a reading of its own, not the splitter's."""
    mark = None
    for line in piece.split("\n"):
        found = re.fullmatch(r"[ \t]*(```+|~~~+)([^\n]*)", line)
        if found is None or units(line) > limit // 4:
            continue
        if mark is None and not (found[1][0] == "`" and "`" in found[2]):
            mark = found[1]
        elif mark is not None and found[1].startswith(mark) and not found[2].strip():
            mark = None
    return mark


@given(answers, limits)
def test_no_piece_is_too_long_or_blank(text: str, limit: int) -> None:
    """Pitfall 24."""
    for piece in split(text, limit):
        assert units(piece) <= limit
        assert len(piece.encode("utf-16-le")) // 2 == units(piece)
        assert piece.strip()


@given(st.text(), st.integers(2, 40))
@example("`" * 90, 10)
@example("```\n" + " " * 90 + "x", 16)
@example(" " * 90 + "x\n" + " " * 90, 16)
def test_any_text_at_any_limit_is_split(text: str, limit: int) -> None:
    """Pitfall 24."""
    assert all(piece.strip() and units(piece) <= limit for piece in split(text, limit))
    assert squeezed("".join(piece.body for piece in pieces(text, limit))) == squeezed(text)


@given(answers, limits)
def test_without_the_added_fences_the_pieces_are_the_text(text: str, limit: int) -> None:
    """Pitfall 24."""
    parts = list(pieces(text, limit))
    assert squeezed("".join(part.body for part in parts)) == squeezed(text)
    for part, piece in zip(parts, split(text, limit), strict=True):
        added_before = f"{part.reopened.opening}\n" if part.reopened else ""
        added_after = f"\n{part.closed.mark}" if part.closed else ""
        assert piece == added_before + part.body + added_after


@given(answers, limits)
def test_every_piece_closes_the_code_blocks_that_it_opens(text: str, limit: int) -> None:
    """Pitfall 24."""
    for piece in split(text, limit):
        assert left_open(piece, limit) is None


@given(answers, limits)
def test_a_block_is_opened_again_as_it_was(text: str, limit: int) -> None:
    """Pitfall 24."""
    parts = list(pieces(text, limit))
    for part, following in pairwise(parts):
        assert part.closed == following.reopened
        assert following.reopened is None or following.reopened.opening in text


@given(answers)
def test_what_fits_is_one_piece(text: str) -> None:
    whole = text + ("\n" + mark if (mark := left_open(text, 40_000)) else "")
    assert [squeezed(piece) for piece in split(text, 40_000)] == ([squeezed(whole)] if text.strip() else [])


@pytest.mark.parametrize("text", ["", " ", "\n\n \t\n"])
def test_nothing_becomes_no_piece(text: str) -> None:
    assert split(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One two.\nThree.\n\nFour five six", ["One two.\nThree.", "Four five six"]),
        ("One two three.\nFour. Five six", ["One two three.", "Four. Five six"]),
        ("One two. Three four five six", ["One two.", "Three four five six"]),
        ("One two (three.) four five", ["One two (three.)", "four five"]),
        ("One two three four five six", ["One two three four", "five six"]),
        ("Onetwothreefourfivesix seven", ["Onetwothreefourfives", "ix seven"]),
        ("👍" * 15, ["👍" * 10, "👍" * 5]),
        ("- one two three\n  - four five", ["- one two three", "  - four five"]),
    ],
)
def test_it_cuts_after_a_paragraph_else_a_line_a_sentence_a_word_else_anywhere(text: str, expected: list[str]) -> None:
    """Pitfall 24."""
    assert split(text, 20) == expected


def test_a_code_block_that_fits_into_one_piece_stays_whole() -> None:
    """Pitfall 24."""
    code = "```python\nfor x in y:\n\n    print(x)\n```"
    assert split(f"Do this, it is easy:\n{code}\nThen go on.", 50) == ["Do this, it is easy:", code, "Then go on."]


def test_a_long_code_block_is_closed_and_opened_again_with_its_language() -> None:
    """Pitfall 24."""
    text = "```python\nif a:\n    first()\n    second()\n    third()\n```"
    assert split(text, 40) == [
        "```python\nif a:\n    first()\n```",
        "```python\n    second()\n    third()\n```",
    ]


def test_a_fence_inside_a_longer_one_is_text() -> None:
    """Pitfall 24."""
    text = "````md\n```sh\nls\n```\nand this and that\n````"
    first, second = split(text, 36)
    assert first.startswith("````md\n```sh")
    assert first.endswith("\n````")
    assert second.startswith("````md\n")


def test_a_block_is_not_opened_again_only_to_be_closed() -> None:
    text = "```\n" + "a" * 30 + "\n" + "b" * 25 + "\n```\nend"
    assert split(text, 40) == ["```\n" + "a" * 30 + "\n```", "```\n" + "b" * 25 + "\n```\nend"]


def test_a_block_that_the_text_leaves_open_is_closed() -> None:
    assert split("Look:\n~~~\ncode") == ["Look:\n~~~\ncode\n~~~"]


def test_the_limit_is_discords() -> None:
    """Pitfall 24."""
    assert [len(piece) for piece in split("x" * 4_100)] == [2_000, 2_000, 100]


@pytest.mark.parametrize("run", [" ", "\t ", "a ", "`", ". "])
def test_a_long_run_is_split_in_linear_time(run: str) -> None:
    """Pitfall 64."""
    assert (
        growth(lambda text: split(text, len(text) - 1), lambda chars: f"x{run * (chars // len(run))}y", 1_500) < STEEP
    )
