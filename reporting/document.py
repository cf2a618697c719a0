"""Turns a report into headings, paragraphs, tables and bars, and these into Markdown, a web page or terminal output."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from clock import rfc3339
from reporting.cost import Costs, Expense
from reporting.report import CapturedConversation, Report, reason_of, team_answer
from services.telemetry import PartOutcome, number_of
from sinks.terminal import printable_line

MAX_GAPS, MAX_EXAMPLES, MAX_ROWS = 20, 3, 15
"""The most groups of unanswered questions, examples of each, and rows of other tables that are shown."""
MAX_LINE_CHARS = 160
"""The most characters of a question in a table."""


@dataclass(frozen=True, slots=True)
class Title:
    text: str
    level: int = 2


@dataclass(frozen=True, slots=True)
class Sentence:
    text: str


class WordsWithLink(NamedTuple):
    """Words with a link; `address` None: without one."""

    text: str
    address: str | None


Cell = str | WordsWithLink


def _with_link(cell: Cell) -> WordsWithLink:
    return cell if isinstance(cell, WordsWithLink) else WordsWithLink(cell, None)


@dataclass(frozen=True, slots=True)
class TableRows:
    """A table. `numbers`: the indices of the columns that hold numbers, and are right-aligned."""

    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    numbers: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Bars:
    """A bar chart: a whole and a part of it for each label."""

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
    yield from _reasons(report)
    yield from _votes(report)
    yield from _captured(report)
    yield from _pages(report)
    yield from cost_document(report.costs)


def summary(report: Report) -> str:
    """Return the report in one line."""
    if not report.asked:
        return "Nobody asked anything."
    said = f"{number_of(report.asked, 'question')}: {report.answered} answered"
    if report.pointed:
        said += f", {report.pointed} pointed to a page"
    said += f", {report.asked - report.answered - report.pointed} without a reply."
    if report.seconds:  # 0 in a replay without a model, whose clock stands still while it answers
        said += f" A reply took {report.seconds:.1f} s in the median."
    return said


def _gaps(report: Report) -> Iterator[Block]:
    yield Title("Asked, and not answered")
    if report.dismissed:
        yield Sentence(f"{number_of(report.dismissed, 'group')} of questions were dismissed, and are left out.")
    if not report.gaps:
        every = report.answered == report.asked  # else some failed, or were held back
        yield Sentence("Nothing: every question had an answer." if every else "Nothing that better pages would answer.")
        return
    repeated = [gap for gap in report.gaps if len(gap.questions) > 1]
    once = [gap.questions[0] for gap in report.gaps if len(gap.questions) == 1]
    for gap in repeated[:MAX_GAPS]:
        why = ", ".join(f"{reason} {count}" for reason, count in gap.reasons.most_common())
        counted = f"{number_of(len(gap.questions), 'question')} by {number_of(gap.askers, 'person', 'people')} ({why})"
        answered = sum(team_answer(entry, report.answered_since) is not None for entry in gap.questions)
        yield Title(gap.title, 3)
        yield Sentence(f"{counted}; the team has answered {answered} of them since" if answered else counted)
        yield from _questions(gap.questions, MAX_EXAMPLES, report.answered_since)
    if len(repeated) > MAX_GAPS:
        yield Sentence(f"And {len(repeated) - MAX_GAPS} more groups of questions.")
    if once:
        yield Title("Asked once", 3)
        yield from _questions(once, MAX_GAPS, report.answered_since)


def _questions(asked: Sequence[PartOutcome], most: int, answers: Mapping[int, CapturedConversation]) -> Iterator[Block]:
    rows: list[tuple[Cell, ...]] = []
    for entry in asked:
        since = team_answer(entry, answers)
        answered = "" if since is None else since.topic or since.qa_id
        rows.append((entry.day, reason_of(entry), WordsWithLink(shorten(entry.question), entry.link), answered))
    head = ("asked", "no answer because", "question", "the team answered in")
    if not any(row[-1] for row in rows):
        head, rows = head[:-1], [row[:-1] for row in rows]
    yield from _first_rows(TableRows(head, rows), most)


def _first_rows(table: TableRows, most: int = MAX_ROWS) -> Iterator[Block]:
    """Cut a table to `most` rows, and add the number of further rows."""
    yield replace(table, rows=table.rows[:most])
    if len(table.rows) > most:
        yield Sentence(f"And {len(table.rows) - most} more.")


def _reasons(report: Report) -> Iterator[Block]:
    if report.no_reply_reasons:
        yield Title("Why there was no reply")
        rows = [(reason, str(count)) for reason, count in report.no_reply_reasons.most_common()]
        yield TableRows(("reason", "questions"), rows, frozenset({1}))


def _votes(report: Report) -> Iterator[Block]:
    yield Title("Answered, and voted down")
    if not report.voted_down:
        yield Sentence("No answer was voted down.")
        return
    rows = [
        (shorten(each.question), ", ".join(each.sources), str(each.downs), str(each.ups)) for each in report.voted_down
    ]
    yield from _first_rows(TableRows(("question", "answered from", "👎", "👍"), rows, frozenset({2, 3})))


def _captured(report: Report) -> Iterator[Block]:
    yield Title("What the team taught")
    if not report.captured:
        yield Sentence("Nothing new.")
        return
    yield Sentence(f"{number_of(len(report.captured), 'conversation')}.")
    rows = [(each.qa_id, each.topic or "(to be filed)", shorten(each.about)) for each in report.captured]
    yield from _first_rows(TableRows(("conversation", "topic", "about"), rows))


def _pages(report: Report) -> Iterator[Block]:
    yield Title("Pages")
    if report.used:
        rows = [(source, str(count)) for source, count in report.used.most_common()]
        yield from _first_rows(TableRows(("answered from", "times"), rows, frozenset({1})))
    if report.pages:
        yield Sentence(f"{len(report.unused)} of {number_of(report.pages, 'page')} were never used.")
    if report.unused:
        yield from _first_rows(TableRows(("never used",), [(source,) for source in report.unused]))


def cost_document(costs: Costs) -> Iterator[Block]:
    """Turn costs into blocks, for `--report` and `--usage`."""
    yield Title("Cost")
    if not costs.total.calls:
        yield Sentence("No model was asked.")
        return
    yield _cost_table("step", [*costs.steps.items(), ("total", costs.total)])
    yield _cost_table("day", [*sorted(costs.days.items()), ("total", costs.total)])
    by_channel = [
        (f"{costs.names.get(channel, '')} ({channel})".strip(), spent) for channel, spent in costs.channels.items()
    ]
    yield _cost_table("channel", [*by_channel, ("all else", costs.elsewhere), ("total", costs.total)])
    if costs.total.money is None:
        yield Sentence("Set ai_response.llm.price_per_million (and that of kb.llm) to see what it cost.")


def _cost_table(what: str, rows: Sequence[tuple[str, Expense]]) -> TableRows:
    cells = [
        (name, str(spent.calls), f"{spent.prompt:,}", f"{spent.completion:,}", _money(spent)) for name, spent in rows
    ]
    return TableRows((what, "calls", "prompt tokens", "completion tokens", "cost"), cells, frozenset({1, 2, 3, 4}))


def _money(spent: Expense) -> str:
    return "" if spent.money is None else f"{spent.money:.4f}"


def shorten(text: str, most: int = MAX_LINE_CHARS) -> str:
    """Return a text in one line of at most `most` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _day(at: float) -> str:
    return rfc3339(at)[:10]


_MARKUP = re.compile(r"[\\`*_\[\]<>#|~]|^[-+]|(?<=^\d)[.)](?=\s)")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_WIDTH = 30
"""The width of the longest bar in a terminal."""


def markdown(blocks: Iterable[Block]) -> str:
    return "\n\n".join(_markdown(block) for block in blocks) + "\n"


def _markdown(block: Block) -> str:
    match block:
        case Title(text=text, level=level):
            return f"{'#' * level} {_escaped(text)}"
        case Sentence(text=text):
            return _escaped(text)
        case TableRows(head=head, rows=rows, numbers=numbers):
            rule = ("---:" if at in numbers else "---" for at in range(len(head)))
            lines = [head, tuple(rule), *(tuple(map(_cell, row)) for row in rows)]
            return "\n".join(f"| {' | '.join(line)} |" for line in lines)
        case Bars(title=title, whole=whole, part=part, bars=bars):
            rows = [(label, f"{all_:g}", f"{some:g}") for label, all_, some in bars]
            return _markdown(TableRows((title, whole, part), rows, frozenset({1, 2})))


def _cell(cell: Cell) -> str:
    text, address = _with_link(cell)
    return _escaped(text) if address is None else f"[{_escaped(text)}](<{address}>)"


def _escaped(text: str) -> str:
    """Escape Markdown in a text of people."""
    return _MARKUP.sub(r"\\\g<0>", printable_line(text))


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}
table {{ border-collapse: collapse; margin: .5rem 0 1rem; }}
th, td {{ text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid #8884; }}
td {{ vertical-align: top; overflow-wrap: anywhere; }}
.n {{ text-align: right; font-variant-numeric: tabular-nums; }}
time {{ white-space: nowrap; }}
h3 {{ margin: 1.2rem 0 0; }}
svg {{ max-width: 100%; height: auto; }}
.whole {{ fill: #8886; }} .part {{ fill: #2a7; }} text {{ fill: currentColor; font-size: 12px; }}
</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def page(blocks: Iterable[Block]) -> str:
    """Write blocks as one HTML page that loads nothing."""
    kept = list(blocks)
    title = next((block.text for block in kept if isinstance(block, Title)), "Report")
    return _PAGE.format(title=escape(printable_line(title)), body="\n".join(map(_html, kept)))


def _html(block: Block) -> str:
    match block:
        case Title(text=text, level=level):
            return f"<h{level}>{escape(printable_line(text))}</h{level}>"
        case Sentence(text=text):
            return f"<p>{escape(printable_line(text))}</p>"
        case TableRows(head=head, rows=rows, numbers=numbers):
            kinds = [' class="n"' if at in numbers else "" for at in range(len(head))]
            heads = "".join(
                f'<th scope="col"{kind}>{escape(name)}</th>' for kind, name in zip(kinds, head, strict=True)
            )
            lines = (
                "".join(f"<td{kind}>{_html_cell(cell)}</td>" for kind, cell in zip(kinds, row, strict=True))
                for row in rows
            )
            return f"<table><thead><tr>{heads}</tr></thead><tbody><tr>{'</tr><tr>'.join(lines)}</tr></tbody></table>"
        case Bars():
            return _svg(block)


def _html_cell(cell: Cell) -> str:
    words, address = _with_link(cell)
    text = escape(printable_line(words))
    if address is not None:
        return f'<a href="{escape(address)}" rel="noreferrer">{text}</a>'
    return f"<time>{text}</time>" if _DATE.fullmatch(text) else text


def _svg(plot: Bars) -> str:
    """Draw horizontal bars with their numbers, which are readable without colours."""
    most, height = max((whole for _, whole, _ in plot.bars), default=0) or 1, 22
    bars: list[str] = []
    for at, (label, whole, part) in enumerate(plot.bars):
        y, full, some = at * height, 480 * whole / most, 480 * part / most
        bars.append(
            f'<text x="0" y="{y + 14}">{escape(label)}</text>'
            f'<rect class="whole" x="90" y="{y + 3}" width="{full:.1f}" height="14"/>'
            f'<rect class="part" x="90" y="{y + 3}" width="{some:.1f}" height="14"/>'
            f'<text x="{96 + full:.1f}" y="{y + 14}">{part:g} of {whole:g}</text>'
        )
    caption = f"{plot.title}: {plot.whole}, and {plot.part}"
    return (
        f'<figure><figcaption>{escape(caption)}</figcaption><svg role="img" aria-label="{escape(caption)}" '
        f'viewBox="0 0 660 {max(height * len(plot.bars), 1)}" width="660">{"".join(bars)}</svg></figure>'
    )


def show(blocks: Iterable[Block], console: Console) -> None:
    """Print blocks on a terminal."""
    for block in blocks:
        match block:
            case Title(text=text, level=level):
                console.print(Text(f"\n{printable_line(text)}", style="bold" if level <= 2 else "cyan"))  # noqa: PLR2004 (the third level is a question)
            case Sentence(text=text):
                console.print(Text(printable_line(text)))
            case TableRows():
                console.print(_table(block))
            case Bars(whole=whole, part=part, bars=bars):
                most = max((all_ for _, all_, _ in bars), default=0) or 1
                for label, all_, some in bars:
                    full, filled = round(_WIDTH * all_ / most), round(_WIDTH * some / most)
                    line = Text(f"{label}  ")
                    line.append("█" * filled, style="green")
                    line.append("░" * (full - filled), style="dim")
                    console.print(line.append(f" {all_:g} {whole}, {some:g} {part}"))


def _table(rows: TableRows) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for at, name in enumerate(rows.head):
        table.add_column(name, justify="right" if at in rows.numbers else "left", overflow="fold")
    for row in rows.rows:
        table.add_row(
            *(
                Text(printable_line(text), style="" if address is None else f"link {address}")
                for text, address in map(_with_link, row)
            )
        )
    return table
