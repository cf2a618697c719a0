"""Questions in three languages about the demo's documentation, through the program with its packaged model."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks.evaluation import questions
from benchmarks.evaluation.asking import asked, prepared
from benchmarks.evaluation.judging import judged, replies_of

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


def test_who_addresses_the_bot_is_shown_the_right_page_in_every_language(config: Path) -> None:
    ids, lines = asked(ALL, config, addressed=True)
    counts = judged(ALL, ids, lines, may_point=True)
    assert (counts.answerable, counts.unanswerable) == (24, 8)
    assert counts.page_share >= 0.9
    assert counts.words_share >= 0.65
    assert counts.false_answers <= 1
    for language in ("en", "de", "es"):
        own = [each for each in ALL if each.id.startswith(language)]
        assert judged(own, ids, lines, may_point=True).page_share >= 0.8, language
    replies = replies_of(ids, lines)
    for language, words in (("de", "Sprachmodell"), ("es", "modelo de lenguaje")):
        answers = [line for key, line in replies.items() if key.startswith(language) and line["level"] == "answer"]
        assert answers, language
        assert all(words in line["reply_text"] for line in answers), "its own sentences are in the question's language"


def test_who_asks_everybody_is_answered_where_it_is_sure(config: Path) -> None:
    counts = judged(ALL, *asked(ALL, config, addressed=False), may_point=False)
    assert counts.page_share >= 0.5
    assert counts.words_share >= 0.4
    assert counts.good_replies >= 0.88
    assert counts.false_answers <= 1
