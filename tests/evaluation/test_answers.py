"""Questions in four languages about the demo's documentation, through the program with its packaged model."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

import pytest

from benchmarks.evaluation import questions
from benchmarks.evaluation.asking import asked, prepared
from benchmarks.evaluation.judging import Line, judged, replies_of

pytestmark = pytest.mark.slow

ASKED = Path(__file__).parent / "questions"
DOCUMENTS = Path(__file__).parents[2] / "examples" / "knowledge-base" / "sources"
ALL = questions.read(ASKED / "questions.jsonl")


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("answers")
    shutil.copytree(DOCUMENTS, folder / "sources")
    for language in ("de", "es", "zh"):
        shutil.copytree(ASKED / language, folder / "sources" / language)
    return prepared(folder / "sources", folder)


@cache
def replay(config: Path, *, addressed: bool) -> tuple[dict[str, str], list[Line]]:
    return asked(ALL, config, addressed=addressed)


def test_who_addresses_the_bot_is_shown_the_right_page(config: Path) -> None:
    counts = judged(ALL, *replay(config, addressed=True), may_point=True)
    assert (counts.answerable, counts.unanswerable) == (42, 9)
    assert counts.page_share >= 0.9
    assert counts.words_share >= 0.5
    assert counts.false_answers <= 1


def test_others_are_answered_where_it_is_sure(config: Path) -> None:
    """Which is less often in other languages than English: there it goes by words alone, and in Chinese by pairs."""
    counts = judged(ALL, *replay(config, addressed=False), may_point=False)
    assert counts.page_share >= 0.4
    assert counts.words_share >= 0.35
    assert counts.good_replies >= 0.88
    assert counts.false_answers <= 1


@pytest.mark.parametrize(("language", "count"), [("en", 12), ("de", 10), ("es", 10), ("zh", 10)])
def test_each_language_finds_its_pages(config: Path, language: str, count: int) -> None:
    """Pages in the language of the question: those in English say much the same, and do not count."""
    own = [each for each in ALL if each.id.startswith(language)]
    counts = judged(own, *replay(config, addressed=True), may_point=True)
    assert counts.answerable == count
    assert 10 * counts.right_page >= 9 * count


@pytest.mark.parametrize(
    ("language", "answer", "pointer", "nothing"),
    [
        ("de", "kein Sprachmodell", "Vielleicht hilft dir", "nichts gefunden"),
        ("es", "modelo de lenguaje", "Quizá esto te ayude", "No he encontrado nada"),
        ("zh", "没有配置语言模型", "这些可能有帮助", "没有找到相关内容"),
    ],
)
def test_the_bot_says_its_own_sentences_in_the_language_of_the_question(
    config: Path, language: str, answer: str, pointer: str, nothing: str
) -> None:
    replies = replies_of(*replay(config, addressed=True))
    own = [replies[each.id] for each in ALL if each.id.startswith(language)]
    assert len(own) == 10
    assert {line["level"] for line in own} == {"answer", "point"}
    for line in own:
        said = (answer,) if line["level"] == "answer" else (pointer, nothing)
        assert any(each in line["reply_text"] for each in said), line["reply_text"]
