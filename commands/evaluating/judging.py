"""Grades replies against what is expected, counts grades into figures, and compares two runs."""

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
        reason: why there is no reply; of a failure, what and where.
        step: at which it ended, where there is no reply.
        why: what that step says of it; of a reply, what steps have changed of it.
        sources: cited, else selected.
        tokens: by step, in prompts and completions.
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
    def answers(self) -> bool:
        """Tell whether the reply states an answer; a pointer only names pages."""
        return self.outcome is OutcomeKind.REPLIED and self.level != Level.POINT

    @property
    def failed(self) -> bool:
        return self.outcome not in {OutcomeKind.REPLIED, OutcomeKind.SKIPPED}

    @property
    def points(self) -> bool:
        return self.outcome is OutcomeKind.REPLIED and self.level == Level.POINT


class Grade(StrEnum):
    """The grade of a reply, or of silence.

    `RIGHT`: what is expected; `POINTED`: no answer, but a pointer to where it is; `MISSED`: no answer where there is
    one to give; `WRONG`: another answer, or one where silence is right.
    """

    RIGHT = "right"
    POINTED = "pointed"
    MISSED = "missed"
    WRONG = "wrong"
    FAILED = "failed"


def grade(question: EvalQuestion, got: QuestionResult) -> Grade:
    """Grade a result by the rules in docs/evaluation.md."""
    if got.failed:
        return Grade.FAILED
    if question.silent:
        # Whoever has addressed the bot is told something; a pointer states nothing.
        spoke = got.answers or (got.points and not question.addressed)
        return Grade.WRONG if spoke else Grade.RIGHT
    fits = shows_source(question, got.sources) and shows_words(question, got.reply)
    if got.answers:
        return Grade.RIGHT if fits else Grade.WRONG
    return Grade.POINTED if got.points and fits else Grade.MISSED


def shows_source(question: EvalQuestion, shown: Iterable[str]) -> bool:
    """Tell whether the reply cites one of the expected sources; true where none is expected."""
    return not question.sources or any(fits(expected, each) for expected in question.sources for each in shown)


def fits(expected: str, source_id: str) -> bool:
    """Tell whether a source id equals the expected one, matches its glob, or continues its topic (`<topic>-2`)."""
    if expected == source_id:
        return True
    (space, _, name), (space_of_id, _, bare) = expected.partition(":"), source_id.partition(":")
    if space != space_of_id:
        return False
    if "*" in name:
        return PathFilter(include=(name,)).refusal(bare) is None
    return space == "team" and belongs_to(bare.removesuffix(".txt"), {name.removesuffix(".txt")})


def shows_words(question: EvalQuestion, reply: str) -> bool:
    """Return whether a reply holds one of the words that are right; true where any are."""
    return not question.words or holds_any(reply, question.words)


def holds_any(text: str, wordings: Iterable[str]) -> bool:
    """Return whether a text has one of the wordings in it. White space and case do not count."""
    folded = _folded(text)
    return any(_folded(words) in folded for words in wordings)


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalMetrics:
    """How many questions came to what. `questions` is the sum of the five grades.

    Attributes:
        answerable: those that something answers; answered: of all, those that got an answer; right_answers: of these.
        kept: silent where silence is right.
    """

    questions: int
    grades: Mapping[Grade, int]
    answerable: int
    answered: int
    right_answers: int
    kept: int

    @property
    def silences(self) -> int:
        return self.questions - self.answerable

    def counts(self, share: Share) -> tuple[int, int]:
        """How many, of how many."""
        pointed = self.right_answers + self.grades[Grade.POINTED]
        return {
            Share.PRECISION: (self.right_answers, self.answered),
            Share.RECALL: (self.right_answers, self.answerable),
            Share.SHOWN: (pointed, self.answerable),
            Share.SILENCE: (self.kept, self.silences),
        }[share]

    def share(self, share: Share) -> float | None:
        """From 0 to 1; None where there is nothing to take a share of."""
        some, whole = self.counts(share)
        return some / whole if whole else None

    def below(self, least: Mapping[Share, float]) -> list[Share]:
        """Which thresholds are not met. What there is nothing of misses none."""
        shares = {name: self.share(name) for name in least}
        return [name for name, share in shares.items() if share is not None and share < least[name]]


def figures(judged: Sequence[tuple[EvalQuestion, QuestionResult]]) -> EvalMetrics:
    graded = [(question, got, grade(question, got)) for question, got in judged]
    right = [(question, got) for question, got, each in graded if each is Grade.RIGHT]
    return EvalMetrics(
        questions=len(graded),
        grades={each: sum(each is its for _, _, its in graded) for each in Grade},
        answerable=sum(not question.silent for question, _, _ in graded),
        answered=sum(got.answers for _, got, _ in graded),
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
