"""Every sentence is there in every language, says the same things, and is short."""

from __future__ import annotations

import re
import string
from pathlib import Path
from typing import get_args

import pytest

from services.conversations.fixed_phrases import LANGUAGES, Filled, Fixed, Phrases, phrases
from settings.kinds import ReplyLanguage

ROOT = Path(__file__).parents[3]
DECLARED = {name: each for name, each in vars(Phrases).items() if isinstance(each, Fixed | Filled)}
MAX_SENTENCE_CHARS = 200
OTHERS = [language for language in LANGUAGES if language != "en"]
SAMPLE = {"count": 3, "most": 5, "pending": 4, "name": "a.log", "ending": ".xyz", "share": "7%", "size": "2 MiB"}


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def forms(text: str) -> list[str]:
    return text.split("|")


def test_the_languages_that_can_be_fixed_are_those_there_are() -> None:
    assert get_args(ReplyLanguage) == ("question", *LANGUAGES)


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_language_has_each_sentence_and_no_other(language: str) -> None:
    assert set(phrases(language).sentences) == set(DECLARED)


def test_every_sentence_is_said_somewhere() -> None:
    folders = ("assembly", "model", "operators", "services", "sinks", "streams")
    files = (path for folder in folders for path in (ROOT / folder).rglob("*.py") if path.name != "fixed_phrases.py")
    code = "\n".join(path.read_text() for path in files)
    assert [name for name in DECLARED if not re.search(rf"""[."']{name}\b""", code)] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_form_of_a_sentence_holds_what_it_is_given_and_nothing_else(language: str) -> None:
    for name, text in phrases(language).sentences.items():
        declared = DECLARED[name]
        expected = set(declared.values) if isinstance(declared, Filled) else set[str]()
        assert [placeholders(form) for form in forms(text)] == [expected] * len(forms(text)), name


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_sentence_is_short_and_tidy(language: str) -> None:
    for name, text in phrases(language).sentences.items():
        for form in forms(text):
            assert 0 < len(form) <= MAX_SENTENCE_CHARS, name
            assert form == form.strip(), name


@pytest.mark.parametrize("language", OTHERS)
def test_nothing_is_left_in_english(language: str) -> None:
    english = phrases("en").sentences
    left = [name for name, text in phrases(language).sentences.items() if text == english[name]]
    assert left == []


@pytest.mark.parametrize("language", OTHERS)
def test_commands_are_named_as_they_are_in_english(language: str) -> None:
    def commands(text: str) -> set[str]:
        return set(re.findall(r"`(/[^`]+)`", text))

    english = phrases("en").sentences
    for name, text in phrases(language).sentences.items():
        assert commands(text) == commands(english[name]), name


@pytest.mark.parametrize("language", LANGUAGES)
def test_numbers_have_the_forms_that_the_language_knows(language: str) -> None:
    expected = {"zh": 1, "ja": 1, "ru": 3}.get(language, 2)
    for name, text in phrases(language).sentences.items():
        assert len(forms(text)) in {1, expected}, name
        assert len(forms(text)) == 1 or "{count}" in text, name


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_sentence_can_be_said(language: str) -> None:
    said = phrases(language)
    for name, declared in DECLARED.items():
        if isinstance(declared, Filled):
            whole = getattr(said, name)(*(SAMPLE.get(value, "x{y}|z") for value in declared.values))
        else:
            whole = getattr(said, name)
        assert whole, name


def test_what_is_filled_in_is_left_as_it_is() -> None:
    assert phrases("en").quoted_from("a {b} | c") == "From a {b} | c:"


@pytest.mark.parametrize(
    ("language", "count", "said"),
    [
        ("en", 1, "1 file"),
        ("en", 0, "0 files"),
        ("fr", 0, "0 fichier"),
        ("fr", 2, "2 fichiers"),
        ("ru", 1, "1 файл"),
        ("ru", 3, "3 файла"),
        ("ru", 11, "11 файлов"),
        ("ru", 21, "21 файл"),
        ("zh", 7, "7 个文件"),
    ],
)
def test_a_number_chooses_its_form(language: str, count: int, said: str) -> None:
    assert phrases(language).files(count) == said


def test_an_unknown_language_reads_english_and_a_region_does_not_matter() -> None:
    assert phrases("tlh").language == phrases("").language == "en"
    assert [phrases(code).language for code in ("pt-BR", "es-ES", "zh-TW", "en-GB")] == ["pt", "es", "zh", "en"]
