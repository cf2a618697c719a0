"""Where captures end: tier 1 of team knowledge, append-only (SPEC 6, "Raw archive")."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from clock import now, rfc3339, run_blocking
from model.outcomes import Outcome, OutcomeKind, Reason
from services.storage import files
from services.team import REPLY, Capture, Captures, Pair, Written, archive, qa_ids, said_in, week_files
from services.telemetry import number_of

LATE_WEEKS = 2
"""Files of the archive in which what was captured within a day is found."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _End:
    """Where the archive stands. Known from the first write on, which reads it from the end of the newest file."""

    timestamp: str | None
    """The newest that was given out, whether or not it came to be written."""
    sound: Path | None = None
    """The file that is known to end with a whole block."""


@dataclass(slots=True)
class RawArchive:
    """Gives captures their ids and appends them, one at a time, to the file of their week."""

    folder: Path
    captures: Captures
    """Told of each capture when it is stored, so that a later one goes on with it."""
    clock: Callable[[], float] = now
    """What captures are stamped with: the loop's time, but for messages of long ago."""
    on_stored: Callable[[Written], None] | None = None
    """Called with each block, in the thread that has written it."""
    rehearsed: bool = False
    """Whether nothing is written: all goes on as if it had been."""
    _end: _End | None = None
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """One capture at a time: the next one has to know of it."""

    async def keep(self, capture: Capture) -> Outcome:
        """Store a capture, as part of the earlier conversation that it goes on with, if any. What the last block of
        its conversation holds, word for word, is not stored again.

        Raises:
            ArchiveUnwritable: it could not be written; the archive is as it was.
        """
        part = capture.part
        assert part is not None, "whoever has no part waits for no outcome"  # noqa: S101 (for the type checker)
        async with self._turn:
            joined = self.captures.join(capture)
            stored_as = self.captures.stored_as(joined)
            if stored_as is None and (pair := await self._add(joined)) is not None:
                stored_as = pair.id
        if stored_as is None:
            return Outcome(part, now(), OutcomeKind.SKIPPED, Reason.NOTHING_TO_LEARN)
        return Outcome(part, now(), OutcomeKind.CAPTURED, qa_id=stored_as)

    async def keep_late(self, capture: Capture) -> Pair | None:
        """Store a capture that had to wait, without taking anything from what was captured of its conversation
        meanwhile: readers use the last one. None: there is nothing in it that is not stored by now.

        Raises:
            ArchiveUnwritable: it could not be written; the archive is as it was.
            OSError: the archive cannot be read.
        """
        async with self._turn:
            joined = self.captures.join(capture)
            latest = await run_blocking(self._latest, joined.conversation_id)
            added = joined if latest is None else beside(latest, joined)
            return None if added is None else await self._add(added)

    async def _add(self, joined: Capture) -> Pair | None:
        if not joined.teaches or joined.conversation_id is None:
            return None
        pair = await self.store(joined, joined.conversation_id)
        self.captures.remember(pair)
        log.info("qa_pair_captured %s: %s, %s", pair.id, pair.conversation_id, number_of(len(pair.turns), "message"))
        return pair

    def _latest(self, conversation_id: str | None) -> Pair | None:
        """The newest capture of a conversation; blocking."""
        recent = week_files.recent_pairs(self.folder, LATE_WEEKS)
        return next((pair for pair in reversed(recent) if pair.conversation_id == conversation_id), None)

    async def store(self, capture: Capture, conversation_id: str) -> Pair:
        """Append a capture. When this returns, it is on the disk.

        Raises:
            ArchiveUnwritable: it could not be written; the archive is as it was.
        """
        try:
            return await run_blocking(self.write, capture, conversation_id, self.clock())
        except OSError as error:
            raise week_files.ArchiveUnwritable(f"{files.why(error)}. A captured conversation was not stored") from error

    def write(self, capture: Capture, conversation_id: str, at: float) -> Pair:
        """`store`, blocking, at a time in seconds since 1970. Raises OSError."""
        if self._end is None:
            self._end = _End(week_files.last_timestamp(self.folder))
        end = self._end
        end.timestamp = timestamp = qa_ids.next_timestamp(at, end.timestamp)
        path = self.folder / qa_ids.week_file(timestamp)
        if end.sound != path and not self.rehearsed:
            week_files.cut_off_torn(path)
        pair = Pair(
            id=qa_ids.qa_id(timestamp),
            timestamp=timestamp,
            said_at=rfc3339(capture.said_at, digits=6),
            conversation_id=conversation_id,
            message_ids=tuple(said.message_id for said in capture.said),
            author_ids=tuple(said.author_id for said in capture.said),
            turns=tuple(said.turn for said in capture.said),
        )
        end.sound = None  # until the write has succeeded
        if not self.rehearsed:
            block = archive.render(pair)
            start = files.append(path, block.encode())
            if self.on_stored is not None:
                self.on_stored(Written(path.name, start, block, pair))
        end.sound = path
        return pair


def beside(latest: Pair, capture: Capture) -> Capture | None:
    """What is to be stored of a capture that comes after a later one of its conversation; None: nothing new."""
    stored = {each.message_id: each for each in said_in(latest)}
    if not latest.conversation_id.startswith(REPLY):
        # A thread is read as a whole each time: what a later reading lacks has been deleted.
        return None if max(stored) >= capture.said[-1].message_id else capture
    said = {each.message_id: each for each in capture.said} | stored
    return None if len(said) == len(stored) else replace(capture, said=tuple(said[i] for i in sorted(said)))
