"""The table of reasons: each has its traits, and everybody who tells people of a reason goes by them."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from assembly.slash_commands import answer_text
from commands.import_captures import ImportRun, show
from model.messages import Author, AuthorType, Destination, Message, Part, Place, PlaceKind
from model.outcomes import REASONS, Ignored, Outcome, OutcomeKind, Reason, ReasonTraits, traits_of
from reporting.report import is_gap
from services.conversations import phrases
from services.telemetry import parse_part_outcome, part_outcome_of, render_part_outcome
from services.telemetry.exporter import Metrics
from sinks.results import ResultCounts
from sinks.terminal import Terminal
from streams.answerer import AIResult

MESSAGE = Message(41, 7, Author(3, "ada"), "how do I install it?", 90.0, 1)
PART = Part(1, (MESSAGE,), AuthorType.COMMUNITY_USER, Place(7, PlaceKind.CHANNEL, "help", 1), 100.0)


def skipped(reason: Reason, *, question: bool | None = None) -> Outcome:
    decisions: dict[str, object] = {} if question is None else {"gate": {"question": question}}
    return Outcome(PART, 101.0, OutcomeKind.SKIPPED, reason, decisions=decisions)


def routed_to(outcome: Outcome) -> Destination:
    metrics = Metrics()
    metrics.count_result(outcome)
    (line,) = (line for line in metrics.render().decode().splitlines() if line.startswith("adapter_routing_total{"))
    return Destination(line.split('"')[1])


def printed_by_import(tally: ResultCounts) -> str:
    out = io.StringIO()
    show(Console(file=out, width=200), ImportRun(tally, [], None, finished=True))
    return out.getvalue()


def printed_by_terminal(tally: ResultCounts, outcome: Outcome) -> list[str]:
    out = io.StringIO()
    terminal = Terminal(Console(file=out, width=110), lambda _: "help", "a day", "rules", outcome.at)
    terminal.write(outcome)
    terminal.finish(tally)
    return out.getvalue().splitlines()


def test_every_reason_has_its_row_in_their_order() -> None:
    assert list(REASONS) == list(Reason)


def test_what_is_no_reason_is_plain() -> None:
    assert traits_of(None) == traits_of("Unavailable at gate") == traits_of("a later reason") == ReasonTraits()


@pytest.mark.parametrize("reason", Reason)
def test_all_who_tell_of_a_reason_go_by_the_table(reason: Reason) -> None:
    traits = traits_of(str(reason))
    asked = part_outcome_of(skipped(reason, question=True), str)
    read = parse_part_outcome(render_part_outcome(asked))
    assert read is not None
    assert bool(read.question) is not traits.is_textless
    assert bool(part_outcome_of(skipped(reason), str).question) is traits.is_asked
    assert is_gap(read) is traits.is_gap
    assert not (traits.is_gap and traits.is_textless), "a gap without words is none"
    assert routed_to(skipped(reason)) is (Destination.NOTHING if traits.is_not_routed else Destination.ANSWER)

    result = AIResult(False, None, (), {"result": "skipped", "reason": reason})
    said = answer_text(result, phrases("en"))
    assert said == getattr(phrases("en"), traits.private_reply)

    tally = ResultCounts()
    tally.add(skipped(reason))
    tally.add(Ignored(reason, 7, (1, 2)))
    printed = printed_by_import(tally)
    assert [
        each for each in REASONS.values() if each.import_captures and f"      1  {each.import_captures}\n" in printed
    ] == ([traits] if traits.import_captures else [])
    assert (", 2 of them " in printed) is bool(traits.import_messages)
    assert traits.import_messages in printed

    lines = printed_by_terminal(tally, skipped(reason))
    examples = [line for line in lines if line.startswith(f"    1 {reason}") and "such as “how do I" in line]
    assert bool(examples) is traits.is_chatter
