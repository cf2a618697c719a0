"""Questions in three languages about the demo's documentation, through the program with its packaged model."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

import pytest

from benchmarks.evaluation import questions
from benchmarks.evaluation.asking import asked, prepared
from benchmarks.evaluation.judging import Line, judged, replies_of

ASKED = Path(__file__).parent / "questions"
DOCUMENTS = Path(__file__).parents[2] / "examples" / "knowledge-base" / "sources"
ALL = questions.read(ASKED / "questions.jsonl")


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("answers")
    shutil.copytree(DOCUMENTS, folder / "sources")
    for language in ("de", "es"):
        shutil.copytree(ASKED / language, folder / "sources" / language)
    return prepared(folder / "sources", folder)


@cache
def replay(config: Path, *, addressed: bool) -> tuple[dict[str, str], list[Line]]:
    return asked(ALL, config, addressed=addressed)


def test_who_addresses_the_bot_is_shown_the_right_page(config: Path) -> None:
    counts = judged(ALL, *replay(config, addressed=True), may_point=True)
    print(counts)
    assert (counts.answerable, counts.unanswerable) == (24, 8)
    assert counts.page_share >= 0.9
    assert counts.words_share >= 0.65
    assert counts.false_answers <= 1


def test_others_are_answered_where_it_is_sure(config: Path) -> None:
    counts = judged(ALL, *replay(config, addressed=False), may_point=False)
    print(counts)
    assert counts.page_share >= 0.6
    assert counts.words_share >= 0.5
    assert counts.good_replies >= 0.88
    assert counts.false_answers <= 1


@pytest.mark.parametrize("language", ["en", "de", "es"])
def test_no_language_is_left_behind(config: Path, language: str) -> None:
    own = [each for each in ALL if each.id.startswith(language)]
    counts = judged(own, *replay(config, addressed=True), may_point=True)
    print(counts)
    assert counts.page_share >= 0.8


@pytest.mark.parametrize(("language", "phrase"), [("de", "Sprachmodell"), ("es", "modelo")])
def test_the_bot_says_its_own_sentences_in_the_language_of_the_question(
    config: Path, language: str, phrase: str
) -> None:
    replies = replies_of(*replay(config, addressed=True))
    answers = [line for key, line in replies.items() if key.startswith(language) and line["level"] == "answer"]
    assert answers
    assert all(phrase in line["reply_text"] for line in answers)
