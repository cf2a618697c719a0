"""Outcomes for programs: as JSON Lines, and in the order in which windows closed, however they were decided."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TextIO

from clock import rfc3339
from model.outcomes import Ignored, Outcome, Result
from sinks.tally import Tally


def render(outcome: Outcome) -> str:
    """One line; null where a field does not apply, ids as strings, times in stream time."""
    part = outcome.part
    thread_id = part.place.id if part.place.is_thread else outcome.reply_place_id
    return json.dumps(
        {
            "at": rfc3339(outcome.at),
            "outcome": outcome.result,
            "reason": outcome.reason,
            "channel_id": str(part.place.channel_id),
            "thread_id": None if thread_id is None else str(thread_id),
            "message_ids": [str(message_id) for message_id in part.message_ids],
            "author_type": part.author_type,
            "reply_text": outcome.reply_text,
            "sources": list(outcome.sources),
            "qa_id": outcome.qa_id,
            "llm_calls": outcome.llm_calls,
            "latency_ms": round((outcome.at - part.closed_at) * 1000),
        },
        ensure_ascii=False,
    )


class JsonLines:
    """Writes each outcome at once, and the summary at the end."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def write(self, outcome: Outcome) -> None:
        self._out.write(render(outcome) + "\n")

    def finish(self, tally: Tally) -> None:
        self._out.write(json.dumps({"summary": tally.summary()}, ensure_ascii=False) + "\n")
        self._out.flush()


class InOrder:
    """Holds outcomes back until every earlier part has its result.

    Parts are numbered without gaps when they are cut, and each ends once, as an `Outcome` or an `Ignored`.
    """

    def __init__(self, write: Callable[[Outcome], object]) -> None:
        self._write = write
        self._next = 1
        self._early: dict[int, Outcome | None] = {}

    def add(self, result: Result) -> None:
        match result:
            case Outcome(part=part):
                self._early[part.number] = result
            case Ignored(part_number=int(number)):
                self._early[number] = None
            case _:
                return
        while self._next in self._early:
            self._release(self._next)
            self._next += 1

    def flush(self) -> None:
        """Write what is still held back, when a run was cut off."""
        for number in sorted(self._early):
            self._release(number)

    def _release(self, number: int) -> None:
        outcome = self._early.pop(number)
        if outcome is not None:
            self._write(outcome)
