"""Grades replies against the expected ones, computes figures of a run, and compares two runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from commands.evaluating.questions import EvalQuestion, Share
from model.outcomes import OutcomeKind
from services.knowledge import PathFilter, belongs_to
from services.search import Level


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionResult:
    """The result of asking one question.

    Attributes:
        reason: why there is no reply; of a failure, the error and the step.
        step: the step at which it ended without a reply.
        why: the reason that this step gave; of a reply, the changes that steps made.
        sources: the cited sources, else the selected ones.
        tokens: in prompts and in completions, by step.
    """

    outcome: OutcomeKind
    level: str | None = None
    reason: str | None = None
    step: str | None = None
    why: str = ""
    sources: tuple[str, ...] = ()
    reply: str = ""
    llm_calls: int = 0
    tokens: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])

    @property
    def is_answer(self) -> bool:
        """True if the reply is an answer; a pointer only names pages."""
        return self.outcome is OutcomeKind.REPLIED and self.level != Level.POINT

    @property
    def failed(self) -> bool:
        return self.outcome not in {OutcomeKind.REPLIED, OutcomeKind.SKIPPED}

    @property
    def is_pointer(self) -> bool:
        return self.outcome is OutcomeKind.REPLIED and self.level == Level.POINT


class Grade(StrEnum):
    """The grade of a reply, or of silence.

    `RIGHT`: the expected answer or silence; `POINTED`: a pointer to the expected answer; `MISSED`: silence in place of
    an answer; `WRONG`: another answer, or an answer in place of silence.
    """

    RIGHT = "right"
    POINTED = "pointed"
    MISSED = "missed"
    WRONG = "wrong"
    FAILED = "failed"


def grade(question: EvalQuestion, result: QuestionResult) -> Grade:
    """Grade a result by the rules in docs/evaluation.md."""
    if result.failed:
        return Grade.FAILED
    if question.silent:
        # The bot always replies to people who address it; a pointer states nothing.
        spoke = result.is_answer or (result.is_pointer and not question.addressed)
        return Grade.WRONG if spoke else Grade.RIGHT
    has_words = not question.words or contains_any(result.reply, question.words)
    fits = has_words and shows_source(question, result.sources)
    if result.is_answer:
        return Grade.RIGHT if fits else Grade.WRONG
    return Grade.POINTED if result.is_pointer and fits else Grade.MISSED


def shows_source(question: EvalQuestion, shown: Iterable[str]) -> bool:
    """Return True if one of the expected sources is shown, or if none is expected."""
    return not question.sources or any(
        matches_source(expected, each) for expected in question.sources for each in shown
    )


def matches_source(expected: str, source_id: str) -> bool:
    """Return True if a source id equals the expected one, matches its glob, or continues its topic (`<topic>-2`)."""
    if expected == source_id:
        return True
    (expected_space, _, expected_name), (space, _, name) = expected.partition(":"), source_id.partition(":")
    if expected_space != space:
        return False
    if "*" in expected_name:
        return PathFilter(include=(expected_name,)).refusal(name) is None
    return space == "team" and belongs_to(name.removesuffix(".txt"), {expected_name.removesuffix(".txt")})


def contains_any(text: str, wordings: Iterable[str]) -> bool:
    """Return True if a text contains one of the wordings. White space and case do not count."""
    folded = _fold(text)
    return any(_fold(words) in folded for words in wordings)


def _fold(text: str) -> str:
    return " ".join(text.split()).casefold()


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalMetrics:
    """The numbers of a run.

    Attributes:
        answerable: questions that expect an answer.
        answered: questions that got an answer.
        right_answers: questions that got the expected answer.
        kept: questions for which silence is expected, and kept.
    """

    questions: int
    grades: Mapping[Grade, int]
    answerable: int
    answered: int
    right_answers: int
    kept: int

    def counts(self, share: Share) -> tuple[int, int]:
        """Return the numerator and the denominator of a share."""
        pointed = self.right_answers + self.grades[Grade.POINTED]
        return {
            Share.PRECISION: (self.right_answers, self.answered),
            Share.RECALL: (self.right_answers, self.answerable),
            Share.SHOWN: (pointed, self.answerable),
            Share.SILENCE: (self.kept, self.questions - self.answerable),
        }[share]

    def share(self, share: Share) -> float | None:
        """Return a share from 0 to 1; None if its denominator is 0."""
        some, whole = self.counts(share)
        return some / whole if whole else None

    def below(self, thresholds: Mapping[Share, float]) -> list[Share]:
        """Return the shares below their thresholds. A share with a denominator of 0 is not below any."""
        shares = {name: self.share(name) for name in thresholds}
        return [name for name, share in shares.items() if share is not None and share < thresholds[name]]


def measure(judged: Sequence[tuple[EvalQuestion, QuestionResult]]) -> EvalMetrics:
    graded = [(question, result, grade(question, result)) for question, result in judged]
    right = [(question, result) for question, result, each in graded if each is Grade.RIGHT]
    return EvalMetrics(
        questions=len(graded),
        grades={each: sum(each is its for _, _, its in graded) for each in Grade},
        answerable=sum(not question.silent for question, _, _ in graded),
        answered=sum(result.is_answer for _, result, _ in graded),
        right_answers=sum(not question.silent for question, _ in right),
        kept=sum(question.silent for question, _ in right),
    )


_WORTH = {Grade.RIGHT: 3, Grade.POINTED: 2, Grade.MISSED: 1, Grade.WRONG: 0, Grade.FAILED: -1}
"""A wrong answer is worse than none."""


@dataclass(frozen=True, slots=True)
class Change:
    """A question whose grade has changed."""

    question: EvalQuestion
    before: Grade
    after: Grade


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of two runs, which are both graded by the present expectations.

    Attributes:
        before, after: the figures of the questions in both runs.
        new, gone: the number of questions only in this run, and only in the earlier one.
    """

    better: Sequence[Change]
    worse: Sequence[Change]
    before: EvalMetrics
    after: EvalMetrics
    new: int
    gone: int


def compare(
    now: Sequence[tuple[EvalQuestion, QuestionResult]], earlier: Mapping[tuple[str, bool], QuestionResult]
) -> Comparison:
    """Compare a run with an earlier one, whose results are given by `EvalQuestion.key`."""
    both = [(question, earlier[question.key], result) for question, result in now if question.key in earlier]
    changes = [Change(question, grade(question, before), grade(question, after)) for question, before, after in both]
    return Comparison(
        better=[each for each in changes if _WORTH[each.after] > _WORTH[each.before]],
        worse=[each for each in changes if _WORTH[each.after] < _WORTH[each.before]],
        before=measure([(question, before) for question, before, _ in both]),
        after=measure([(question, after) for question, _, after in both]),
        new=len(now) - len(both),
        gone=len(earlier) - len(both),
    )
