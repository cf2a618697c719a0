"""The line that tells why a page is worth reading."""

from __future__ import annotations

import pytest

from services.assistant.pointing import best_line, sentences
from services.search import StoredPassage


def told(text: str, query: str) -> str:
    return best_line(StoredPassage("kb:a.md", "", "", 0, (), "", text), query)


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("Pull the lever. Then wait.", ["Pull the lever.", "Then wait."]),
        ("Use a tool (e.g. a wrench), then turn. uv waits.", ["Use a tool (e.g. a wrench), then turn.", "uv waits."]),
        ("It prints `Split ... done` and stops. Go.", ["It prints `Split ... done` and stops.", "Go."]),
        ("Mit Platzhaltern, wie z. B. Bildern. Gut.", ["Mit Platzhaltern, wie z. B. Bildern.", "Gut."]),
        ("这是句子。这也是。", ["这是句子。", "这也是。"]),
        ("Open (and never closed. Still open", ["Open (and never closed. Still open"]),
    ],
)
def test_sentences_end_at_no_abbreviation_and_within_no_code(line: str, parts: list[str]) -> None:
    assert sentences(line) == parts


def test_a_sentence_goes_before_the_code_below_it() -> None:
    text = "The index needs a password.\n\n```toml\nindex = 'internal password'\nname = 'internal'\n```"
    assert told(text, "index with an internal password") == "The index needs a password."


def test_what_announces_a_line_of_code_has_it_behind_it() -> None:
    text = "To install the press, run:\n\n```sh\n$ press install --now\n```\n\nThen it stands there."
    assert told(text, "install the press") == "To install the press, run: `press install --now`"


def test_what_announces_much_code_says_less_than_another_sentence() -> None:
    text = "For the press, use the following:\n\n```sh\na line\nanother line\n```\n\nThe press has two levers."
    assert told(text, "the press") == "The press has two levers."


def test_a_line_of_much_code_has_what_announces_it_before_it() -> None:
    text = "For the token, set a variable:\n\n```sh\n$ export PRESS_TOKEN=secret\n$ press login\n```"
    assert told(text, "press login") == "For the token, set a variable: `press login`"


def test_comments_in_code_and_quotation_marks_are_no_lines() -> None:
    assert told("```sh\n# the press is pulled here, twice\npress --lever --twice\n```", "the press") == (
        "`press --lever --twice`"
    )
    assert told("> - The press is pulled twice.", "press") == "The press is pulled twice."
