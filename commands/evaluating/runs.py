"""A run of `--eval`: replies graded, counted and compared with those of another run; its JSON Lines, its progress and
saved state, and its report for people.

`--json` prints the JSON Lines, `--save` writes them and `--baseline` reads them: a line for each question, and a
summary. No line has a time, so that two runs over the same knowledge give the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from assembly import Unusable
from commands.evaluating.questions import EvalQuestion, QuestionFile, Share
from commands.progress import Count
from model.outcomes import OutcomeKind
from reporting.cost import Expense, Price
from reporting.document import Block, Sentence, TableRows, Title, shorten
from services.assistant import description_key, first_quote
from services.knowledge import PathFilter, belongs_to
from services.search import Level
from services.storage import files
from services.telemetry import number_of


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


SAVE = "--save"


@dataclass(frozen=True, slots=True)
class SavedRun:
    """A run as read from a file.

    Attributes:
        results: by `EvalQuestion.key`.
        keys: of everything that each reply depended on, likewise.
        finished: True if the file ends with a summary.
    """

    results: Mapping[tuple[str, bool], QuestionResult] = field(default_factory=dict[tuple[str, bool], QuestionResult])
    keys: Mapping[tuple[str, bool], str] = field(default_factory=dict[tuple[str, bool], str])
    finished: bool = False


def render_result(question: EvalQuestion, result: QuestionResult, key: str) -> str:
    """Return the line of a result, without its end. `key`: changes with everything that the reply depends on."""
    expected: dict[str, object] = {"source": list(question.sources), "words": list(question.words)}
    return _line(
        {
            "question": question.text,
            "addressed": question.addressed,
            "expected": {"silence": True} if question.silent else {k: v for k, v in expected.items() if v},
            "grade": grade(question, result),
            "outcome": result.outcome,
            "level": result.level,
            "reason": result.reason,
            "step": result.step,
            "why": result.why,
            "sources": list(result.sources),
            "reply_text": result.reply or None,
            "llm_calls": result.llm_calls,
            "tokens": {step: list(counts) for step, counts in result.tokens.items()},
            "key": key,
        }
    )


def read_run(path: Path, option: str, *, torn: bool = False) -> SavedRun:
    """Read a saved run. `option` names the file in errors; `torn`: the last line may be cut off.

    Raises:
        Unusable: the file cannot be read, or is no run.
    """
    try:
        lines = path.read_bytes().decode("utf-8").split("\n")
    except OSError as error:
        raise Unusable(f"{option}: {path} cannot be read ({error.strerror}); name a file of --save") from None
    except UnicodeDecodeError:
        raise Unusable(f"{option}: {path} is no run; name a file of --save") from None
    results: dict[tuple[str, bool], QuestionResult] = {}
    keys: dict[tuple[str, bool], str] = {}
    finished = False
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row: Any = json.loads(line)
            finished = "summary" in row
            if not finished:
                key = (_text(row["question"]), bool(row["addressed"]))
                results[key], keys[key] = _parse_result(row), _text(row["key"])
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            if torn and number == len(lines) and line[: len(_LINE_START)] == _LINE_START[: len(line)]:
                break
            raise Unusable(f"{option}: {path}:{number}: this is no line of a run; name a file of --save") from None
    return SavedRun(results, keys, finished)


_LINE_START = '{"question": '
"""The beginning of each line but the last, which is written together with all others."""


def _parse_result(row: Mapping[str, Any]) -> QuestionResult:
    return QuestionResult(
        outcome=OutcomeKind(row["outcome"]),
        level=_text_or_none(row["level"]),
        reason=_text_or_none(row["reason"]),
        step=_text_or_none(row["step"]),
        why=_text(row["why"]),
        sources=tuple(_text(each) for each in row["sources"]),
        reply=_text_or_none(row["reply_text"]) or "",
        llm_calls=int(row["llm_calls"]),
        tokens={_text(step): (int(asked), int(said)) for step, (asked, said) in row["tokens"].items()},
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _text_or_none(value: object) -> str | None:
    return None if value is None else _text(value)


def _line(fields: Mapping[str, object]) -> str:
    # A model may write half a surrogate pair, which no file can encode.
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace").decode()


@dataclass(slots=True)
class EvalRun:
    """A run that is being made.

    Attributes:
        price: of the model's tokens; None: unknown.
        save: the file of the run; None: it is not saved.
        key: changes with everything that all replies depend on.
        results: by `EvalQuestion.key`.
        resumed: the number of results of an earlier run.
    """

    questions: Sequence[EvalQuestion]
    price: Price | None
    save: Path | None
    key: str = ""
    results: dict[tuple[str, bool], QuestionResult] = field(default_factory=dict[tuple[str, bool], QuestionResult])
    resumed: int = 0
    spent: Expense = field(default_factory=Expense)

    def resume(self, earlier: SavedRun) -> None:
        """Add those results of an earlier run that would be the same now. Raises OSError: nothing can be saved."""
        if self.save is not None:
            files.append(self.save, b"")  # fails before anything has been paid for
        for question in self.questions:
            result = earlier.results.get(question.key)
            if result is not None and not result.failed and earlier.keys[question.key] == self._key(question):
                self._add_result(question, result)
                self.resumed += 1

    def add(self, question: EvalQuestion, result: QuestionResult) -> None:
        """Add a result, and save it. Raises OSError."""
        self._add_result(question, result)
        if self.save is not None:
            files.append(self.save, f"{self._render(question)}\n".encode(), own_line=True)

    def finish(self, summary: str) -> None:
        """Save all results in the order of the questions, with the summary unless one failed. Raises OSError."""
        if self.save is not None:
            lines = [*self.lines, *([] if self.failed else [summary])]
            files.replace(self.save, "".join(f"{line}\n" for line in lines).encode())

    @property
    def left(self) -> list[EvalQuestion]:
        return [each for each in self.questions if each.key not in self.results]

    @property
    def failed(self) -> int:
        return sum(result.failed for result in self.results.values())

    @property
    def judged(self) -> list[tuple[EvalQuestion, QuestionResult]]:
        """The questions with their results, in the order of the file."""
        return [(each, self.results[each.key]) for each in self.questions if each.key in self.results]

    @property
    def lines(self) -> list[str]:
        return [self._render(question) for question, _ in self.judged]

    @property
    def count(self) -> Count:
        spent = self.spent
        cost = "" if spent.money is None else f", cost {spent.money:.4f}"
        more = f"{spent.tokens:,} tokens{cost}" if spent.calls else ""
        return Count(len(self.results), len(self.questions), "question", more)

    def _add_result(self, question: EvalQuestion, result: QuestionResult) -> None:
        self.results[question.key] = result
        prompt, completion = (sum(counts[at] for counts in result.tokens.values()) for at in (0, 1))
        self.spent.add(result.llm_calls, prompt, completion, self.price)

    def _render(self, question: EvalQuestion) -> str:
        return render_result(question, self.results[question.key], self._key(question))

    def _key(self, question: EvalQuestion) -> str:
        return description_key(self.key, *map(str, question.key))


def read_unfinished(save: Path | None) -> SavedRun:
    """Read the results of a run that was cut off. Raises Unusable: the run was finished, or the file is no run."""
    if save is None or not save.exists():
        return SavedRun()
    found = read_run(save, SAVE, torn=True)
    if found.finished:
        raise Unusable(f"{SAVE}: {save} holds a finished run; name another file, or remove it")
    return found


LINE = 100
"""The most characters of a question, and of a reply, in a table."""
_ABOUT = {
    Share.PRECISION: "answers that are right",
    Share.RECALL: "questions that are answered rightly",
    Share.SHOWN: "the same, or pointed to what answers",
    Share.SILENCE: "silent where silence is right",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalReport:
    """A finished run of a file of questions.

    Attributes:
        not_indexed: expected sources that no index contains.
        seconds: the duration of this run.
    """

    name: str
    file: QuestionFile
    run: EvalRun
    figures: EvalMetrics
    not_indexed: Sequence[str]
    seconds: float
    baseline: Comparison | None = None

    @property
    def below(self) -> str:
        """The thresholds that are not met, in words; empty if all are."""
        missed = (f"{each} {_percent(self.figures, each)}" for each in self.figures.below(self.file.thresholds))
        return ", ".join(missed)


def render_summary(report: EvalReport) -> str:
    """Return the last line of a run, without its end."""
    found, spent = report.figures, report.run.spent
    fields: dict[str, object] = {
        "questions": found.questions,
        **found.grades,
        "answerable": found.answerable,
        "answered": found.answered,
        "right_answers": found.right_answers,
        "silence_kept": found.kept,
        **{name: None if (share := found.share(name)) is None else round(share, 4) for name in Share},
        "below": found.below(report.file.thresholds),
        "llm_calls": spent.calls,
        "tokens": [spent.prompt, spent.completion],
        "cost": None if spent.money is None or not spent.calls else round(spent.money, 6),
        "todo": len(report.file.todo),
        "not_indexed": list(report.not_indexed),
    }
    if (compared := report.baseline) is not None:
        changes = {"better": compared.better, "worse": compared.worse}
        fields["baseline"] = {
            **{name: list(map(_change_fields, some)) for name, some in changes.items()},
            "new": compared.new,
            "gone": compared.gone,
        }
    return _line({"summary": fields})


def _change_fields(change: Change) -> dict[str, object]:
    asked = {"question": change.question.text, "addressed": change.question.addressed}
    return {**asked, "baseline": change.before, "now": change.after}


def eval_document(report: EvalReport) -> Iterator[Block]:
    """Make the report, with the figures at the end, where a terminal shows them."""
    rows = [
        (grade(question, result), question_text(question), expected_text(question), result_text(result))
        for question, result in report.run.judged
    ]
    yield Title(f"{number_of(len(rows), 'question')} of {report.name}", 1)
    yield TableRows(("", "question", "expected", "got"), rows)
    wrong = [(question, result) for question, result in report.run.judged if grade(question, result) is Grade.WRONG]
    if wrong:
        yield Title("Wrong")
        texts = [
            (
                question_text(each),
                expected_text(each),
                _cited(result),
                shorten(first_quote(result.reply) or result.reply, LINE),
            )
            for each, result in wrong
        ]
        yield TableRows(("question", "expected", "answered from", "with"), texts)
    if report.not_indexed:
        yield Title("Expected, and in no index")
        yield TableRows(("source",), [(each,) for each in report.not_indexed])
    yield Title("Figures")
    yield from _figure_blocks(report)
    if report.baseline is not None:
        yield from _comparison_blocks(report.baseline)


def question_text(question: EvalQuestion) -> str:
    return shorten(question.text, LINE) + (" (to the bot)" if question.addressed else "")


def expected_text(question: EvalQuestion) -> str:
    if question.silent:
        return "silence"
    words = " or ".join(f"“{each}”" for each in question.words)
    return " with ".join(filter(None, [" or ".join(question.sources), words]))


def result_text(result: QuestionResult) -> str:
    """Describe the sources of an answer and its changes, or why there is no answer."""
    why = shorten(result.why, LINE)
    if result.outcome is OutcomeKind.REPLIED:
        return f"{'pointed to ' if result.is_pointer else ''}{_cited(result)}" + (f"; {why}" if result.why else "")
    at = f"{result.step}: " if result.step and result.outcome is OutcomeKind.SKIPPED else ""
    return f"{at}{result.reason or result.outcome}" + (f": {why}" if result.why else "")


def _figure_blocks(report: EvalReport) -> Iterator[Block]:
    found = report.figures
    grades = [f"{count} {each}" for each, count in found.grades.items() if count]
    yield Sentence(
        f"{number_of(found.questions, 'question')}: {', '.join(grades)}."
        + (f" {len(report.file.todo)} more to be decided." if report.file.todo else "")
    )
    below = found.below(report.file.thresholds)
    rows: list[tuple[str, ...]] = []
    for each in Share:
        some, whole = found.counts(each)
        wanted = report.file.thresholds.get(each)
        threshold = "" if wanted is None else f"{wanted:.3f}{' (missed)' if each in below else ''}"
        rows.append((each, _ABOUT[each], f"{some} of {whole}", _percent(found, each), threshold))
    yield TableRows(("figure", "", "", "share", "at least"), rows, frozenset({2, 3}))
    resumed = report.run.resumed
    earlier = f" {number_of(resumed, 'question')} had been asked by an earlier run." if resumed else ""
    yield Sentence(f"{spent_in_words(report.run.spent)} It took {report.seconds:.1f} s.{earlier}")


def spent_in_words(spent: Expense) -> str:
    if not spent.calls:
        return "No model was asked."
    text = f"{number_of(spent.calls, 'LLM call')}, {spent.prompt:,} tokens in prompts, {spent.completion:,} in replies"
    return f"{text}." if spent.money is None else f"{text}, cost {spent.money:.4f}."


def _comparison_blocks(found: Comparison) -> Iterator[Block]:
    yield Title("Compared with the baseline")
    counts = [f"{len(found.better)} better", f"{len(found.worse)} worse"]
    counts += [f"{count} {what}" for count, what in ((found.new, "new"), (found.gone, "gone")) if count]
    yield Sentence(", ".join(counts) + f"; of {number_of(found.after.questions, 'question')} that both runs asked:")
    rows = [(each, _percent(found.before, each), _percent(found.after, each)) for each in Share]
    yield TableRows(("figure", "baseline", "now"), rows, frozenset({1, 2}))
    for title, changes in (("Worse", found.worse), ("Better", found.better)):
        if changes:
            yield Title(title, 3)
            changed = [(question_text(each.question), each.before, each.after) for each in changes]
            yield TableRows(("question", "baseline", "now"), changed)


def _percent(found: EvalMetrics, share: Share) -> str:
    return "–" if (part := found.share(share)) is None else f"{part:.3f}"


def _cited(result: QuestionResult) -> str:
    return ", ".join(result.sources) or "no source"
