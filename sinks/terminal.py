"""Outcomes in a terminal: a line for each that matters, and the counts."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from clock import rfc3339
from model.messages import Part
from model.outcomes import Outcome, OutcomeKind, traits_of
from model.source_ids import bare_name
from services.assistant import first_quote
from services.knowledge import address_in
from services.search import asking_sentences
from services.telemetry import number_of
from sinks.results import ResultCounts

_MENTION = re.compile(r"<(?:@[!&]?|#|a?:\w+:)\d+>\s*")
_SELECTORS = {"\ufe0e", "\ufe0f"}
"""Variation selectors: terminals disagree on the width of what precedes them."""
_READ_CHARS = 4_000
"""Characters of a text that are looked at; nothing after them fits into a line."""


def printable_line(text: str) -> str:
    """Return `text` without line breaks, control characters (such as terminal escapes), characters that turn the
    direction of writing, half surrogate pairs, and Discord's mentions by id.
    """
    return " ".join("".join(map(_visible, _MENTION.sub("", text[:_READ_CHARS]))).split())


def visible_lines(text: str) -> list[str]:
    """Return the lines of `text` with their indentation, without the control characters that `printable_line` drops."""
    return ["".join(map(_visible, line)).rstrip() for line in text.split("\n")]


def in_cells(text: str, width: int, *, keep_end: bool = False) -> str:
    """Return `text` in exactly `width` columns, cut or filled. `keep_end` cuts the beginning, as of paths."""
    line = printable_line(text)
    if keep_end and cell_len(line) > width:
        line = line[-4 * width :]
        while cell_len(line) > width - 1:
            line = line[1:]
        line = f"…{line.lstrip('…')}"
    fitted = Text(line)
    fitted.truncate(max(width, 1), overflow="ellipsis", pad=True)
    return fitted.plain


def _visible(character: str) -> str:
    if character in _SELECTORS:
        return ""
    if character.isspace():
        return " "
    return "" if unicodedata.category(character).startswith("C") else character


LOOKS = {
    OutcomeKind.REPLIED: ("✓", "green"),
    OutcomeKind.HELD: ("?", "yellow"),
    OutcomeKind.CAPTURED: ("+", "cyan"),
    OutcomeKind.SKIPPED: ("–", "yellow"),
    OutcomeKind.CANCELLED: ("×", "magenta"),
    OutcomeKind.FAILED: ("!", "bold red"),
}
MIN_WIDTH = 60
UNCUT_WIDTH = 160
"""The columns for examples of chatter where another program reads; other lines have no width there."""
PLACE, NAME, SOURCE = 12, 11, 18
QUOTE_FROM_WIDTH = 110
"""From so many columns on, the beginning of the answer is shown as well."""
EXAMPLES = 3
LONGEST_MESSAGE_CHARS = 4_000
"""Characters: the length of Discord's longest message."""


class PipedConsole(Console):
    """Raises BrokenPipeError when its reader has gone (`| head`), where `Console` raises SystemExit."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Terminal:
    """Writes one line for each outcome: time, place, person, question, and the answer or reason.

    Chatter, which is most of a chat, is only counted. No line wraps, and nothing that people wrote can
    colour, move or clear anything: see `printable_line`.
    """

    def __init__(
        self,
        console: Console,
        name_of: Callable[[int], str],
        headline: str,
        backend: str,
        start: float,
        *,
        uncut: bool = False,
    ) -> None:
        """`headline`: what is replayed, from `start` on; `backend`: what answers; `uncut`: for another program."""
        self._console = console
        self._name_of = name_of
        self._uncut = uncut
        self._width = UNCUT_WIDTH if uncut else max(MIN_WIDTH, console.width)
        self._day = rfc3339(start)[:10]
        self._examples = defaultdict[str, list[str]](list)
        """Examples of chatter, by its reason."""
        headline = f"{headline}, from {self._day}"
        both = f"{headline}: {backend}"
        for line in [both] if len(both) <= self._width else [headline, backend]:
            self._line((printable_line(line), "bold"))
        self._line()

    def write(self, outcome: Outcome) -> None:
        part = outcome.part
        if outcome.reason is not None and traits_of(outcome.reason).is_chatter:
            # Questions first: they say more than chatter does.
            examples = [*self._examples[outcome.reason], question_of(part)]
            self._examples[outcome.reason] = sorted(examples, key=lambda text: not text.endswith("?"))[:EXAMPLES]
            return
        sign, style = LOOKS[outcome.result]
        day, time = rfc3339(part.last.at)[:10], rfc3339(part.last.at)[11:16]
        if self._day != day:
            self._line((day, "bold"))
        self._day = day
        what = Text.assemble(
            (time, "dim"),
            (f" {sign} ", style),
            (in_cells(self._place(part), PLACE), "blue"),
            " ",
            (in_cells(part.author.name, NAME), "bold"),
            " ",
        )
        rest = self._width - what.cell_len
        if outcome.result is OutcomeKind.REPLIED:
            self._line(what, *self._answer(outcome, rest))
        else:
            why = ending_of(outcome)
            asking = max(rest * 3 // 5, rest - len(why) - 1)
            if not self._uncut and outcome.reason is not None and asking + 1 + len(why) > rest:
                why = str(outcome.reason)  # the sign says the result
                asking = max(rest * 3 // 5, rest - len(why) - 1)
            self._line(what, (self._cell(question_of(part), asking), "dim"), " ", (printable_line(why), style))

    def finish(self, counts: ResultCounts) -> None:
        reasons = {kind: dict(counts.reasons[kind]) for kind in LOOKS}
        skipped = reasons[OutcomeKind.SKIPPED]
        chatter = {reason: skipped.pop(reason) for reason in tuple(skipped) if traits_of(reason).is_chatter}
        self._line()
        self._line(
            (number_of(counts.messages, "message"), "bold"),
            f" in {number_of(counts.parts.total(), 'part')}, or ignored",
        )
        for kind, (_, style) in LOOKS.items():
            count = counts.parts[kind] - (sum(chatter.values()) if kind is OutcomeKind.SKIPPED else 0)
            if count or kind is OutcomeKind.REPLIED:
                self._count(count, kind, reasons[kind], style)
        for reason, count in chatter.items():
            width = (self._width - 32) // EXAMPLES - 3
            examples = " ".join(f"“{in_cells(text, width).rstrip()}”" for text in self._examples[reason])
            self._line((f"{count:>5} ", "yellow"), f"{reason:<15} ", (f"such as {examples}", "dim"))
        if counts.ignored:
            self._count(counts.ignored.total(), "ignored", dict(counts.ignored), "")
        if counts.removed:
            self._line(f"{counts.removed:>5} removed         ", ("deleted while they waited", "dim"))

    def _answer(self, outcome: Outcome, room: int) -> list[tuple[str, str] | str]:
        quotes = self._width >= QUOTE_FROM_WIDTH
        name = source_name(outcome)
        # Without a quote behind it, the name of the source takes no more than it needs, for the sake of the question.
        width = SOURCE if quotes else min(SOURCE, cell_len(printable_line(name)))
        source = self._cell(name, width, keep_end=True)
        asking = (room - SOURCE - 4) * 3 // 5 if quotes else room - width - 3
        question = self._cell(question_of(outcome.part), asking)
        cells: list[tuple[str, str] | str] = [question, (" → ", "dim"), (source, "green")]
        if quotes:
            quote = first_quote(outcome.reply_text or "").removeprefix("```\n")
            cells += [" ", (self._cell(quote, room - asking - SOURCE - 4).rstrip(), "dim italic")]
        return cells

    def _cell(self, text: str, width: int, *, keep_end: bool = False) -> str:
        return printable_line(text) if self._uncut else in_cells(text, width, keep_end=keep_end)

    def _count(self, count: int, name: str, reasons: dict[str, int], style: str) -> None:
        detail = ", ".join(f"{number} {why}" for why, number in sorted(reasons.items(), key=lambda r: (-r[1], r[0])))
        self._line((f"{count:>5} ", style), f"{name:<15} ", (printable_line(detail), "dim"))

    def _line(self, *cells: tuple[str, str] | str | Text) -> None:
        line = Text.assemble(*cells)
        if not self._uncut:
            line.truncate(min(self._width, self._console.width), overflow="ellipsis")
        overflow = "ignore" if self._uncut else "crop"
        self._console.print(line, no_wrap=True, overflow=overflow, soft_wrap=True, highlight=False)

    def _place(self, part: Part) -> str:
        name = self._name_of(part.place.channel_id)
        return f"↳ #{name}" if part.place.is_thread else f"#{name}"


def question_of(part: Part) -> str:
    """Return one line for a part: the first sentence that asks, else its beginning."""
    whole = "\n".join(message.text for message in part.messages)[:LONGEST_MESSAGE_CHARS]
    asking, _ = asking_sentences(whole)
    return printable_line(asking[0] if asking else whole) or "(a file)"


def ending_of(outcome: Outcome) -> str:
    if outcome.result is OutcomeKind.CAPTURED:
        return "learned"
    if outcome.result is OutcomeKind.HELD:
        return str(outcome.reason)
    return f"{outcome.result}: {outcome.reason}" if outcome.reason else str(outcome.result)


def source_name(outcome: Outcome) -> str:
    """Return the first source without its namespace, a web page as its path, and how many more there are. Without one
    the reply is about what was posted.
    """
    sources = outcome.sources
    if not sources:
        posted = [each for message in outcome.part.messages for each in message.attachments]
        if any(each.is_image for each in posted):
            return "the image"
        return "the file" if posted else "earlier messages"
    name = bare_name(sources[0])
    if (url := address_in(sources[0])) is not None:
        name = "…/" + url.split("://", 1)[1].partition("/")[2]
    return f"{name} +{len(sources) - 1}" if len(sources) > 1 else name
