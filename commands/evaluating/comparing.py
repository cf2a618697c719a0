"""Two runs over the same questions: what became better, and what worse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from commands.evaluating.judging import EvalMetrics, Grade, QuestionResult, figures, grade
from commands.evaluating.questions import EvalQuestion

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
    """Both runs are judged by what is expected now.

    Attributes:
        before, after: the figures of the questions that both runs have.
        new: questions that only this run has; gone: that only the earlier one has.
    """

    better: Sequence[Change]
    worse: Sequence[Change]
    before: EvalMetrics
    after: EvalMetrics
    new: int
    gone: int


def compared(
    now: Sequence[tuple[EvalQuestion, QuestionResult]], earlier: Mapping[tuple[str, bool], QuestionResult]
) -> Comparison:
    """Compare a run with an earlier one, whose results are given by `EvalQuestion.key`."""
    both = [(question, earlier[question.key], got) for question, got in now if question.key in earlier]
    changes = [Change(question, grade(question, before), grade(question, after)) for question, before, after in both]
    return Comparison(
        better=[each for each in changes if _WORTH[each.after] > _WORTH[each.before]],
        worse=[each for each in changes if _WORTH[each.after] < _WORTH[each.before]],
        before=figures([(question, before) for question, before, _ in both]),
        after=figures([(question, after) for question, _, after in both]),
        new=len(now) - len(both),
        gone=len(earlier) - len(both),
    )
