from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.assistant.citations import clean_id, resolve_ids

KNOWN = [
    "kb:guides/Setup.md",
    "kb:faq.md",
    "team:faq.md",
    "team:tokens.txt",
    "kb:https://x.example/A",
    "kb:a.md",
    "kb:A.md",
]


@pytest.mark.parametrize(
    "given_as",
    [
        "team:tokens.txt",
        " team:tokens.txt\n",
        "`team:tokens.txt`",
        '"team:tokens.txt"',
        "“team:tokens.txt”",
        "¦ team:tokens.txt",
        "Id: team:tokens.txt",
        "id:team:tokens.txt",
        "¦ Id: `team:tokens.txt` ",
    ],
)
def test_what_stands_around_an_id_is_no_part_of_it(given_as: str) -> None:
    """Pitfall 51."""
    assert clean_id(given_as) == "team:tokens.txt"
    assert resolve_ids([given_as], KNOWN) == (["team:tokens.txt"], [])


def test_a_known_id_comes_once_and_in_the_models_order() -> None:
    named = ["team:tokens.txt", "kb:guides/Setup.md", "`team:tokens.txt`", "kb:faq.md", "made/up", "made/up"]
    assert resolve_ids(named, KNOWN) == (["team:tokens.txt", "kb:guides/Setup.md", "kb:faq.md"], ["made/up"])


def test_a_missing_namespace_and_letter_case_are_forgiven_where_only_one_can_be_meant() -> None:
    assert resolve_ids(["guides/Setup.md", "KB:FAQ.md", "https://x.example/A"], KNOWN)[0] == [
        "kb:guides/Setup.md",
        "kb:faq.md",
        "kb:https://x.example/A",
    ]
    assert resolve_ids(["GUIDES/setup.md", "tokens.TXT"], KNOWN)[0] == ["kb:guides/Setup.md", "team:tokens.txt"]
    assert resolve_ids(["faq.md", "FAQ.md", "KB:a.md"], KNOWN) == ([], ["faq.md", "FAQ.md", "KB:a.md"])
    assert resolve_ids(["a.md", "A.md"], KNOWN)[0] == ["kb:a.md", "kb:A.md"]


def test_only_known_ids_ever_come_back() -> None:
    """Pitfalls 16 and 17."""
    named = ["kb:../.env", "team:/etc/passwd", "kb:http://169.254.169.254/", "", "``", "kb:"]
    assert resolve_ids(named, KNOWN) == ([], named)
    assert resolve_ids(named, []) == ([], named)


def test_an_id_that_has_quotes_of_its_own_is_found() -> None:
    assert resolve_ids(["kb:`a`"], ["kb:`a`", "kb:a"]) == (["kb:`a`"], [])


@given(st.text(max_size=30))
def test_cleaning_twice_changes_nothing(text: str) -> None:
    assert clean_id(clean_id(text)) == clean_id(text)
