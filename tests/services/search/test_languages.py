from __future__ import annotations

import unicodedata
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.search.languages import language_of, normalised
from tests.services.quickly import QUICKLY
from tests.services.search.questions_by_language import LABELLED

CATALOGUED = ("en", "de", "es", "fr", "pt", "ru", "zh", "ja")


def test_of_short_questions_full_of_english_terms_nearly_all_are_told_right() -> None:
    assert len(LABELLED) >= 200
    wrong = [(language, question) for language, question in LABELLED if language_of(question) != language]
    assert len(wrong) <= 2, wrong


def test_each_language_of_the_catalogue_has_questions_enough_to_tell() -> None:
    counted = Counter(language for language, _ in LABELLED)
    assert min(counted[language] for language in CATALOGUED) >= 20


@pytest.mark.parametrize(
    "text", ["", "   ", "42", "uv", "```\nwie geht das nicht?\n```", "https://example.net/warum/nicht"]
)
def test_what_has_no_prose_is_taken_for_english(text: str) -> None:
    assert language_of(text) == "en"


def test_a_foreign_name_and_a_list_of_languages_do_not_make_an_english_text_foreign() -> None:
    assert language_of("The guide by Søren and José explains the café demo, and where it is (日本語, Русский).") == "en"


def test_code_names_and_addresses_are_not_looked_at() -> None:
    code = "```python\n" + "the = is_this_what(you=want)\n" * 40 + "```"
    assert language_of(f"Wie bekomme ich das zum Laufen?\n{code}\nhttps://example.net/how/to/do/this") == "de"


def test_a_document_is_told_by_its_prose() -> None:
    text = (
        "# Installation\n\nDas Werkzeug wird mit `uv tool install` installiert. Danach ist es auf dem Rechner.\n" * 50
    )
    assert language_of(text) == "de"


@given(st.text(max_size=200))
@QUICKLY
def test_any_text_has_a_language(text: str) -> None:
    assert len(language_of(text)) == 2


def test_texts_with_usual_marks_are_normalised_as_unicode_has_it() -> None:
    for text in ("Straße", "Tiếng Việt", "ﬁle", "הִתְנַגְּדוּת", "ประเทศไทย", "a" + "\u0301\u0323" * 15):
        assert normalised("NFKD", text) == unicodedata.normalize("NFKD", text)


def test_marks_count_as_such_also_where_they_only_become_some() -> None:
    becoming = [
        each for each in map(chr, range(0x110000)) if unicodedata.combining(unicodedata.normalize("NFKD", each)[0])
    ]
    assert "\uff9e" in becoming
    assert all(len(normalised("NFKD", f"a{each * 1_000}z")) < 100 for each in becoming)


def test_of_endless_marks_only_the_first_are_kept() -> None:
    """Sorting them takes quadratic time: a heading of a million stops the process for twenty minutes."""
    marks = "\u0345\u0315\u0301\u0323\u0334" * 200_000
    found = normalised("NFKD", f"Set up a{marks} and run b{marks}")
    assert len(found) == len("Set up a and run b") + 60
    assert found.startswith("Set up a")
