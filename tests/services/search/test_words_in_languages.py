"""Terms of other languages than English."""

from __future__ import annotations

import random
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.search.languages import FUNCTION_WORDS, folded
from services.search.tokenizer import terms
from tests.services.quickly import QUICKLY

CATALOGUED = ("en", "de", "es", "fr", "pt", "ru", "zh", "ja")


@pytest.mark.parametrize(
    ("language", "forms"),
    [
        ("de", ("zusätzliche", "zusätzlichen", "Zusätzlicher")),
        ("de", ("Schlüssel", "schlussel")),
        ("es", ("configuración", "configuracion", "configuraciones")),
        ("fr", ("installation", "installations", "l'installation")),
        ("pt", ("atualização", "atualizações")),
        ("ru", ("установка", "установки", "установку")),
        ("en", ("installs", "installing", "install")),
    ],
)
def test_forms_of_a_word_are_one_term_with_accents_or_without(language: str, forms: tuple[str, ...]) -> None:
    found = [terms(form, language) for form in forms]
    assert all(len(each) == 1 for each in found), found
    assert len({each[0] for each in found}) == 1, found


def test_a_letter_beyond_ascii_does_not_cut_a_word() -> None:
    """Pitfall 57."""
    assert terms("zusätzliche naïve", "xx") == ["zusatzliche", "naive"]
    composed, apart = "Größe", "Gro\u00dfe".replace("o", "o\u0308")
    assert terms(composed, "de") == terms(apart, "de")
    assert terms("हिन्दी", "hi") == ["हिन्दी"]


def test_scripts_without_blanks_give_pairs_of_characters() -> None:
    """Pitfall 57."""
    assert terms("清理缓存", "zh") == ["清理", "理缓", "缓存"]
    assert {"キャ", "場所"} <= set(terms("キャッシュの場所はどこですか", "ja"))
    assert terms("설치가", "ko") == ["설치", "치가"]
    assert terms("鍵", "ja") == ["鍵"]


def test_the_pairs_of_thai_and_burmese_keep_their_marks() -> None:
    assert terms("ติดตั้ง", "th") == ["ติด", "ดตั้", "ตั้ง"]
    assert all(len(pair) > 1 for pair in terms("မြန်မာ", "my"))


def test_identifiers_stand_out_of_text_without_blanks() -> None:
    found = terms("在config.yaml中设置max_retries的值", "zh")
    assert {"config.yaml", "config", "yaml", "max-retries", "max", "设置"} <= set(found)


def test_full_width_letters_are_letters() -> None:
    assert terms("ＣＡＣＨＥ　２０", "ja") == terms("cache 20", "ja")


def test_function_words_of_the_language_are_left_out() -> None:
    assert terms("Wie kann ich das für dich machen?", "de") == []
    assert terms("¿Cómo puedo hacerlo?", "es") == []
    assert terms("Comment je peux l'avoir ?", "fr") == []
    assert terms("怎么可以", "zh") == ["么可"]


def test_each_language_of_the_catalogue_has_function_words_as_they_are_compared() -> None:
    for language in CATALOGUED:
        words = FUNCTION_WORDS[language]
        assert len(words) >= 30
        assert [word for word in words if word != folded(word.lower())] == []


@given(st.text(max_size=200), st.sampled_from(sorted([*FUNCTION_WORDS, "ko", "th", "xx"])))
@QUICKLY
def test_any_text_in_any_language_has_terms_without_blanks(text: str, language: str) -> None:
    assert all(term and term == term.strip() and " " not in term for term in terms(text, language))


@pytest.mark.parametrize("run", [1, 32, 2_000])
def test_nothing_is_kept_of_texts_without_blanks(run: int) -> None:
    """A stranger's messages of 2,000 random characters would fill the memory: each has 2,000 terms of its own."""
    dice = random.Random(1)  # noqa: S311 (no secret)
    letters = [chr(dice.randrange(0x4E00, 0x9F00)) for _ in range(60_000)]
    runs = ["".join(letters[at : at + run]) for at in range(0, len(letters), run)]
    messages = [" ".join(runs[at : at + 2_000 // run]) for at in range(0, len(runs), 2_000 // run)]
    assert len(terms(messages[0])) >= 1_900
    tracemalloc.start()
    for message in messages[1:]:
        terms(message)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 10_000
