"""Outcomes of all processes, read from the log for the dashboard of one of them."""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Awaitable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from assembly.dashboard import DashboardTeam, with_asked, with_recent
from assembly.distributed.keepers import correct
from assembly.distributed.process import Process
from clock import DAY, now, rfc3339
from reporting.reading import TimeSpan, VotedQuestion, join_drafts, parse_dismissed, voted_in
from services.conversations import parse_posts
from services.llm import TokenDays, parse_token_days, summed_token_days
from services.storage import in_thread, parse_records
from services.team import AuditEntry, Overview, audit_entries
from services.telemetry import PartOutcome, parse_part_outcome
from sinks.results import RECENT_ENTRIES, OutcomeRecord
from transport.connection import AWAY_ERRORS, Client
from transport.folder_log import read_in_all_scopes
from transport.requests import OPERATORS, ask

LOOK_BACK_DAYS = 14
"""Days that are searched for the newest `RECENT_ENTRIES` outcomes."""
MAX_READS = 8
DISMISSED = "state/dismissed.json"
"""The path in a data folder (`services.storage.DataFolder.dismissed`)."""

T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FleetOutcomes:
    """`assembly.dashboard.OutcomeHistory` over all partitions, read from the log each time. Reply texts are known only
    for the outcomes of this process (`record`); while NATS is away, only these outcomes are returned.
    """

    process: Process
    record: OutcomeRecord

    async def last(self) -> Sequence[PartOutcome]:
        return with_recent(await _or_fallback(self._read_newest(), ()), self.record)

    async def of(self, period: TimeSpan) -> Sequence[PartOutcome]:
        recent = [entry for entry in self.record.recent if entry.at in period]
        return await _or_fallback(self._read_period(period), recent)

    async def votes(self, period: TimeSpan) -> Sequence[VotedQuestion]:
        return await _or_fallback(self._read_votes(period), ())

    async def audit(self) -> Sequence[AuditEntry]:
        return await _or_fallback(self._read_audit(), ())

    async def tokens(self) -> TokenDays:
        return await _or_fallback(self._read_tokens(), TokenDays())

    async def _read_newest(self) -> Sequence[PartOutcome]:
        found, at = list[PartOutcome](), now()
        for days in range(LOOK_BACK_DAYS):
            found += await self._read_day(_date(at - days * DAY))
            if len(found) >= RECENT_ENTRIES:
                break
        return sorted(found, key=_by_time)[-RECENT_ENTRIES:]

    async def _read_period(self, period: TimeSpan) -> Sequence[PartOutcome]:
        days = {_date(period.since + number * DAY) for number in range(int((period.until - period.since) // DAY) + 1)}
        slots = asyncio.Semaphore(MAX_READS)

        async def read_in_turn(day: str) -> Sequence[PartOutcome]:
            async with slots:
                return await self._read_day(day)

        of_days = await asyncio.gather(*map(read_in_turn, sorted(days | {_date(period.until)})))
        return join_drafts(sorted((entry for each in of_days for entry in each if entry.at in period), key=_by_time))

    async def _read_votes(self, period: TimeSpan) -> Sequence[VotedQuestion]:
        votes, posts = await self._read_contents("feedback.jsonl"), await self._read_contents("state/posts.jsonl")
        return await in_thread(_parse_votes, votes, posts, period)

    async def _read_audit(self) -> Sequence[AuditEntry]:
        contents = await self._read_contents("state/audit.jsonl")
        return await in_thread(lambda: audit_entries(record for each in contents for record in parse_records(each)))

    async def _read_tokens(self) -> TokenDays:
        return summed_token_days(map(parse_token_days, await self._read_contents("state/tokens.json")))

    async def _read_day(self, day: str) -> Sequence[PartOutcome]:
        return await in_thread(_parse_outcomes, await self._read_contents(f"state/outcomes/{day}.jsonl"))

    async def _read_contents(self, name: str) -> Sequence[bytes]:
        return await read_contents(self.process, name)


async def read_contents(process: Process, name: str) -> Sequence[bytes]:
    """Return the contents of a file in all partitions. Raises OSError."""
    file_connection = process.file_connection
    try:
        return tuple((await file_connection.do(read_in_all_scopes(file_connection.streams, name))).values())
    except AWAY_ERRORS as error:
        raise OSError(errno.EIO, f"NATS does not answer ({str(error) or type(error).__name__})") from error


@dataclass(frozen=True, slots=True)
class FleetGaps:
    """Implements `dashboard.GapDismissals`: read from the log, changed by the worker that keeps them."""

    process: Process

    async def read(self) -> Collection[int]:
        return await _or_fallback(self._read(), frozenset())

    async def _read(self) -> Collection[int]:
        contents = await read_contents(self.process, DISMISSED)
        return frozenset[int]().union(*map(parse_dismissed, contents))

    async def change(self, action: str, asked_ids: Collection[int], operator: str) -> None:
        asked = {"action": action, "ids": list(map(str, asked_ids)), "by": operator}
        await ask(self.process.client, OPERATORS, asked)


@dataclass(frozen=True, slots=True)
class FleetTeam:
    """Implements `dashboard.Team`: shown from the copy here, and corrected where the archive is kept."""

    client: Client
    shown: DashboardTeam

    async def overview(self) -> Overview:
        return await self.shown.overview()

    def address(self, qa_id: str) -> str | None:
        return self.shown.address(qa_id)

    async def correct(self, action: str, qa_id: str, operator: str) -> str:
        return await correct(self.client, None, action, qa_id, operator)


async def _or_fallback(reading: Awaitable[T], fallback: T) -> T:
    try:
        return await reading
    except OSError as error:
        log.warning("the dashboard shows less than there is: %s", error.strerror)
        return fallback


def _parse_outcomes(contents: Iterable[bytes]) -> Sequence[PartOutcome]:
    lines = (line for content in contents for line in content.splitlines())
    return [entry for line in lines if (entry := parse_part_outcome(line)) is not None]


def _parse_votes(votes: Iterable[bytes], posts: Iterable[bytes], period: TimeSpan) -> Sequence[VotedQuestion]:
    lines = [line for content in votes for line in content.splitlines()]
    texts = (content.decode("utf-8", "replace") for content in posts)
    by_message = {post.message_id: post for text in texts for post in parse_posts(text, Path("posts.jsonl"))}
    return with_asked(voted_in(lines, period), by_message.get)


def _date(at: float) -> str:
    return rfc3339(at)[:10]


def _by_time(entry: PartOutcome) -> tuple[float, tuple[int, ...]]:
    return entry.at, entry.message_ids
