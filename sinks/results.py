"""Results: one log line each, counts that add up, JSON Lines for programs, and the daily files of outcomes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any, TextIO, cast

from clock import DAY, HOUR, from_rfc3339, now, rfc3339, run_blocking
from model.events import Event, Posted
from model.outcomes import Ignored, Outcome, OutcomeKind, Reason, Removed, Result, traits_of
from services.storage import files, replace_strings
from services.telemetry import (
    PartOutcome,
    current_part,
    number_of,
    parse_part_outcome,
    part_outcome_of,
    render_part_outcome,
)

log = logging.getLogger(__name__)

_LINES = json.JSONEncoder(ensure_ascii=False)  # made once: `json.dumps` would make one for each line


def journal(result: Result) -> None:
    """Log one line for an outcome, at INFO; for ignored messages, at DEBUG."""
    if isinstance(result, Outcome) and log.isEnabledFor(logging.INFO):
        token = current_part.set(result.part)
        try:
            reason = "" if result.reason is None else f" ({result.reason})"
            seconds = result.at - result.part.closed_at
            log.info("%s%s after %.1f s, %d LLM calls", result.result, reason, seconds, result.llm_calls)
        finally:
            current_part.reset(token)
    elif isinstance(result, Ignored):
        messages = number_of(len(result.message_ids), "message")
        log.debug("ignored %s in %d: %s", messages, result.channel_id, result.reason)


@dataclass(slots=True)
class ResultCounts:
    """Adds up results; `messages = removed + messages_in_parts + Σ ignored` if no message was lost.

    `messages` is counted at the source, so that the sum can be checked.
    """

    messages: int = 0
    removed: int = 0
    ignored: Counter[str] = field(default_factory=Counter[str])
    parts: Counter[OutcomeKind] = field(default_factory=Counter[OutcomeKind])
    reasons: defaultdict[OutcomeKind, Counter[str]] = field(default_factory=lambda: defaultdict(Counter[str]))
    messages_in_parts: int = 0
    is_cut_off: bool = False
    latest_at: float | None = None
    """The time of the last of these messages, as Unix time."""

    def note_cut_off(self) -> None:
        """Note that a file could only be read in part."""
        self.is_cut_off = True

    def observe(self, event: Event) -> None:
        """Count a message that the source has emitted."""
        if isinstance(event, Posted):
            self.messages += 1
            self.latest_at = event.message.at

    def add(self, result: Result) -> None:
        match result:
            case Removed():
                self.removed += 1
            case Ignored(reason=reason, message_ids=message_ids):
                self.ignored[reason] += len(message_ids)
            case Outcome(ends_draft=True):
                pass  # its part is counted as held
            case Outcome(result=kind, reason=reason, part=part):
                self.parts[kind] += 1
                self.messages_in_parts += len(part.messages)
                if reason is not None:
                    self.reasons[kind][reason] += 1

    @property
    def adds_up(self) -> bool:
        return self.messages == self.removed + self.messages_in_parts + self.ignored.total()

    @property
    def has_failures(self) -> bool:
        """True if a part failed or was cut off by a shutdown, or a file could only be read in part."""
        cut_off = self.is_cut_off or self.reasons[OutcomeKind.CANCELLED][Reason.SHUTDOWN]
        return bool(self.parts[OutcomeKind.FAILED] or cut_off)

    def summary(self) -> dict[str, object]:
        """Return the counts as the last line of `--json` has them."""
        return {
            "messages": self.messages,
            "removed": self.removed,
            "ignored": dict(sorted(self.ignored.items())),
            "parts": self.parts.total(),
            "replied": self.parts[OutcomeKind.REPLIED],
            "captured": self.parts[OutcomeKind.CAPTURED],
            **({"held": held} if (held := self.parts[OutcomeKind.HELD]) else {}),
            **{
                kind.value: dict(sorted(self.reasons[kind].items()))
                for kind in (OutcomeKind.SKIPPED, OutcomeKind.CANCELLED, OutcomeKind.FAILED)
            },
            "messages_in_parts": self.messages_in_parts,
        }


def render(outcome: Outcome) -> str:
    """Return an outcome as a line of JSON: null if a field does not apply, ids as strings, times in stream time."""
    part = outcome.part
    thread_id = part.place.id if part.place.is_thread else outcome.reply_place_id
    return _LINES.encode(
        {
            "at": rfc3339(outcome.at),
            "outcome": outcome.result,
            "reason": outcome.reason,
            "channel_id": str(part.place.channel_id),
            "thread_id": None if thread_id is None else str(thread_id),
            "message_ids": [str(message_id) for message_id in part.message_ids],
            "author_type": part.author_type,
            "reply_text": outcome.reply_text,
            "level": outcome.level,
            "sources": list(outcome.sources),
            "qa_id": outcome.qa_id,
            "llm_calls": outcome.llm_calls,
            "latency_ms": round((outcome.at - part.closed_at) * 1000),
        }
    )


class JsonLines:
    """Writes each outcome at once, and the summary at the end."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def write(self, outcome: Outcome) -> None:
        self._out.write(render(outcome) + "\n")
        self._out.flush()

    def finish(self, counts: ResultCounts) -> None:
        self._out.write(json.dumps({"summary": counts.summary()}, ensure_ascii=False) + "\n")
        self._out.flush()


class OrderedOutcomes:
    """Passes outcomes on in the order of their parts: an outcome is held back until every earlier part has ended.

    Parts are numbered without gaps when they are cut, and each ends once, as an `Outcome` or an `Ignored`.
    """

    def __init__(self, write: Callable[[Outcome], object]) -> None:
        self._write = write
        self._next = 1
        self._early: dict[int, Outcome | None] = {}

    def add(self, result: Result) -> None:
        match result:
            case Outcome(ends_draft=True):
                return
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
        """Write the outcomes that are still held back, after a run was cut off."""
        for number in sorted(self._early):
            self._release(number)

    def _release(self, number: int) -> None:
        outcome = self._early.pop(number)
        if outcome is not None:
            self._write(outcome)


FIRST_SECOND = from_rfc3339("0001-01-01T00:00:00Z")  # rfc3339 knows no earlier one
RECENT_ENTRIES = 500
"""The number of newest entries in memory, for the dashboard."""
MAX_WAITING = 10_000
"""The most entries that wait while the disk cannot be written; the oldest are given up first."""
MAX_REFUSED_AN_HOUR = 20
"""The text of at most so many refused questions of one person is kept in an hour: nobody fills the disk by asking."""


class OutcomeRecord:
    """Takes each result, and writes it with the next `save`. `recent`: the newest entries, oldest first."""

    def __init__(
        self,
        folder: Path | None,
        redact: Callable[[str], str],
        *,
        keep_days: int = 0,
        on_change: Callable[[], object] | None = None,
    ) -> None:
        """`folder` None: nothing is written. `keep_days`: older files are deleted; 0: none is."""
        self.recent: deque[PartOutcome] = deque(maxlen=RECENT_ENTRIES)
        self._folder = folder
        self._redact = redact
        self._keep_days = keep_days
        self._on_change = on_change
        self._waiting: deque[PartOutcome] = deque()
        self._pruned = ""
        self._writing = asyncio.Lock()
        self._forgotten: dict[int, int] = {}  # by person: the id up to which their messages are dropped
        self._refused = Counter[int]()  # by person, in the hour `_refused_hour`
        self._refused_hour = 0

    def add(self, result: Result) -> None:
        """Take a result. Outcomes of messages that were forgotten since are dropped."""
        if not isinstance(result, Outcome):
            return
        if result.part.messages[0].id <= self._forgotten.get(result.part.author.id, -1):
            return
        entry = part_outcome_of(result, self._redact)
        if entry.question and traits_of(entry.reason).is_asked and not self._keeps_refused(entry):
            entry = replace(entry, question="")
        self.recent.append(entry)
        if self._folder is not None:
            self._waiting.append(entry)
        if self._on_change is not None:
            self._on_change()

    async def save(self) -> Sequence[PartOutcome]:
        """Append the new entries, and return them. Raises OSError: they wait for the next call."""
        written: list[PartOutcome] = []
        if self._folder is None:
            return written
        async with self._writing:
            # Parts that end at one instant come in any order: a replay is to write the same bytes each time.
            self._waiting = deque(sorted(self._waiting, key=lambda entry: (entry.at, entry.message_ids)))
            for day, entries in groupby(tuple(self._waiting), key=lambda entry: _day(entry.at)):
                batch = list(entries)
                lines = b"".join(map(render_part_outcome, batch))
                try:
                    await run_blocking(files.append, self._folder / f"{day}.jsonl", lines, own_line=True)
                except OSError:
                    self._give_up_oldest()
                    raise
                for _ in batch:
                    self._waiting.popleft()
                written += batch
            await self._prune(self._folder)
        return written

    async def has_end(self, message_ids: tuple[int, ...], since: float) -> bool:
        """Return True if the files hold another outcome of a part than that it was held. `since`: the time before which
        there was none, in seconds since 1970. Raises OSError.
        """
        return self._folder is not None and await run_blocking(_has_end, self._folder, message_ids, _day(since))

    async def forget(self, user_id: int, until: int) -> None:
        """Drop a person's entries from memory, and outcomes that are still to come of their messages with ids up to
        `until`. Files are left to `services.privacy`: no entry of the person is being written when this returns.
        """
        self._forgotten[user_id] = until
        async with self._writing:
            for entries in (self.recent, self._waiting):
                kept = [entry for entry in entries if entry.author_id != user_id]
                entries.clear()
                entries.extend(kept)

    async def rename_sources(self, ids: Mapping[str, str]) -> None:
        """Replace the ids of sources in memory. `ids`: new ids by old."""
        async with self._writing:
            for entries in (self.recent, self._waiting) if ids else ():
                renamed = [_with_sources_renamed(entry, ids) for entry in entries]
                entries.clear()
                entries.extend(renamed)

    def _keeps_refused(self, entry: PartOutcome) -> bool:
        hour = int(entry.at // HOUR)
        if hour != self._refused_hour:
            self._refused_hour = hour
            self._refused.clear()
        self._refused[entry.author_id] += 1
        return self._refused[entry.author_id] <= MAX_REFUSED_AN_HOUR

    def _give_up_oldest(self) -> None:
        lost = len(self._waiting) - MAX_WAITING
        if lost > 0:
            log.error("%d ends of questions are missing in reports: %s cannot be written", lost, self._folder)
        for _ in range(lost):
            self._waiting.popleft()

    async def _prune(self, folder: Path) -> None:
        today = _day(now())
        if self._keep_days and today != self._pruned:
            oldest = max(FIRST_SECOND, now() - self._keep_days * DAY)
            await run_blocking(_delete_before, folder, _day(oldest))
            self._pruned = today


def _with_sources_renamed(entry: PartOutcome, ids: Mapping[str, str]) -> PartOutcome:
    path = cast("dict[str, Any]", replace_strings(entry.path, ids))
    return replace(entry, sources=tuple(ids.get(each, each) for each in entry.sources), path=path)


def _day(at: float) -> str:
    return rfc3339(at)[:10]


def _has_end(folder: Path, message_ids: tuple[int, ...], day: str) -> bool:
    paths = (path for path in folder.glob("????-??-??.jsonl") if path.stem >= day)
    entries = (parse_part_outcome(line) for path in paths for line in path.read_bytes().splitlines())
    return any(each and each.message_ids == message_ids and each.result is not OutcomeKind.HELD for each in entries)


def _delete_before(folder: Path, day: str) -> None:
    for path in folder.glob("????-??-??.jsonl"):
        if path.stem < day:
            with contextlib.suppress(FileNotFoundError):
                files.remove(path)
