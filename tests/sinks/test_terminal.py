"""What the terminal shows: one line each, nothing wrapped, nothing obeyed that people wrote."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from model.messages import Attachment, Author, AuthorType, Message, Part, Place, PlaceKind
from model.outcomes import Ignored, Outcome, OutcomeKind, Reason, Removed
from sinks.results import ResultCounts
from sinks.terminal import PipedConsole, Terminal, in_cells, printable_line
from tests.services.quickly import QUICKLY

NOON = 1_773_230_400.0
HELP = Place(5, PlaceKind.CHANNEL, "help")
THREAD = Place(6, PlaceKind.THREAD, "a very long name of a thread that nobody wants to read", parent_id=5)
NAMES = {5: "help"}


def part(*texts: str, place: Place = HELP, name: str = "ana") -> Part:
    author = Author(7, name)
    messages = tuple(Message(n, place.id, author, text, NOON) for n, text in enumerate(texts, 100))
    return Part(1, messages, AuthorType.COMMUNITY_USER, place, NOON + 60)


def replied(*texts: str, reply: str = "From `a.md`:\n\nTurn the lever.", place: Place = HELP) -> Outcome:
    return Outcome(part(*texts, place=place), NOON + 60, OutcomeKind.REPLIED, reply_text=reply, sources=("kb:a.md",))


def skipped(reason: Reason, *texts: str) -> Outcome:
    return Outcome(part(*texts), NOON + 60, OutcomeKind.SKIPPED, reason)


def shown(
    *outcomes: Outcome, width: int = 110, tty: bool = False, tally: ResultCounts | None = None, uncut: bool = False
) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=tty, color_system="truecolor" if tty else None)
    terminal = Terminal(
        console, lambda place: NAMES.get(place, str(place)), "Replaying day.jsonl", "a model", NOON, uncut=uncut
    )
    for outcome in outcomes:
        terminal.write(outcome)
    if tally is not None:
        terminal.finish(tally)
    return out.getvalue().splitlines()


def test_the_first_line_says_what_is_played_and_who_answers() -> None:
    assert shown()[0] == "Replaying day.jsonl, from 2026-03-11: a model"


def test_a_reply_is_one_line_with_time_place_asker_question_source_and_quote() -> None:
    outcome = replied("hi all", "how do I open the valve?")
    asked = "12:00 ✓ #help        ana         how do I open the valve?"
    assert shown(outcome, width=120)[2:] == [f"{asked}                → a.md               Turn the lever."]
    # On a narrow terminal the question has the room.
    assert shown(outcome, width=66)[2:] == [f"{asked}   → a.md"]
    [long] = shown(replied("how do I open the valve of the lower chamber?"), width=80)[2:]
    assert long == "12:00 ✓ #help        ana         how do I open the valve of the lower ch… → a.md"


@pytest.mark.parametrize(
    ("filename", "source"), [("a.log", "the file"), ("a.png", "the image"), (None, "earlier messages")]
)
def test_a_reply_without_a_source_is_about_what_was_posted(filename: str | None, source: str) -> None:
    asked = replied("what is wrong here?", reply="Nothing.")
    [message] = asked.part.messages
    posted = () if filename is None else (Attachment(1, filename, 10, "https://cdn.example/1"),)
    outcome = replace(asked, sources=(), part=replace(asked.part, messages=(replace(message, attachments=posted),)))
    [line] = shown(outcome, width=80)[2:]
    assert line.endswith(f"→ {source}")


def test_a_line_that_is_cut_on_the_narrowest_terminal_says_so() -> None:
    first, *_ = shown(replied("how do I open the valve of the lower chamber?"), width=30)
    assert first == "Replaying day.jsonl, from 202…"


def test_of_an_answer_in_a_code_block_the_words_are_shown() -> None:
    [line] = shown(replied("what is the first error?", reply="```\nERROR valve stuck\n```"), width=120)[2:]
    assert line.endswith(" ERROR valve stuck ```")


def test_a_thread_is_shown_by_the_channel_that_it_hangs_from() -> None:
    [line] = shown(replied("and the other one?", place=THREAD))[2:]
    assert "↳ #help " in line
    assert "very long name" not in line


def test_what_is_not_answerable_is_counted_with_examples_and_everything_else_has_its_line() -> None:
    tally = ResultCounts()
    outcomes = [
        skipped(Reason.NOT_ANSWERABLE, "lunch"),
        skipped(Reason.NOT_ANSWERABLE, "who likes pizza?"),
        skipped(Reason.BUDGET, "how do I close the valve?"),
        Outcome(part("use the lever"), NOON, OutcomeKind.CAPTURED, qa_id="qa_1"),
        Outcome(part("never mind the lever"), NOON, OutcomeKind.CANCELLED, Reason.TEAM_ANSWERED),
        Outcome(part("which lever is it?"), NOON, OutcomeKind.FAILED, "LLMTimeout at gate"),
    ]
    for outcome in outcomes:
        tally.add(outcome)
    tally.add(Ignored(Reason.NOT_ADDRESSED, 5, (1, 2, 3)))
    tally.add(Removed(5, 9))
    lines = shown(*outcomes, tally=tally)
    assert [line.split()[-1] for line in lines[2:6]] == ["budget", "learned", "answered", "gate"]
    assert "    2 not answerable  such as “who likes pizza?” “lunch”" in lines
    assert "    3 ignored         3 not addressed" in lines
    assert "    1 removed         deleted while they waited" in lines


def test_what_goes_to_another_program_is_not_cut() -> None:
    question, reply = f"how do I open {'the valve and ' * 200}the door?", "From `a.md`:\n\nTurn the lever."
    [answered, unanswered] = shown(
        replied(question, reply=reply), skipped(Reason.BUDGET, question), width=80, uncut=True
    )[2:]
    assert answered.endswith(f"{question} → a.md Turn the lever.")
    assert unanswered.endswith(f"{question} skipped: budget")


def test_the_date_is_said_when_the_day_changes() -> None:
    def at(seconds: float) -> Outcome:
        one = part("how do I open the valve?")
        later = replace(one, messages=tuple(replace(each, at=seconds) for each in one.messages))
        return replace(replied(), part=later)

    lines = shown(at(NOON), at(NOON + 3600), at(NOON + 86_400), at(NOON + 86_400))[2:]
    assert [line[:10] for line in lines] == ["12:00 ✓ #h", "13:00 ✓ #h", "2026-03-12", "12:00 ✓ #h", "12:00 ✓ #h"]
    assert [line[:10] for line in shown(at(NOON + 86_400))[2:]] == ["2026-03-12", "12:00 ✓ #h"]


@pytest.mark.parametrize("width", [60, 80, 110, 300])
@pytest.mark.parametrize("reason", [None, Reason.NO_ANSWER_IN_SOURCES])
def test_nothing_wraps_and_nothing_is_wider_than_the_terminal(width: int, reason: Reason | None) -> None:
    text = "which 🧯 extinguisher 消火器 " * 40 + "?"
    outcome = replied(text, reply=text) if reason is None else skipped(reason, text)
    lines = shown(outcome, width=width)
    assert len(lines) == (4 if len("Replaying day.jsonl, from 2026-03-11: a model") > width else 3)
    assert max(map(cell_len, lines)) <= width


@pytest.mark.parametrize(
    "text",
    [
        "is [bold red]this[/bold red] [link=https://evil.example]harmless[/link]?",
        "is [/] this harmless at all?",
        "is \x1b[2J\x1b[31mthis harmless\x1b]0;title\x07 at all?",
        "is \u202ethis harmless\u202c at \x00\x08\x9b31m all?",
        "is :bomb: this harmless \ud83d at all?",
    ],
)
def test_markup_and_control_characters_are_shown_harmlessly(text: str) -> None:
    plain = shown(replied(text, reply=text), skipped(Reason.BUDGET, text))
    coloured = shown(replied(text, reply=text), tty=True)
    assert len(plain) == 4
    assert not any(ord(letter) < 32 or 0x7F <= ord(letter) < 0xA0 or letter == "\u202e" for letter in "".join(plain))
    assert "is [bold red]this" in plain[3] or "[bold" not in text
    assert "\x1b[2J" not in "".join(coloured)
    assert "\x1b]" not in "".join(coloured)


def test_without_a_terminal_there_are_no_colours_and_with_one_there_are() -> None:
    assert "\x1b" not in "".join(shown(replied("how do I open the valve?")))
    assert "\x1b[" in "".join(shown(replied("how do I open the valve?"), tty=True))


def test_of_a_web_page_the_path_is_shown_and_of_a_long_one_its_end() -> None:
    page = Outcome(
        part("?"), NOON, OutcomeKind.REPLIED, reply_text="x", sources=("kb:https://a.example/b/c", "kb:d.md")
    )
    deep = Outcome(part("?"), NOON, OutcomeKind.REPLIED, reply_text="x", sources=(f"kb:{'folder/' * 9}page.md",))
    lines = shown(page, deep)[2:]
    assert "→ …/b/c +1 " in lines[0]
    assert "→ …er/folder/page.md" in lines[1]


def test_on_a_narrow_terminal_the_reason_has_the_room_of_the_result() -> None:
    outcome = Outcome(
        part("never mind the lever of the lower chamber"), NOON, OutcomeKind.CANCELLED, Reason.TEAM_ANSWERED
    )
    assert shown(outcome, width=110)[-1].endswith(" cancelled: team answered")
    [narrow] = shown(outcome, width=80)[-1:]
    assert narrow.startswith("12:00 × ")
    assert narrow.endswith("… team answered")


def test_whoever_reads_no_further_ends_the_output_and_not_the_program() -> None:
    class Closed(io.StringIO):
        def write(self, _text: str, /) -> int:
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        Terminal(PipedConsole(file=Closed()), str, "Replaying day.jsonl", "a model", NOON)


@given(st.text(max_size=60), st.integers(1, 40), st.booleans())
@QUICKLY
def test_a_cell_has_exactly_its_width(text: str, width: int, keep_end: bool) -> None:
    assert cell_len(in_cells(text, width, keep_end=keep_end)) == width


@given(st.text())
@QUICKLY
def test_one_line_is_one_printable_line(text: str) -> None:
    line = printable_line(text)
    assert line.isprintable() or not line
    assert "\n" not in line
