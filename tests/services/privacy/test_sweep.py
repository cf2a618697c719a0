"""Which files still hold somebody's words, wherever a piece of the file ends."""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.privacy import text_match
from services.privacy.text_match import TextMatch, WordSequences, find_remaining_words
from services.privacy.unknown_files import ConfiguredFiles
from tests.services.quickly import QUICKLY

SAID = "My lantern stays dark all night, though\nI wind it up twice"


def held(folder: Path, *texts: str) -> list[str]:
    return [
        line.partition(": ")[0].rpartition("/")[2]
        for line in find_remaining_words(folder, texts, ConfiguredFiles(), ())
    ]


@pytest.mark.parametrize(
    "content",
    [
        SAID,
        SAID.upper(),
        "> my lantern  stays *dark* all night",
        json.dumps({"q": SAID}),
        json.dumps({"q": SAID.replace("a", "\u00e0")}).replace("\\u00e0", "\\u0061"),
        "\0\1binary\0 My lantern stays dark all night, \xff",
    ],
)
def test_words_are_found_however_they_are_written(tmp_path: Path, content: str) -> None:
    (tmp_path / "a").write_text(content, errors="replace")
    assert held(tmp_path, SAID) == ["a"]


@pytest.mark.parametrize(
    "content", ["My lantern stays dark", "dark all night", "My lantern stays bright all night", ""]
)
def test_words_that_anybody_may_have_written_are_not(tmp_path: Path, content: str) -> None:
    (tmp_path / "a").write_text(content)
    assert held(tmp_path, SAID, "yes, thanks") == []


def test_letters_beyond_the_first_plane_are_found_as_json_escapes_them(tmp_path: Path) -> None:
    said = "\U0001d41a\U0001d41b\U0001d41c" * 8
    (tmp_path / "a").write_text(json.dumps({"q": f"see {said} there"}))
    assert held(tmp_path, said) == ["a"]


def test_one_long_word_is_enough(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("see 0123456789abcdef0123 there")
    assert held(tmp_path, "0123456789abcdef0123") == ["a"]


@QUICKLY
@given(st.lists(st.sampled_from(["one", "two", "three", "four"]), max_size=40), st.integers(1, 12))
def test_a_row_is_found_in_whatever_pieces_a_file_comes(words: list[str], size: int) -> None:
    row = ["one", "two", "three", "four", "two", "one"]
    traces = WordSequences()
    traces.add([" ".join(row)])
    pieces = [words[at : at + size] for at in range(0, len(words), size)]
    there = any(words[at : at + len(row)] == row for at in range(len(words)))
    assert traces.found_in(pieces) == there


class Compared(str):
    """A word that counts how often it is hashed or compared."""

    __slots__ = ()
    times = 0

    def __hash__(self) -> int:
        Compared.times += 1
        return super().__hash__()

    def __eq__(self, other: object) -> bool:
        Compared.times += 1
        return super().__eq__(other)


def test_rows_that_begin_alike_cost_no_more_than_one() -> None:
    def cost(rows: int) -> int:
        traces = WordSequences()
        traces.add(f"the lantern number{row} stays dark tonight" for row in range(rows))
        Compared.times = 0
        assert not traces.found_in([[Compared("the"), Compared("lantern"), *map(Compared, "abcd")] * 50])
        return Compared.times

    assert cost(2000) <= 2 * cost(1)


def test_a_word_at_the_end_of_a_piece_of_the_file_stays_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("x " * 10 + SAID + " x" * 10)
    for size in range(10, 60):
        monkeypatch.setattr(text_match, "CHUNK_BYTES", size)
        assert held(tmp_path, SAID) == ["a"], size


def test_documentation_and_what_is_named_already_are_passed_over(tmp_path: Path) -> None:
    for name in ("docs/a", "logs/b", "c", "state/posts.jsonl", "state/stray"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(SAID)
    named = [f"{tmp_path / folder}: 6 files: none of this program's" for folder in ("logs", "state")]
    found = find_remaining_words(tmp_path, [SAID], ConfiguredFiles(documents=[tmp_path / "docs"]), named)
    assert [line.partition(": ")[0] for line in found] == [str(tmp_path / "c"), str(tmp_path / "state/posts.jsonl")]
    assert all("still has words as they wrote them" in line for line in found)


@pytest.mark.skipif(os.geteuid() == 0 and not hasattr(os, "seteuid"), reason="needs somebody who may not read all")
def test_a_folder_or_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    closed, file = tmp_path / "closed", tmp_path / "file"
    closed.mkdir()
    (closed / "a").write_text(SAID)
    file.write_text(SAID)
    with readable_by_owner_only(closed, file):
        lines = find_remaining_words(tmp_path, [SAID], ConfiguredFiles(), ())
    assert [line.partition(": ")[0] for line in lines] == [str(closed), str(file)]
    assert all("cannot be read" in line for line in lines)


@contextmanager
def readable_by_owner_only(*paths: Path) -> Generator[None]:
    """Until the end of the block nobody may read `paths`; root becomes somebody else, whom no right is wanting."""
    root = os.geteuid() == 0
    above = [parent for parent in paths[0].parents if parent.owner() == "root" and not parent.stat().st_mode & 0o001]
    modes = {path: path.stat().st_mode for path in (*paths, *above)}
    for path in paths:
        path.chmod(0)
    for path in above:
        path.chmod(path.stat().st_mode | 0o055)
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        for path, mode in modes.items():
            path.chmod(mode)


def test_texts_are_found_by_the_first_words_of_their_longest_line() -> None:
    match = TextMatch(
        ["short one\nthe lantern stays dark all through the night", "Donaudampfschifffahrt", "we wind it up"]
    )
    assert match.found_in("> the lantern stays dark, all through\n> the night")
    assert match.found_in("say donaudampfschifffahrt")
    assert not match.found_in("the lantern stays dark all through the day")
    assert not match.found_in("we wind it down")


def test_a_thousand_texts_are_looked_for_as_fast_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def cost(texts: int) -> int:
        match = TextMatch(f"the lantern number{row} stays dark through all the night" for row in range(texts))
        Compared.times = 0
        words = [Compared("the"), Compared("lantern"), *map(Compared, "abcd")] * 50
        monkeypatch.setattr(text_match, "_as_words", Mock(return_value=Mock(split=Mock(return_value=words))))
        assert not match.found_in("")
        monkeypatch.undo()
        return Compared.times

    assert cost(2000) <= 2 * cost(1)
