from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from model.messages import AuthorType, Part, Place, PlaceKind
from model.outcomes import Ignored, Outcome, OutcomeKind, Reason, Removed
from sinks.results import JsonLines, OrderedOutcomes, ResultCounts
from tests.services.conversations.places import EPOCH, message
from tests.services.quickly import QUICKLY

CHANNEL = Place(1, PlaceKind.CHANNEL, "help", guild_id=5)
THREAD = Place(7, PlaceKind.THREAD, "a thread", guild_id=5, parent_id=1)


def outcome(
    number: int = 1, result: OutcomeKind = OutcomeKind.SKIPPED, reason: str | None = None, place: Place = CHANNEL
) -> Outcome:
    part = Part(number, (message(number),), AuthorType.COMMUNITY_USER, place, EPOCH + 60)
    return Outcome(part, EPOCH + 61.25, result, reason)


@QUICKLY
@given(st.permutations(range(1, 9)), st.sets(st.integers(1, 8)), st.integers(0, 8))
def test_outcomes_come_in_the_order_of_their_parts(order: Sequence[int], ignored: set[int], ended: int) -> None:
    written: list[int] = []
    in_order = OrderedOutcomes(lambda each: written.append(each.part.number))
    in_order.add(Removed(1, 99))
    in_order.add(Ignored(Reason.BOT, 1, (98,)))
    for number in order[:ended]:
        in_order.add(Ignored(Reason.NOT_ADDRESSED, 1, (number,), number) if number in ignored else outcome(number))
        assert written == sorted(written)
    in_order.flush()
    assert written == [number for number in sorted(order[:ended]) if number not in ignored]


def test_a_program_that_reads_along_gets_each_line_at_once() -> None:
    read = io.BytesIO()
    out = io.TextIOWrapper(read)
    JsonLines(out).write(outcome())
    assert json.loads(read.getvalue())["outcome"] == "skipped"
    out.close()


def test_json_lines_hold_every_field_of_the_contract() -> None:
    out, tally = io.StringIO(), ResultCounts()
    lines = JsonLines(out)
    answered = replace(
        outcome(3, OutcomeKind.REPLIED),
        reply_text="Grüße",
        level="answer",
        sources=("kb:a.md",),
        reply_place_id=3,
        llm_calls=2,
    )
    for each in (answered, outcome(4, OutcomeKind.CANCELLED, Reason.DELETED, THREAD)):
        lines.write(each)
        tally.add(each)
    tally.add(Removed(1, 9))
    tally.add(Ignored(Reason.NOT_ADDRESSED, 1, (10, 11)))
    tally.messages = 5
    lines.finish(tally)
    first, second, last = [json.loads(line) for line in out.getvalue().splitlines()]
    assert first == {
        "at": "2023-11-14T22:14:21.250Z",
        "outcome": "replied",
        "reason": None,
        "channel_id": "1",
        "thread_id": "3",
        "message_ids": ["3"],
        "author_type": "community_user",
        "reply_text": "Grüße",
        "level": "answer",
        "sources": ["kb:a.md"],
        "qa_id": None,
        "llm_calls": 2,
        "latency_ms": 1250,
    }
    assert list(first) == list(second)
    assert (second["channel_id"], second["thread_id"], second["reason"]) == ("1", "7", "deleted")
    assert second["level"] is None
    assert last == {
        "summary": {
            "messages": 5,
            "removed": 1,
            "ignored": {"not addressed": 2},
            "parts": 2,
            "replied": 1,
            "captured": 0,
            "skipped": {},
            "cancelled": {"deleted": 1},
            "failed": {},
            "messages_in_parts": 2,
        }
    }
    assert tally.adds_up
    assert not tally.has_failures


def test_a_run_has_failed_when_something_failed_or_was_cut_off() -> None:
    failed, cut_off = ResultCounts(), ResultCounts()
    failed.add(outcome(1, OutcomeKind.FAILED, "TimedOut at gate"))
    cut_off.add(outcome(1, OutcomeKind.CANCELLED, Reason.SHUTDOWN))
    assert (failed.has_failures, cut_off.has_failures, failed.adds_up) == (True, True, False)
