"""A report as headings, paragraphs, tables and bars, which `rendering` writes in several forms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from clock import rfc3339
from reporting.cost import Costs, Expense
from reporting.gaps import reason_of
from reporting.report import Report
from services.telemetry import Ended, number_of

GAPS, EXAMPLES, TABLE_ROWS = 20, 3, 15
"""So many groups of unanswered questions, examples of each, and rows of other tables are shown."""
LINE = 160
"""Characters of a question in a table."""


@dataclass(frozen=True, slots=True)
class Title:
    text: str
    level: int = 2


@dataclass(frozen=True, slots=True)
class Sentence:
    text: str


@dataclass(frozen=True, slots=True)
class WordsWithLink:
    """Words, and where they lead; `address` None: nowhere."""

    text: str
    address: str | None = None


Cell = str | WordsWithLink


@dataclass(frozen=True, slots=True)
class TableRows:
    """A table. `numbers`: columns that are set to the right."""

    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    numbers: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Bars:
    """A plot: of each label, a whole and a part of it."""

    title: str
    whole: str
    part: str
    bars: Sequence[tuple[str, float, float]]


Block = Title | Sentence | TableRows | Bars


def document(report: Report) -> Iterator[Block]:
    """Turn a report into blocks, the most useful first."""
    yield Title(f"Questions from {_day(report.period.since)} to {_day(report.period.until)}", 1)
    yield Sentence(summary(report))
    if report.by_day:
        bars = [(day, float(asked), float(answered)) for day, (asked, answered) in sorted(report.by_day.items())]
        yield Bars("Questions a day", "asked", "answered", bars)
    if report.asked:
        yield from _gaps(report)
    yield from _left(report)
    yield from _votes(report)
    yield from _taught(report)
    yield from _pages(report)
    yield from cost_document(report.costs)


def summary(report: Report) -> str:
    """One line."""
    if not report.asked:
        return "Nobody asked anything."
    said = f"{number_of(report.asked, 'question')}: {report.answered} answered"
    if report.pointed:
        said += f", {report.pointed} pointed to a page"
    said += f", {report.asked - report.answered - report.pointed} without a reply."
    if report.seconds:  # a replay without a model takes none of the recording's time
        said += f" A reply took {report.seconds:.1f} s in the median."
    return said


def _gaps(report: Report) -> Iterator[Block]:
    yield Title("Asked, and not answered")
    if not report.gaps:
        every = report.answered == report.asked  # else some failed, or were held back
        yield Sentence("Nothing: every question had an answer." if every else "Nothing that better pages would answer.")
        return
    repeated = [gap for gap in report.gaps if len(gap.asked) > 1]
    once = [gap.asked[0] for gap in report.gaps if len(gap.asked) == 1]
    for gap in repeated[:GAPS]:
        why = ", ".join(f"{reason} {count}" for reason, count in gap.reasons.most_common())
        counted = f"{number_of(len(gap.asked), 'question')} by {number_of(gap.askers, 'person', 'people')} ({why})"
        yield Title(_short(gap.question), 3)
        yield Sentence(counted)
        yield _questions(gap.asked[:EXAMPLES])
    if len(repeated) > GAPS:
        yield Sentence(f"And {len(repeated) - GAPS} more groups of questions.")
    if once:
        yield Title("Asked once", 3)
        yield _questions(once[:GAPS])
    if len(once) > GAPS:
        yield Sentence(f"And {len(once) - GAPS} more.")


def _questions(asked: Sequence[Ended]) -> TableRows:
    rows = [(entry.day, reason_of(entry), WordsWithLink(_short(entry.question), entry.link)) for entry in asked]
    return TableRows(("asked", "no answer because", "question"), rows)


def _left(report: Report) -> Iterator[Block]:
    if report.left:
        yield Title("Why there was no reply")
        rows = [(reason, str(count)) for reason, count in report.left.most_common()]
        yield TableRows(("reason", "questions"), rows, frozenset({1}))


def _votes(report: Report) -> Iterator[Block]:
    yield Title("Answered, and voted down")
    if not report.voted_down:
        yield Sentence("Nothing.")
        return
    rows = [
        (_short(each.question), ", ".join(each.sources), str(each.downs), str(each.ups))
        for each in report.voted_down[:TABLE_ROWS]
    ]
    yield TableRows(("question", "answered from", "👎", "👍"), rows, frozenset({2, 3}))


def _taught(report: Report) -> Iterator[Block]:
    yield Title("What the team taught")
    if not report.taught:
        yield Sentence("Nothing new.")
        return
    yield Sentence(f"{number_of(len(report.taught), 'conversation')}.")
    rows = [(each.qa_id, each.topic or "(to be filed)", _short(each.about)) for each in report.taught[:TABLE_ROWS]]
    yield TableRows(("conversation", "topic", "about"), rows)


def _pages(report: Report) -> Iterator[Block]:
    yield Title("Pages")
    if report.used:
        rows = [(source, str(count)) for source, count in report.used.most_common(TABLE_ROWS)]
        yield TableRows(("answered from", "times"), rows, frozenset({1}))
    if report.pages:
        yield Sentence(f"{len(report.unused)} of {number_of(report.pages, 'page')} were never used.")
    if report.unused:
        yield TableRows(("never used",), [(source,) for source in report.unused[:TABLE_ROWS]])
        if len(report.unused) > TABLE_ROWS:
            yield Sentence(f"And {len(report.unused) - TABLE_ROWS} more.")


def cost_document(costs: Costs) -> Iterator[Block]:
    """Turn costs into blocks, for `--report` and `--usage`."""
    yield Title("Cost")
    if not costs.total.calls:
        yield Sentence("No model was asked.")
        return
    yield _spent("step", [*costs.steps.items(), ("total", costs.total)])
    yield _spent("day", [*sorted(costs.days.items()), ("total", costs.total)])
    by_channel = [
        (f"{costs.names.get(channel, '')} ({channel})".strip(), spent) for channel, spent in costs.channels.items()
    ]
    yield _spent("channel", [*by_channel, ("all else", costs.elsewhere), ("total", costs.total)])
    if costs.total.money is None:
        yield Sentence("Set ai_response.llm.price_per_million (and that of kb.llm) to see what it cost.")


def _spent(what: str, rows: Sequence[tuple[str, Expense]]) -> TableRows:
    cells = [
        (name, str(spent.calls), f"{spent.prompt:,}", f"{spent.completion:,}", _money(spent)) for name, spent in rows
    ]
    return TableRows((what, "calls", "prompt tokens", "completion tokens", "cost"), cells, frozenset({1, 2, 3, 4}))


def _money(spent: Expense) -> str:
    return "" if spent.money is None else f"{spent.money:.4f}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LINE else f"{line[: LINE - 1]}…"


def _day(at: float) -> str:
    return rfc3339(at)[:10]
