"""Reads from the data folder what reports show: outcomes and votes of a period, and dismissed questions. Blocking."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from clock import from_rfc3339, rfc3339
from model.outcomes import OutcomeKind
from services.storage import files, read_object
from services.telemetry import PartOutcome, parse_part_outcome

UP, DOWN = "up", "down"
MOMENT = 0.001
"""The least difference between two times in the files, in seconds."""


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """From `since` until before `until`, in seconds since 1970."""

    since: float
    until: float

    def __contains__(self, at: float) -> bool:
        return self.since <= at < self.until


@dataclass(frozen=True, slots=True)
class VotedQuestion:
    """A question whose answer somebody voted on.

    Attributes:
        message_id: of the answer's last piece; asked_id: of the question's last message, if it was looked up.
        at: the time of the last vote of the kind that was asked for.
        ups, downs: the numbers of votes, of all voters.
    """

    message_id: int
    at: float
    question: str
    sources: tuple[str, ...]
    ups: int
    downs: int
    asked_id: int | None = None


def read_outcomes(outcomes: Path, period: TimeSpan) -> list[PartOutcome]:
    """Read the outcomes of a period, oldest first; damaged lines are left out. `outcomes`: the folder of their files.

    Raises:
        OSError: a file cannot be read.
    """
    first, last = _day(period.since), _day(period.until)
    read: list[PartOutcome] = []
    for path in _files(outcomes):
        if first <= path.stem <= last:
            read += (entry for line in _lines(path) if (entry := parse_part_outcome(line)) and entry.at in period)
    return join_drafts(sorted(read, key=_order))


def read_newest(outcomes: Path, most: int) -> list[PartOutcome]:
    """Read the newest outcomes, at most `most`, oldest first. Damaged lines are left out. Raises OSError."""
    read: list[PartOutcome] = []
    for path in _files(outcomes, reverse=True):
        if len(read) >= most:
            break
        read += (entry for line in _lines(path)[-most:] if (entry := parse_part_outcome(line)))
    return join_drafts(sorted(read, key=_order))[-most:]


def join_drafts(entries: Iterable[PartOutcome]) -> list[PartOutcome]:
    """Join the two outcomes of each answer that waited for approval: of its draft, and of the decision. `entries`: in
    order of time. The joined outcome stands where the second one stood.
    """
    joined, held = dict[int, PartOutcome](), dict[tuple[int, ...], int]()
    for number, entry in enumerate(entries):
        draft = joined.pop(held.pop(entry.message_ids, -1), None)
        if entry.result is OutcomeKind.HELD:
            held[entry.message_ids] = number
        elif draft is not None:
            how = {"result": entry.result, "reason": entry.reason, "level": entry.level, "reply": entry.reply}
            more = {"reply_place_id": entry.reply_place_id, "qa_id": entry.qa_id, "path": {**draft.path, **entry.path}}
            entry = replace(draft, at=entry.at, **how, **more)  # noqa: PLW2901
        joined[number] = entry
    return list(joined.values())


def end_of_replay(outcomes: Path, feedback: Path) -> float | None:
    """Return the moment after the newest outcome and vote, in seconds since 1970, or None. Raises OSError."""
    ends = [entry.at for entry in read_newest(outcomes, 1)]
    ends += [vote.at for vote in read_voted(feedback, TimeSpan(0.0, float("inf")))]
    return max(ends) + MOMENT if ends else None


def read_downvoted(feedback: Path, period: TimeSpan) -> list[VotedQuestion]:
    """Read the questions with a vote against their answer in the period, most votes first. Raises OSError."""
    voted = [each for rows in _by_answer(_lines(feedback)) if (each := _sum_up(rows, {DOWN})) and each.at in period]
    return sorted(voted, key=lambda each: (-each.downs, -each.at))


def read_voted(feedback: Path, period: TimeSpan) -> list[VotedQuestion]:
    """Read the questions with a vote on their answer in the period, oldest answer first. Raises OSError."""
    return voted_in(_lines(feedback), period)


def voted_in(lines: Iterable[bytes], period: TimeSpan) -> list[VotedQuestion]:
    """Return what `read_voted` returns, from the lines of the file."""
    voted = [each for rows in _by_answer(lines) if (each := _sum_up(rows, {UP, DOWN})) and each.at in period]
    return sorted(voted, key=lambda each: each.message_id)


def _by_answer(lines: Iterable[bytes]) -> Iterable[list[dict[str, Any]]]:
    """Return for each answer the votes that count: the last one of each voter."""
    last: dict[tuple[int, str], dict[str, Any]] = {}
    for row in _votes(lines):
        key = (row["message_id"], row["voter"])
        # An inferred vote counts only if there is no other (docs/operating.md, "Votes").
        if row.get("inferred") and key in last and not last[key].get("inferred"):
            continue
        last[key] = row
    by_post: dict[int, list[dict[str, Any]]] = {}
    for row in last.values():
        by_post.setdefault(row["message_id"], []).append(row)
    return by_post.values()


def _sum_up(rows: list[dict[str, Any]], wanted: Collection[str]) -> VotedQuestion | None:
    """Sum up the votes on one answer; None if no vote is one of `wanted`."""
    chosen = [row for row in rows if row["vote"] in wanted]
    if not chosen:
        return None
    return VotedQuestion(
        message_id=rows[0]["message_id"],
        at=max(row["at"] for row in chosen),
        question=rows[-1]["question"],
        sources=tuple(rows[-1]["sources"]),
        ups=sum(row["vote"] == UP for row in rows),
        downs=sum(row["vote"] == DOWN for row in rows),
    )


def _votes(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            row = json.loads(line)
            yield {
                "at": from_rfc3339(row["at"]),
                "message_id": int(row["message_id"]),
                "voter": str(row["voter"]),
                "question": str(row["question"]),
                "sources": [str(each) for each in row["sources"]],
                "vote": str(row["vote"]),
                "inferred": bool(row.get("inferred")),
            }
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            continue


def _files(outcomes: Path, *, reverse: bool = False) -> list[Path]:
    return sorted(outcomes.glob("????-??-??.jsonl"), reverse=reverse)


def _order(entry: PartOutcome) -> tuple[float, tuple[int, ...]]:
    return entry.at, entry.message_ids


def _lines(path: Path) -> list[bytes]:
    try:
        return path.read_bytes().splitlines()
    except FileNotFoundError:
        return []


def _day(at: float) -> str:
    return rfc3339(at)[:10]


MAX_DISMISSED = 20_000
"""The most questions that stay dismissed; of more, the newest do."""


def parse_dismissed(content: bytes) -> frozenset[int]:
    """Return the ids of dismissed questions in the content of a file; an empty set if it is damaged."""
    try:
        return _ids_in(cast("Mapping[str, Any]", json.loads(content)))
    except (AttributeError, ValueError):
        return frozenset()


def _ids_in(fields: Mapping[str, Any]) -> frozenset[int]:
    try:
        return frozenset(map(int, fields.get("questions", ())))
    except (TypeError, ValueError):
        return frozenset()


@dataclass(frozen=True, slots=True)
class DismissedQuestions:
    """The file of dismissed questions, by the ids of their first messages. All methods block and raise OSError."""

    path: Path

    def read(self) -> frozenset[int]:
        """Return the ids; an empty set if there is no file, or it is damaged."""
        return _ids_in(read_object(self.path))

    def dismiss(self, asked_ids: Collection[int]) -> None:
        self._write(self.read().union(asked_ids))

    def restore(self, asked_ids: Collection[int]) -> None:
        self._write(self.read().difference(asked_ids))

    def _write(self, asked_ids: frozenset[int]) -> None:
        kept = sorted(asked_ids)[-MAX_DISMISSED:]  # ids of Discord grow with time
        # Strings, as no JSON number is safe with so many digits.
        files.replace(self.path, json.dumps({"questions": list(map(str, kept))}).encode() + b"\n")
