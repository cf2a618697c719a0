"""The record of how parts ended: one file a day, old ones deleted."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

from clock import now, rfc3339, run_blocking
from model.outcomes import Outcome, Result
from services.storage import files
from services.telemetry import Ended, ended, render_ended

DAY = 86_400.0
RECENT = 500
"""Newest entries in memory, for whoever looks at the running bot."""
MOST_WAITING = 10_000
"""Entries that wait for a disk that cannot be written; the oldest are given up first."""

log = logging.getLogger(__name__)


class OutcomeRecord:
    """Takes each result, and writes it with the next `save`.

    Attributes:
        recent: the newest entries, oldest first.
    """

    def __init__(
        self,
        folder: Path | None,
        redact: Callable[[str], str],
        *,
        keep_days: int = 0,
        on_change: Callable[[], object] | None = None,
    ) -> None:
        """`folder` None: nothing is written. `keep_days`: older files are deleted; 0: none is."""
        self.recent: deque[Ended] = deque(maxlen=RECENT)
        self._folder = folder
        self._redact = redact
        self._keep_days = keep_days
        self._on_change = on_change
        self._waiting: deque[Ended] = deque()
        self._pruned = ""
        self._writing = asyncio.Lock()

    def add(self, result: Result) -> None:
        if not isinstance(result, Outcome):
            return
        entry = ended(result, self._redact)
        self.recent.append(entry)
        if self._folder is not None:
            self._waiting.append(entry)
        if self._on_change is not None:
            self._on_change()

    async def save(self) -> None:
        """Append what has come since. Raises OSError: it waits for the next time."""
        if self._folder is None:
            return
        async with self._writing:
            # Those of one instant end in any order: a replay is to write the same bytes each time.
            self._waiting = deque(sorted(self._waiting, key=lambda entry: (entry.at, entry.message_ids)))
            for day, entries in groupby(tuple(self._waiting), key=lambda entry: _day(entry.at)):
                batch = list(entries)
                lines = b"".join(map(render_ended, batch))
                try:
                    await run_blocking(files.append, self._folder / f"{day}.jsonl", lines, own_line=True)
                except OSError:
                    self._give_up_oldest()
                    raise
                for _ in batch:
                    self._waiting.popleft()
            await self._prune(self._folder)

    async def forget(self, user_id: int) -> None:
        """Drop a person from what is in memory; what is written is `services.privacy`'s, and none of theirs is being
        written when this returns.
        """
        async with self._writing:
            for entries in (self.recent, self._waiting):
                kept = [entry for entry in entries if entry.author_id != user_id]
                entries.clear()
                entries.extend(kept)

    def _give_up_oldest(self) -> None:
        lost = len(self._waiting) - MOST_WAITING
        if lost > 0:
            log.error("%d ends of questions are missing in reports: %s cannot be written", lost, self._folder)
        for _ in range(lost):
            self._waiting.popleft()

    async def _prune(self, folder: Path) -> None:
        today = _day(now())
        if self._keep_days and today != self._pruned:
            await run_blocking(_delete_before, folder, _day(now() - self._keep_days * DAY))
            self._pruned = today


def _day(at: float) -> str:
    return rfc3339(at)[:10]


def _delete_before(folder: Path, day: str) -> None:
    for path in folder.glob("????-??-??.jsonl"):
        if path.stem < day:
            with contextlib.suppress(FileNotFoundError):
                files.remove(path)
