"""A run for people: each question, what is wrong, the figures, and what has changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from commands.evaluating.comparing import Change, Comparison
from commands.evaluating.judging import EvalMetrics, Grade, QuestionResult, grade
from commands.evaluating.questions import EvalQuestion, Share
from model.outcomes import OutcomeKind
from reporting.cost import Expense
from reporting.document import Block, Sentence, TableRows, Title
from services.assistant import first_quote
from services.telemetry import number_of

LINE = 100
"""Characters of a question, and of what was said, in a table."""
_ABOUT = {
    Share.PRECISION: "answers that are right",
    Share.RECALL: "questions that are answered rightly",
    Share.SHOWN: "the same, or pointed to what answers",
    Share.SILENCE: "silent where silence is right",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalReport:
    """A run to its end.

    Attributes:
        todo: questions that are not asked yet; resumed: that an earlier run had asked.
        not_indexed: sources that are expected and that no index names.
        seconds: that it took; spent: what models were asked for, also by the earlier run.
    """

    name: str
    judged: Sequence[tuple[EvalQuestion, QuestionResult]]
    least: Mapping[Share, float]
    figures: EvalMetrics
    todo: int
    resumed: int
    not_indexed: Sequence[str]
    seconds: float
    spent: Expense
    baseline: Comparison | None = None

    @property
    def below(self) -> str:
        """Which thresholds are not met, in words; empty where all are."""
        missed = (f"{each} {_percent(self.figures, each)}" for each in self.figures.below(self.least))
        return ", ".join(missed)


def eval_document(report: EvalReport) -> Iterator[Block]:
    """All that there is to tell, the figures last, where a terminal shows them."""
    graded = [(question, got, grade(question, got)) for question, got in report.judged]
    yield Title(f"{number_of(len(graded), 'question')} of {report.name}", 1)
    rows = [(each, asked(question), expected(question), became(got)) for question, got, each in graded]
    yield TableRows(("", "question", "expected", "got"), rows)
    wrong = [(question, got) for question, got, each in graded if each is Grade.WRONG]
    if wrong:
        yield Title("Wrong")
        said = [(asked(question), expected(question), _cited(got), _said(got)) for question, got in wrong]
        yield TableRows(("question", "expected", "answered from", "with"), said)
    if report.not_indexed:
        yield Title("Expected, and in no index")
        yield TableRows(("source",), [(each,) for each in report.not_indexed])
    yield Title("Figures")
    yield from _figures(report)
    if report.baseline is not None:
        yield from _compared(report.baseline)


def asked(question: EvalQuestion) -> str:
    return _short(question.text) + (" (to the bot)" if question.addressed else "")


def expected(question: EvalQuestion) -> str:
    if question.silent:
        return "silence"
    words = " or ".join(f"“{each}”" for each in question.words)
    return " with ".join(filter(None, [" or ".join(question.sources), words]))


def became(got: QuestionResult) -> str:
    """Say which sources an answer is from, or why there is none."""
    if got.outcome is OutcomeKind.REPLIED:
        return f"{'pointed to ' if got.points else ''}{_cited(got)}"
    at = f"{got.step}: " if got.step and got.outcome is OutcomeKind.SKIPPED else ""
    return f"{at}{got.reason or got.outcome}" + (f": {_short(got.why)}" if got.why else "")


def _figures(report: EvalReport) -> Iterator[Block]:
    found = report.figures
    grades = [f"{count} {each}" for each, count in found.grades.items() if count]
    yield Sentence(
        f"{number_of(found.questions, 'question')}: {', '.join(grades)}."
        + (f" {report.todo} more to be decided." if report.todo else "")
    )
    below = found.below(report.least)
    rows: list[tuple[str, ...]] = []
    for each in Share:
        some, whole = found.counts(each)
        wanted = report.least.get(each)
        least = "" if wanted is None else f"{wanted:.3f}{' (missed)' if each in below else ''}"
        rows.append((each, _ABOUT[each], f"{some} of {whole}", _percent(found, each), least))
    yield TableRows(("figure", "", "", "share", "at least"), rows, frozenset({2, 3}))
    yield Sentence(spent_in_words(report.spent) + f" It took {report.seconds:.1f} s." + _resumed(report.resumed))


def spent_in_words(spent: Expense) -> str:
    if not spent.calls:
        return "No model was asked."
    asked = f"{number_of(spent.calls, 'LLM call')}, {spent.prompt:,} tokens in prompts, {spent.completion:,} in replies"
    return f"{asked}." if spent.money is None else f"{asked}, cost {spent.money:.4f}."


def _resumed(count: int) -> str:
    return f" {number_of(count, 'question')} had been asked by an earlier run." if count else ""


def _compared(found: Comparison) -> Iterator[Block]:
    yield Title("Compared with the baseline")
    counts = [f"{len(found.better)} better", f"{len(found.worse)} worse"]
    counts += [f"{count} {what}" for count, what in ((found.new, "new"), (found.gone, "gone")) if count]
    yield Sentence(", ".join(counts) + f"; of {number_of(found.after.questions, 'question')} that both runs asked:")
    rows = [(each, _percent(found.before, each), _percent(found.after, each)) for each in Share]
    yield TableRows(("figure", "baseline", "now"), rows, frozenset({1, 2}))
    for title, changes in (("Worse", found.worse), ("Better", found.better)):
        if changes:
            yield Title(title, 3)
            yield TableRows(("question", "baseline", "now"), list(map(_changed, changes)))


def _changed(change: Change) -> tuple[str, ...]:
    return asked(change.question), change.before, change.after


def _percent(found: EvalMetrics, share: Share) -> str:
    return "–" if (part := found.share(share)) is None else f"{part:.3f}"


def _cited(got: QuestionResult) -> str:
    return ", ".join(got.sources) or "no source"


def _said(got: QuestionResult) -> str:
    return _short(first_quote(got.reply) or got.reply)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LINE else f"{line[: LINE - 1]}…"
