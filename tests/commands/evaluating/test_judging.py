"""What a reply is worth, and figures that add up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.evaluating.questions import EvalQuestion, Share
from commands.evaluating.runs import EvalMetrics, Grade, QuestionResult, compare, grade, matches_source, measure
from tests.commands.evaluating.examples import FAILURE, SILENCE, answer, pointer, question
from tests.services.quickly import QUICKLY

INSTALL = question(sources=("kb:install.md", "kb:docker.md"))
QUIET = question(silent=True)


@pytest.mark.parametrize(
    ("asked", "got", "worth"),
    [
        (INSTALL, answer("kb:faq.md", "kb:docker.md"), Grade.RIGHT),
        (INSTALL, answer("kb:faq.md"), Grade.WRONG),
        (INSTALL, answer(), Grade.WRONG),
        (INSTALL, pointer("kb:install.md"), Grade.POINTED),
        (INSTALL, pointer("kb:faq.md"), Grade.MISSED),
        (INSTALL, SILENCE, Grade.MISSED),
        (INSTALL, FAILURE, Grade.FAILED),
        (question(words=("port  7480", "x")), answer("kb:a", reply="It is **PORT\n7480**."), Grade.RIGHT),
        (question(words=("port 7480",)), answer("kb:a", reply="It is port 80."), Grade.WRONG),
        (question(sources=("kb:a",), words=("80",)), answer("kb:a", reply="Port 81"), Grade.WRONG),
        (question(sources=("kb:a",), words=("80",)), answer("kb:b", reply="Port 80"), Grade.WRONG),
        (question(sources=("kb:a",), words=("80",)), answer("kb:a", reply="Port 80"), Grade.RIGHT),
        (QUIET, SILENCE, Grade.RIGHT),
        (QUIET, answer("kb:a"), Grade.WRONG),
        (QUIET, pointer("kb:a"), Grade.WRONG),
        (QUIET, FAILURE, Grade.FAILED),
        # Whoever addresses the bot is told something; a pointer states nothing.
        (question(silent=True, addressed=True), pointer("kb:a"), Grade.RIGHT),
        (question(silent=True, addressed=True), answer("kb:a"), Grade.WRONG),
    ],
)
def test_a_reply_is_worth(asked: EvalQuestion, got: QuestionResult, worth: Grade) -> None:
    assert grade(asked, got) is worth


@pytest.mark.parametrize(
    ("expected", "source", "is_it"),
    [
        ("kb:a.md", "kb:a.md", True),
        ("kb:a.md", "kb:guides/a.md", False),
        ("kb:a.md", "team:a.md", False),
        ("kb:guides/*", "kb:guides/a.md", True),
        ("kb:guides/*", "kb:guides/old/a.md", False),
        ("kb:guides/**", "kb:guides/old/a.md", True),
        ("kb:*.md", "kb:guides/a.md", True),
        ("kb:https://x.example/**", "kb:https://x.example/a/b?c=1", True),
        ("kb:https://x.example/a?c=1", "kb:https://x.example/a?c=1", True),
        ("kb:https://x.example/a?c=1", "kb:https://x.example/a/c=1", False),
        ("team:gpu.txt", "team:gpu.txt", True),
        ("team:gpu", "team:gpu-3.txt", True),
        ("team:gpu.txt", "team:gpu-2.txt", True),
        ("team:gpu.txt", "team:gpu-cards.txt", False),
        ("kb:gpu.txt", "kb:gpu-2.txt", False),
    ],
)
def test_a_source_is_named_by_its_id_or_a_glob(expected: str, source: str, is_it: bool) -> None:
    assert matches_source(expected, source) is is_it


SOURCES = st.sampled_from(["kb:a", "kb:b"])
QUESTIONS = st.builds(
    EvalQuestion,
    text=st.just("How?"),
    addressed=st.booleans(),
    sources=st.tuples(SOURCES),
    silent=st.just(False),
) | st.builds(EvalQuestion, text=st.just("How?"), addressed=st.booleans(), silent=st.just(True))
REPLIES = st.sampled_from(
    [answer("kb:a"), answer("kb:b"), answer(), pointer("kb:a"), pointer("kb:b"), SILENCE, FAILURE]
)
RUNS = st.lists(st.tuples(QUESTIONS, REPLIES), max_size=30)


@QUICKLY
@given(RUNS)
def test_figures_add_up(judged: list[tuple[EvalQuestion, QuestionResult]]) -> None:
    found = measure(judged)
    assert found.questions == len(judged) == sum(found.grades.values())
    assert found.counts(Share.SILENCE)[1] == sum(asked.silent for asked, _ in judged)
    assert found.grades[Grade.RIGHT] == found.right_answers + found.kept
    for share in Share:
        some, whole = found.counts(share)
        assert 0 <= some <= whole <= len(judged)
        part = found.share(share)
        assert part is None if not whole else part == some / whole
    assert found.answered == sum(got.is_answer for _, got in judged)
    assert found.counts(Share.RECALL)[0] <= found.counts(Share.SHOWN)[0]


@QUICKLY
@given(RUNS, RUNS)
def test_figures_of_two_halves_are_those_of_the_whole(
    one: list[tuple[EvalQuestion, QuestionResult]], other: list[tuple[EvalQuestion, QuestionResult]]
) -> None:
    for share in Share:
        halves = zip(measure(one).counts(share), measure(other).counts(share), strict=True)
        assert measure(one + other).counts(share) == tuple(map(sum, halves))


def test_a_threshold_is_met_by_the_very_share() -> None:
    """9 of 10 are no less than 0.9, whatever a float makes of it."""
    found = measure([(INSTALL, answer("kb:install.md"))] * 9 + [(INSTALL, answer("kb:x"))])
    assert found.share(Share.PRECISION) == 0.9
    assert found.below({Share.PRECISION: 0.9, Share.RECALL: 0.9}) == []
    assert found.below({Share.RECALL: 0.91, Share.PRECISION: 0.5}) == [Share.RECALL]
    assert found.below({Share.SILENCE: 1.0}) == [], "what there is nothing of misses nothing"


def of_one(judged: EvalMetrics) -> float | None:
    return judged.share(Share.RECALL)


def test_two_runs_are_judged_by_what_is_expected_now() -> None:
    one, other, third, quiet, new = (
        question(text, sources=("kb:a",)) if text != "quiet" else question(text, silent=True)
        for text in ("one", "other", "third", "quiet", "new")
    )
    earlier = {
        one.key: SILENCE,
        other.key: answer("kb:a"),
        third.key: answer("kb:a"),
        quiet.key: answer("kb:a"),
        ("gone", False): answer("kb:a"),
    }
    now = [(one, answer("kb:a")), (other, answer("kb:b")), (third, answer("kb:a")), (quiet, SILENCE), (new, SILENCE)]
    found = compare(now, earlier)
    assert [(each.question.text, each.before, each.after) for each in found.better] == [
        ("one", Grade.MISSED, Grade.RIGHT),
        ("quiet", Grade.WRONG, Grade.RIGHT),
    ]
    assert [(each.question.text, each.before, each.after) for each in found.worse] == [
        ("other", Grade.RIGHT, Grade.WRONG)
    ]
    assert (found.new, found.gone, found.before.questions, found.after.questions) == (1, 1, 4, 4)
    assert (of_one(found.before), of_one(found.after)) == (2 / 3, 2 / 3)


def test_to_be_silent_is_better_than_to_be_wrong() -> None:
    found = compare([(INSTALL, SILENCE)], {INSTALL.key: answer("kb:x")})
    assert [(each.before, each.after) for each in found.better] == [(Grade.WRONG, Grade.MISSED)]
    assert compare([(INSTALL, answer("kb:x"))], {INSTALL.key: answer("kb:y")}).worse == []
