"""Outcomes of all processes, read from the log for the dashboard of one of them."""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from assembly.dashboard import DAY, with_recent
from assembly.distributed.process import Process
from clock import now, rfc3339
from reporting.reading import TimeSpan
from services.llm import TokenDays, parse_token_days, summed_token_days
from services.storage import in_thread
from services.telemetry import PartOutcome, parse_part_outcome
from sinks.results import RECENT, OutcomeRecord
from transport.connection import AWAY_ERRORS
from transport.folder_log import read_in_all_scopes

LOOK_BACK_DAYS = 14
"""So many days are looked through for the newest `RECENT`."""
AT_ONCE = 8

T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FleetOutcomes:
    """`assembly.dashboard.OutcomeHistory` over all partitions: outcomes are read from the log each time,
    nothing is cached. Reply texts are known only for this process's own outcomes (`record`), and only those are shown
    while NATS is away.
    """

    process: Process
    record: OutcomeRecord

    async def last(self) -> Sequence[PartOutcome]:
        return with_recent(await _or_less(self._newest(), ()), self.record)

    async def of(self, period: TimeSpan) -> Sequence[PartOutcome]:
        recent = [entry for entry in self.record.recent if entry.at in period]
        return await _or_less(self._in(period), recent)

    async def tokens(self) -> TokenDays:
        return await _or_less(self._spent(), TokenDays())

    async def _newest(self) -> Sequence[PartOutcome]:
        found, at = list[PartOutcome](), now()
        for days in range(LOOK_BACK_DAYS):
            found += await self._of_day(_day(at - days * DAY))
            if len(found) >= RECENT:
                break
        return sorted(found, key=_order)[-RECENT:]

    async def _in(self, period: TimeSpan) -> Sequence[PartOutcome]:
        days = {_day(period.since + number * DAY) for number in range(int((period.until - period.since) // DAY) + 1)}
        slots = asyncio.Semaphore(AT_ONCE)

        async def in_turn(day: str) -> Sequence[PartOutcome]:
            async with slots:
                return await self._of_day(day)

        of_days = await asyncio.gather(*map(in_turn, sorted(days | {_day(period.until)})))
        return sorted((entry for each in of_days for entry in each if entry.at in period), key=_order)

    async def _spent(self) -> TokenDays:
        return summed_token_days(map(parse_token_days, await self._contents("tokens.json")))

    async def _of_day(self, day: str) -> Sequence[PartOutcome]:
        return await in_thread(_parsed, await self._contents(f"outcomes/{day}.jsonl"))

    async def _contents(self, name: str) -> Sequence[bytes]:
        """Of a file below `state`, in all partitions. Raises OSError."""
        file_connection = self.process.file_connection
        try:
            return tuple(
                (await file_connection.do(read_in_all_scopes(file_connection.streams, f"state/{name}"))).values()
            )
        except AWAY_ERRORS as error:
            raise OSError(errno.EIO, f"NATS does not answer ({error or type(error).__name__})") from error


async def _or_less(reading: Awaitable[T], otherwise: T) -> T:
    try:
        return await reading
    except OSError as error:
        log.warning("the dashboard shows less than there is: %s", error.strerror)
        return otherwise


def _parsed(contents: Iterable[bytes]) -> Sequence[PartOutcome]:
    lines = (line for content in contents for line in content.splitlines())
    return [entry for line in lines if (entry := parse_part_outcome(line)) is not None]


def _day(at: float) -> str:
    return rfc3339(at)[:10]


def _order(entry: PartOutcome) -> tuple[float, tuple[int, ...]]:
    return entry.at, entry.message_ids
