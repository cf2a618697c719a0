"""Which files a question names."""

from __future__ import annotations

import pytest

from services.documents.asking import names, retrieving
from services.documents.asking.passages import CitedPassage
from tests.services.documents.asking.planning import documents, planned


@pytest.mark.parametrize(
    ("question", "ids"),
    [
        ("What is the image of db in deploy/compose.yaml?", ("deploy/compose.yaml",)),
        ("deploy/compose.yaml: which image has db?", ("deploy/compose.yaml",)),
        ("Which image does db use (staging/compose.yaml)?", ("staging/compose.yaml",)),
        ("which image has db in compose.yaml", ("deploy/compose.yaml", "staging/compose.yaml")),
        ("In the file STAGING/compose.yaml, what is db's image?", ("staging/compose.yaml",)),
        ("how many lines has the worker-2 log?", ("worker-2.log",)),
    ],
)
def test_a_file_is_named_in_many_ways(question: str, ids: tuple[str, ...]) -> None:
    assert planned(question).doc_ids == ids


@pytest.mark.parametrize(
    ("question", "ids"),
    [
        ("In app.log, what is on line 3 of app.log?", {"app.log", "old/app.log"}),
        ("old/app.log please", {"old/app.log"}),
        ("old/app.log and app.log", {"app.log", "old/app.log"}),
    ],
)
def test_every_file_that_is_named_counts(question: str, ids: set[str]) -> None:
    files = names.find_files(question, documents("app.log", "old/app.log"))
    assert set(files.doc_ids) == ids
    assert "app.log" not in files.rest


def test_a_file_that_is_not_there_is_noticed() -> None:
    assert planned("What is on line 3 of other.log?").unknown_file == "other.log"
    assert planned("What is in deploy/api.v2.example.sh?").unknown_file == "deploy/api.v2.example.sh"
    assert planned("What did api.v2.example.sh say?").unknown_file is None, "a host"


def test_the_first_passages_of_each_file_go_before_all_others() -> None:
    hits = ["a1", "a2", "a3", "a4", "b1", "a5", "b2"]
    kept = retrieving.PER_DOCUMENT
    of_a, of_b = [each for each in hits if each[0] == "a"], ["b1", "b2"]
    spread = retrieving.spread_by_document(hits, lambda hit: hit[0])
    assert spread == [*of_a[:kept], *of_b[:kept], *of_a[kept:], *of_b[kept:]]


def test_the_words_of_a_single_files_name_say_which_file_is_meant() -> None:
    assert planned("How many errors did the runner have?", "ci-runner.log").words == ()
    assert planned("How many errors did the runner have?", "ci-runner.log", "b.log").words == ("runner",)


@pytest.mark.parametrize(
    ("question", "scores", "order"),
    [
        ("why is the disk full?", (0.1, 0.2, 0.9), [0, 2, 1]),
        ("why is the disk full?", (0.1, None, 0.9), [0, 1, 2]),
        ("what about ord-58213?", (0.1, 0.2, 0.9), [0, 1, 2]),
    ],
)
def test_passages_found_by_meaning_are_in_order_of_their_score_but_for_the_first(
    question: str, scores: tuple[float | None, ...], order: list[int]
) -> None:
    passages = [CitedPassage("d", "a.log", "text", n, n, (n,), f"d:{n}", score=each) for n, each in enumerate(scores)]
    found = retrieving.sort_by_score(planned(question), passages)
    assert [each.line_start for each in found] == order


@pytest.mark.parametrize(
    ("question", "read"),
    [
        (
            "first 3 ERROR entries after 10:00 about id-7 in app.log",
            {
                "file": "app.log",
                "time": "after 10:00",
                "severity": ["ERROR"],
                "identifiers": ["id-7"],
                "position": "first",
            },
        ),
        (
            "how many WARN entries per component on line 3?",
            {"lines": [3, 3], "severity": ["WARN"], "aggregate": "count", "grouped_by": ["component"]},
        ),
    ],
)
def test_what_was_read_of_a_question_can_be_told(question: str, read: dict[str, object]) -> None:
    assert planned(question).as_dict() == read


@pytest.mark.parametrize(
    ("question", "words", "is_enough"),
    [
        ("which entries mention timeout or refusal?", ("timeout", "refusal"), True),
        ("which entries mention timeout and refusal?", ("timeout", "refusal"), False),
        ("entries with deadlock, timeout or refused", ("deadlock", "timeout", "refused"), True),
        ("lines about deadlock OR timeout", ("deadlock", "timeout"), True),
        ("does q break the cache?", ("break", "cache"), False),
    ],
)
def test_one_of_several_words_is_enough_where_a_question_says_or(
    question: str, words: tuple[str, ...], is_enough: bool
) -> None:
    read = planned(question)
    assert (read.words, read.any_is_enough) == (words, is_enough)
