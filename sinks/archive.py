"""Where captures end: tier 1 of team knowledge, append-only (SPEC 6, "Raw archive")."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from clock import now, rfc3339, run_blocking
from model.outcomes import Outcome, OutcomeKind, Reason
from services.storage import files
from services.team import (
    REPLY,
    Capture,
    Captures,
    Pair,
    StoredBlock,
    archive,
    archive_files,
    place_line,
    qa_ids,
    said_in,
)
from services.telemetry import number_of

log = logging.getLogger(__name__)

LATE_WEEKS = 2  # the files of the archive that hold what was captured within a day


@dataclass(slots=True)
class RawArchive:
    """Gives captures their ids and appends them, one at a time, to the file of their week.

    Attributes:
        captures: the recent captures, which each stored one joins.
        clock: the time of capture; not the loop's time for messages of long ago.
        on_stored: called with each block, in the thread that wrote it.
        places: the file that tells where in Discord each pair comes from; None: that is not kept.
        rehearsed: nothing is written, and everything else is the same.
    """

    folder: Path
    captures: Captures
    clock: Callable[[], float] = now
    on_stored: Callable[[StoredBlock], None] | None = None
    places: Path | None = None
    rehearsed: bool = False
    _timestamp: str | None = field(default=None, init=False)  # the newest assigned since the start, written or not
    _sound: Path | None = field(default=None, init=False)  # the file that is known to end with a complete block
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)  # the next capture may join this one

    async def keep(self, capture: Capture) -> Outcome:
        """Store a capture, joined with the earlier conversation that it continues, if any; unless the last block of its
        conversation is word for word the same. Raises ArchiveUnwritable; then the archive is unchanged.
        """
        part = capture.part
        assert part is not None, "a capture without a part has no outcome"  # noqa: S101 (for the type checker)
        async with self._turn:
            joined = self.captures.join(capture)
            stored_as = self.captures.stored_as(joined)
            if stored_as is None and (pair := await self._add(joined)) is not None:
                stored_as = pair.id
        if stored_as is None:
            return Outcome(part, now(), OutcomeKind.SKIPPED, Reason.NOTHING_TO_LEARN)
        return Outcome(part, now(), OutcomeKind.CAPTURED, qa_id=stored_as)

    async def keep_late(self, capture: Capture) -> Pair | None:
        """Store a capture that had to wait, without losing what was captured of its conversation meanwhile: readers use
        the last one. None: all of it is stored already. Raises as `keep`, and OSError: the archive cannot be read.
        """
        async with self._turn:
            joined = self.captures.join(capture)
            recent = await run_blocking(archive_files.pairs_in, self.folder, LATE_WEEKS)
            same = (pair for pair in reversed(recent) if pair.conversation_id == joined.conversation_id)
            latest = next(same, None)
            added = joined if latest is None else beside(latest, joined)
            return None if added is None else await self._add(added)

    async def _add(self, joined: Capture) -> Pair | None:
        if not joined.teaches:
            return None
        try:
            pair = await run_blocking(self.write, joined, joined.conversation_id, self.clock())
        except OSError as error:
            raise archive_files.ArchiveUnwritable(
                f"{files.why(error)}. A captured conversation was not stored"
            ) from error
        self.captures.remember(pair)
        log.info("qa_pair_captured %s: %s, %s", pair.id, pair.conversation_id, number_of(len(pair.turns), "message"))
        return pair

    def write(self, capture: Capture, conversation_id: str, at: float) -> Pair:
        """Append a capture made at `at`, in seconds since 1970, durably. Blocking. Raises OSError."""
        timestamp = self._next_timestamp(at)
        pair = Pair(
            id=qa_ids.qa_id(timestamp),
            timestamp=timestamp,
            said_at=rfc3339(capture.said_at, digits=6),
            conversation_id=conversation_id,
            message_ids=tuple(said.message_id for said in capture.said),
            author_ids=tuple(said.author_id for said in capture.said),
            turns=tuple(said.turn for said in capture.said),
        )
        self._append(pair)
        if not self.rehearsed:
            self._note_place(pair.id, capture)
        return pair

    def take_over(self, pair: Pair, at: float) -> Pair:
        """As `write`, for a pair of another archive: it keeps everything but its id."""
        timestamp = self._next_timestamp(at)
        taken = replace(pair, id=qa_ids.qa_id(timestamp), timestamp=timestamp)
        self._append(taken)
        self.captures.remember(taken)
        return taken

    def _next_timestamp(self, at: float) -> str:
        last = self._timestamp or archive_files.last_timestamp(self.folder)
        self._timestamp = qa_ids.next_timestamp(at, last)
        return self._timestamp

    def _append(self, pair: Pair) -> None:
        path = self.folder / qa_ids.week_file(pair.key)
        if self._sound != path and not self.rehearsed:
            archive_files.repair_tail(path)
        self._sound = None  # until the write has succeeded
        if not self.rehearsed:
            block = archive.render(pair)
            start = files.append(path, block.encode())
            if self.on_stored is not None:
                self.on_stored(StoredBlock(path.name, start, block, pair))
        self._sound = path

    def _note_place(self, qa_id: str, capture: Capture) -> None:
        line = None if self.places is None else place_line(qa_id, capture)
        if self.places is None or line is None:
            return
        try:
            files.append(self.places, line.encode(), own_line=True)
        except OSError as error:
            log.warning("%s: %s; answers from %s will have no link", self.places, error.strerror, qa_id)


def beside(latest: Pair, capture: Capture) -> Capture | None:
    """What to store of a capture that comes after a later one of its conversation; None: nothing."""
    stored = {each.message_id: each for each in said_in(latest)}
    if not latest.conversation_id.startswith(REPLY):
        # A thread is read as a whole each time: what a later reading lacks has been deleted.
        return None if max(stored) >= capture.said[-1].message_id else capture
    said = {each.message_id: each for each in capture.said} | stored
    return None if len(said) == len(stored) else replace(capture, said=tuple(said[i] for i in sorted(said)))


@dataclass(slots=True)
class TakenOver:
    """Pairs of another archive that were stored, and those that were `known` already."""

    stored: int = 0
    known: int = 0


class Imported:
    """Stores what no single block contains, so that importing a file again, or resuming it, adds nothing twice.

    Attributes:
        conversations: the ids of those that something was stored of.
    """

    def __init__(self, archive: RawArchive, earlier: Iterable[Pair]) -> None:
        """`earlier`: the pairs of the whole archive."""
        self.conversations: set[str] = set()
        self._archive = archive
        self._blocks = 0
        self._holding: dict[int, set[int]] = {}  # the numbers of the blocks with each message
        for pair in earlier:
            self._add_block(pair.message_ids)

    async def keep(self, capture: Capture) -> Outcome:
        """As `RawArchive.keep`; `skipped("duplicate")` for what is in the archive."""
        joined = self._archive.captures.join(capture)
        message_ids = [said.message_id for said in joined.said]
        if capture.part is not None and self._held(message_ids):
            return Outcome(capture.part, now(), OutcomeKind.SKIPPED, Reason.DUPLICATE)
        outcome = await self._archive.keep(capture)
        if outcome.result is OutcomeKind.CAPTURED:
            self._add_block(message_ids)
            self.conversations.add(joined.conversation_id or "")
        return outcome

    def take_over(self, pairs: Iterable[Pair]) -> TakenOver:
        """Store pairs of another archive, of which no single block holds all. Blocking. Raises OSError."""
        taken = TakenOver()
        for pair in pairs:
            if self._held(pair.message_ids):
                taken.known += 1
                continue
            self._archive.take_over(pair, self._archive.clock())
            self._add_block(pair.message_ids)
            self.conversations.add(pair.conversation_id)
            taken.stored += 1
        return taken

    def _held(self, message_ids: Sequence[int]) -> bool:
        """Whether one block holds all of these messages."""
        holding = [self._holding.get(message_id, set[int]()) for message_id in message_ids]
        return bool(holding and set[int].intersection(*holding))

    def _add_block(self, message_ids: Iterable[int]) -> None:
        self._blocks += 1
        for message_id in message_ids:
            self._holding.setdefault(message_id, set()).add(self._blocks)
