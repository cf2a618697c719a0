"""Where captures end: tier 1 of team knowledge, append-only (SPEC 6, "Raw archive")."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from clock import now, rfc3339
from model.outcomes import Outcome, Reason, Result
from services import files, qa_ids, week_files
from services.archive import Pair, render
from services.captures import Capture, Captures

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
    _end: _End | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    """A write whose waiter was cancelled goes on, and the next one has to wait for it."""

    async def keep(self, capture: Capture) -> Outcome:
        """Store a capture, as part of the earlier conversation that it goes on with, if any. Not to be called twice
        at once: the second would not know of the first.

        Raises:
            ArchiveUnwritable: it could not be written; the archive is as it was.
        """
        joined = self.captures.join(capture)
        if not joined.teaches or joined.conversation_id is None:
            return Outcome(capture.part, now(), Result.SKIPPED, Reason.NOTHING_TO_LEARN)
        pair = await self.store(joined, joined.conversation_id)
        self.captures.remember(pair.conversation_id, joined.said)
        log.info("qa_pair_captured %s: %s, %d messages", pair.id, pair.conversation_id, len(pair.turns))
        return Outcome(capture.part, now(), Result.CAPTURED, qa_id=pair.id)

    async def store(self, capture: Capture, conversation_id: str) -> Pair:
        """Append a capture. When this returns, it is on the disk.

        Raises:
            ArchiveUnwritable: it could not be written; the archive is as it was.
        """
        try:
            return await files.in_thread(self.write, capture, conversation_id, self.clock())
        except OSError as error:
            raise week_files.ArchiveUnwritable(
                f"{error.filename}: {error.strerror}; a captured conversation was not stored. "
                "Make room, or make the folder writable"
            ) from error

    def write(self, capture: Capture, conversation_id: str, at: float) -> Pair:
        """`store`, blocking, at a time in seconds since 1970. Raises OSError."""
        with self._lock:
            if self._end is None:
                self._end = _End(week_files.last_timestamp(self.folder))
            end = self._end
            end.timestamp = timestamp = qa_ids.next_timestamp(at, end.timestamp)
            path = self.folder / qa_ids.week_file(timestamp)
            if end.sound != path:
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
            files.append(path, render(pair).encode())
            end.sound = path
            return pair
