"""A run while it goes on: what has become of the questions so far, and where that is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from assembly import Unusable
from commands.evaluating.judging import QuestionResult
from commands.evaluating.questions import EvalQuestion
from commands.evaluating.runs import SavedRun, read_run, render_got
from commands.progress import Count
from reporting.cost import Expense, Price
from services.assistant import key_of
from services.storage import files


@dataclass(slots=True)
class EvalRun:
    """Attributes:
    price: of the model's tokens; None: unknown.
    save: where the run is kept; None: nowhere.
    key: changes with everything that all replies depend on.
    got: by `EvalQuestion.key`; resumed: how many of them an earlier run had asked.
    """

    questions: Sequence[EvalQuestion]
    price: Price | None
    save: Path | None
    key: str = ""
    got: dict[tuple[str, bool], QuestionResult] = field(default_factory=dict[tuple[str, bool], QuestionResult])
    resumed: int = 0
    spent: Expense = field(default_factory=Expense)

    def resume(self, earlier: SavedRun) -> None:
        """Take over what an earlier run has got, where it would be got again. Raises OSError: nothing can be saved."""
        if self.save is not None:
            files.append(self.save, b"")  # now, and not when something has been paid for
        for question in self.questions:
            got = earlier.got.get(question.key)
            if got is not None and not got.failed and earlier.keys[question.key] == self._key(question):
                self._take(question, got)
                self.resumed += 1

    def add(self, question: EvalQuestion, got: QuestionResult) -> None:
        """Raises OSError: it cannot be saved."""
        self._take(question, got)
        if self.save is not None:
            files.append(self.save, f"{self._rendered(question)}\n".encode(), own_line=True)

    def finish(self, summary: str) -> None:
        """Save all in the order of the file, and as finished unless something failed. Raises OSError."""
        if self.save is not None:
            lines = [*self.lines, *([] if self.failed else [summary])]
            files.replace(self.save, "".join(f"{line}\n" for line in lines).encode())

    @property
    def left(self) -> list[EvalQuestion]:
        return [each for each in self.questions if each.key not in self.got]

    @property
    def failed(self) -> int:
        return sum(got.failed for got in self.got.values())

    @property
    def judged(self) -> list[tuple[EvalQuestion, QuestionResult]]:
        """In the order of the file."""
        return [(each, self.got[each.key]) for each in self.questions if each.key in self.got]

    @property
    def lines(self) -> list[str]:
        return [self._rendered(question) for question, _ in self.judged]

    @property
    def count(self) -> Count:
        spent = self.spent
        cost = "" if spent.money is None else f", cost {spent.money:.4f}"
        more = f"{spent.tokens:,} tokens{cost}" if spent.calls else ""
        return Count(len(self.got), len(self.questions), "question", more)

    def _take(self, question: EvalQuestion, got: QuestionResult) -> None:
        self.got[question.key] = got
        prompt, completion = (sum(counts[at] for counts in got.tokens.values()) for at in (0, 1))
        self.spent.add(got.llm_calls, prompt, completion, self.price)

    def _rendered(self, question: EvalQuestion) -> str:
        return render_got(question, self.got[question.key], self._key(question))

    def _key(self, question: EvalQuestion) -> str:
        return key_of(self.key, *map(str, question.key))


def unfinished(save: Path | None, option: str) -> SavedRun:
    """Read the results of an earlier run that was cut off. Raises Unusable: it was finished, or the file is something
    else.
    """
    if save is None or not save.exists():
        return SavedRun()
    found = read_run(save, option, torn=True)
    if found.finished:
        raise Unusable(f"{option}: {save} holds a finished run; name another file, or remove it")
    return found
