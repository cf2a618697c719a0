"""Outcomes for people: a line each, and the counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from clock import rfc3339
from model.batches import Part
from model.outcomes import Outcome, Result
from sinks.tally import Tally

STYLES = {
    Result.REPLIED: "bold green",
    Result.CAPTURED: "bold cyan",
    Result.SKIPPED: "yellow",
    Result.CANCELLED: "magenta",
    Result.FAILED: "bold red",
}
ELLIPSIS_AT = 58


class Terminal:
    """Writes one line an outcome: when, where, what became of it, and what it was about."""

    def __init__(self, console: Console, name_of: Callable[[int], str]) -> None:
        self._console = console
        self._name_of = name_of

    def write(self, outcome: Outcome) -> None:
        part = outcome.part
        line = Text.assemble(
            (rfc3339(outcome.at)[11:19], "dim"),
            f" #{self._place(part):<11.11} ",
            (f"{outcome.result:<9}", STYLES[outcome.result]),
            f" {short(part)}",
        )
        self._console.print(line, soft_wrap=True)
        if outcome.result is Result.REPLIED:
            self._console.print(
                Text(f"{'':22}└ from {', '.join(outcome.sources) or 'the image'}", "dim"), soft_wrap=True
            )
        elif outcome.reason is not None:
            self._console.print(Text(f"{'':22}└ {outcome.reason}", "dim"), soft_wrap=True)

    def finish(self, tally: Tally) -> None:
        counts = tally.summary()
        table = Table(
            title="What became of it", title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0)
        )
        table.add_row("messages", str(tally.messages), f"in {tally.parts.total()} parts, or ignored")
        for result in Result:
            detail = ", ".join(f"{count} {why}" for why, count in sorted(tally.reasons.get(result, Counter()).items()))
            table.add_row(Text(result, STYLES[result]), str(tally.parts[result]), detail)
        table.add_row(
            "ignored", str(tally.ignored.total()), ", ".join(f"{n} {why}" for why, n in sorted(tally.ignored.items()))
        )
        table.add_row("removed", str(counts["removed"]), "deleted while they waited")
        self._console.print()
        self._console.print(table)

    def _place(self, part: Part) -> str:
        return self._name_of(part.place.id)


def short(part: Part) -> str:
    """Who said what, in one line."""
    text = " ".join(" ".join(message.text for message in part.messages).split()) or "(a file)"
    cut = text if len(text) <= ELLIPSIS_AT else text[: ELLIPSIS_AT - 1].rstrip() + "…"
    return f"{part.author.name}: {cut}"
