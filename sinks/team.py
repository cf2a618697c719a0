"""Writes what the team teaches: captures to the raw archive (tier 1), in order, to the file of their week; decisions
about them to the topics and their index (tier 2).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path

from clock import now, rfc3339, run_blocking
from model.conversations import THREAD
from model.outcomes import Outcome, OutcomeKind, Reason
from services.conversations import WorkCancelled
from services.storage import files
from services.team import (
    REMOVED,
    Capture,
    CapturedMessage,
    Decision,
    Pair,
    PairLinks,
    RecentCaptures,
    Revision,
    Speaker,
    StoredBlock,
    TeamLibrary,
    Topic,
    apply_revisions,
    archive,
    archive_files,
    captured_messages,
    pair_link_line,
    with_doubts,
)
from services.telemetry import number_of

log = logging.getLogger(__name__)

MAX_VERSIONS = 20
"""A conversation is stored again each time that a user changes their words in it. After more versions than this, all
of their words are removed: else one account could fill the disk, word by word."""
LATE_WEEKS = 2  # all captures of the last day are in this many weekly files
GROUP_SIZE = 128
"""At most this many captures are written by one append."""


@dataclass(eq=False, slots=True)
class _QueuedCapture:
    """A capture to be written; afterwards one of `pair`, `stored_as` (its id, if it was there before) or `error` is
    set, or none if it is no exchange. `earlier_id`: of the capture that it revises.
    """

    capture: Capture
    earlier_id: str | None = None
    is_done: bool = False
    pair: Pair | None = None
    stored_as: str | None = None
    error: Exception | None = None

    @property
    def qa_id(self) -> str | None:
        return self.stored_as if self.pair is None else self.pair.id


@dataclass(slots=True)
class RawArchive:
    """Gives captures their ids and appends them, in order of arrival, to the file of their week. Captures that arrive
    while others are being flushed are written together afterwards, with one append and one flush (group commit).

    Attributes:
        captures: the recent captures, to which stored ones are added.
        clock: gives the time of capture; while old messages are imported, another than the loop's.
        on_stored: called with each block, in the thread that wrote it; its errors are logged.
        places: the file with the place in Discord of each pair; None: that is not kept.
        is_rehearsal: nothing is written; all else is the same.
    """

    folder: Path
    captures: RecentCaptures
    clock: Callable[[], float] = now
    on_stored: Callable[[StoredBlock], None] | None = None
    places: Path | None = None
    is_rehearsal: bool = False
    _timestamp: str | None = field(default=None, init=False)  # the newest assigned since the start, written or not
    _complete_file: Path | None = field(default=None, init=False)  # the file that is known to end with a complete block
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)  # a capture may join the ones before it
    _waiting: deque[_QueuedCapture] = field(default_factory=deque[_QueuedCapture], init=False)

    async def keep(self, capture: Capture) -> Outcome:
        """Store a capture, joined with the earlier conversation that it continues, if any; unless the last block of its
        conversation is word for word the same. Returns when it is on the disk. Raises ArchiveUnwritable: it is not in
        the archive.
        """
        part = capture.part
        assert part is not None, "a capture without a part has no outcome"  # noqa: S101 (for the type checker)
        mine = _QueuedCapture(capture)
        self._waiting.append(mine)
        try:
            async with self._turn:
                if not mine.is_done:  # else the one before has written it as well
                    await self._store(self._next_group())
        finally:
            with suppress(ValueError):  # it is still there only if cancelled before it was taken up
                self._waiting.remove(mine)
        if mine.error is not None:
            raise mine.error
        if mine.qa_id is None:
            return Outcome(part, now(), OutcomeKind.SKIPPED, Reason.NOTHING_TO_LEARN)
        return Outcome(part, now(), OutcomeKind.CAPTURED, qa_id=mine.qa_id)

    async def store_late(self, capture: Capture) -> Pair | None:
        """Store a capture that had to wait, merged with later captures of its conversation, as readers use the last
        one. None: all of it is stored already. Raises as `keep`, and OSError: the archive cannot be read.
        """
        async with self._turn:
            joined = self.captures.join(capture)
            if not joined.is_exchange:
                return None
            recent = await run_blocking(archive_files.pairs_in, self.folder, LATE_WEEKS)
            same = (pair for pair in reversed(recent) if pair.conversation_id == joined.conversation_id)
            latest = next(same, None)
            added = joined if latest is None else merge(latest, joined)
            return None if added is None else await self._add(added)

    async def revise(self, revisions: Sequence[Revision]) -> Sequence[Pair]:
        """Store again each conversation that holds an edited, deleted or doubted message, as it reads now: readers use
        the last capture. Captures that still wait are stored with the changes too. An edit by somebody who has opted
        out counts as a deletion. What a user has said in a conversation is deleted whole when they have changed it
        `MAX_VERSIONS` times; and so is all that was said in a deleted channel or thread.

        Raises ArchiveUnwritable: one of them is not in the archive; and OSError: the archive cannot be read.
        """
        revisions = await self._by_message(revisions)
        self.captures.revise(revisions)
        by_message = {each.message_id: each for each in revisions if not (each.is_doubt or each.is_place)}
        doubted = {each.message_id for each in revisions if each.is_doubt}
        async with self._turn:
            changed: list[_QueuedCapture] = []
            message_ids = doubted | by_message.keys()
            found = await run_blocking(archive_files.last_captures, self.folder, message_ids) if message_ids else ()
            for pair in found:
                messages = captured_messages(pair)
                edited = [each for each in messages if each.message_id in by_message]
                withheld = [*filter(self.captures.is_withheld, edited), *await self._changed_often(pair, edited)]
                gone = {each.message_id: Revision(each.message_id) for each in withheld}
                revised = apply_revisions(messages, by_message | gone, pair.kind.opening)
                revised = with_doubts(revised, doubted)
                if revised != tuple(messages):
                    changed.append(_QueuedCapture(Capture(None, pair.conversation_id, revised), pair.id))
            pairs = await self._store_again(changed)
        return [*pairs, *await self._remove_places({each.message_id for each in revisions if each.is_place})]

    async def _by_message(self, revisions: Sequence[Revision]) -> Sequence[Revision]:
        """Return revisions with a doubt of each message of the team in the place of a doubt of the whole pair: those
        that were added since were not doubted.
        """
        pair_ids = [each.pair_id for each in revisions if each.pair_id]
        if not pair_ids:
            return revisions
        pairs = await run_blocking(archive_files.pairs_with_ids, self.folder, pair_ids)
        said = (each for pair in pairs for each in captured_messages(pair))
        doubts = [Revision(each.message_id, is_doubt=True) for each in said if each.turn.speaker is Speaker.TEAM]
        return [*(each for each in revisions if not each.pair_id), *doubts]

    async def _remove_places(self, place_ids: Collection[int]) -> Sequence[Pair]:
        """Store again all conversations in deleted places, and in threads of these, with all messages removed."""
        if not place_ids or self.places is None:
            return ()
        stored: list[Pair] = []
        noted = await run_blocking(PairLinks(self.places).pairs_in, place_ids)
        threads = map(THREAD.make_id, place_ids)
        by_file = await run_blocking(archive_files.last_ids_of, self.folder, noted, threads, min(place_ids))
        for path, pair_ids in by_file.items():
            async with self._turn:
                changed: list[_QueuedCapture] = []
                for pair in await run_blocking(archive_files.pairs_by_id, path, pair_ids):
                    messages = captured_messages(pair)
                    removed = apply_revisions(messages, {each: Revision(each) for each in pair.message_ids})
                    if removed != tuple(messages):
                        changed.append(_QueuedCapture(Capture(None, pair.conversation_id, removed), pair.id))
                for at in range(0, len(changed), GROUP_SIZE):
                    stored += await self._store_again(changed[at : at + GROUP_SIZE])
        return stored

    async def _store_again(self, changed: Sequence[_QueuedCapture]) -> Sequence[Pair]:
        await self._store(changed)
        for each in changed:
            if each.error is not None:
                raise each.error
        return [each.pair for each in changed if each.pair is not None]

    async def _changed_often(self, pair: Pair, edited: Iterable[CapturedMessage]) -> Sequence[CapturedMessage]:
        """Return all messages in a conversation of those authors of `edited` ones who have changed theirs too often
        since it last grew. Raises OSError.
        """
        authors = {each.author_id for each in edited if each.turn.speaker is Speaker.USER}
        if not authors:
            return ()
        earlier = await run_blocking(archive_files.earlier_captures, self.folder, pair)
        same = [captured_messages(each) for each in (*earlier, pair) if each.message_ids == pair.message_ids]
        versions = {author: {tuple(own.turn for own in _own(each, author)) for each in same} for author in authors}
        often = (author for author, known in versions.items() if len(known) > MAX_VERSIONS)
        return [each for author in often for each in _own(captured_messages(pair), author)]

    def holds(self, message_ids: Collection[int]) -> bool:
        """Return True if a conversation in the archive holds one of these messages. Blocking. Raises OSError."""
        return self.captures.holds(message_ids) or bool(archive_files.last_captures(self.folder, message_ids))

    async def _add(self, joined: Capture) -> Pair | None:
        if not joined.is_exchange:
            return None
        added = _QueuedCapture(joined)
        await self._store([added])
        if added.error is not None:
            raise added.error
        return added.pair

    def _next_group(self) -> list[_QueuedCapture]:
        """Take the waiting captures that can be written together, oldest first: up to the first that may continue one
        of the others, since only a stored capture can be joined.
        """
        group: list[_QueuedCapture] = []
        conversations: set[str] = set()
        messages: set[int] = set()
        while self._waiting and len(group) < GROUP_SIZE:
            first = self._waiting[0]
            joined = self.captures.join(first.capture)
            message_ids = {each.message_id for each in joined.messages}
            if joined.conversation_id in conversations or not messages.isdisjoint(message_ids):
                break
            self._waiting.popleft()
            conversations.add(joined.conversation_id)
            messages |= message_ids
            first.capture, first.stored_as = joined, self.captures.stored_as(joined)
            if first.stored_as is None and joined.is_exchange:
                group.append(first)
            else:
                first.is_done = True
        return group

    async def _store(self, group: Sequence[_QueuedCapture]) -> None:
        """Write a group off the loop, and mark each capture as done, also if the caller is cancelled."""
        try:
            if group:
                await run_blocking(self._write, group, self.clock())
        finally:
            for each in group:
                each.is_done = True
                if (pair := each.pair) is not None:
                    self.captures.remember(pair)
                    count = number_of(len(pair.turns), "message")
                    log.info("qa_pair_captured %s: %s, %s", pair.id, pair.conversation_id, count)

    def write(self, captures: Sequence[Capture], at: float) -> list[Pair]:
        """Append captures made at `at`, in seconds since 1970, durably. Blocking. Raises ArchiveUnwritable."""
        written = [_QueuedCapture(capture) for capture in captures]
        self._write(written, at)
        for each in written:
            if each.error is not None:
                raise each.error
        return [each.pair for each in written if each.pair is not None]

    def _write(self, group: Sequence[_QueuedCapture], at: float) -> None:
        self._write_blocks(group, at)
        self._note_places(group)

    def _write_blocks(self, group: Sequence[_QueuedCapture], at: float) -> None:
        """Write each week's blocks with one flush; if that fails, one by one: a full disk may have room for some."""
        try:
            pairs = [(each, self._pair(each.capture, at)) for each in group]
            for _, of_week in groupby(pairs, lambda made: archive.week_file(made[1].key)):
                some = list(of_week)
                self._append([pair for _, pair in some])
                for each, pair in some:
                    each.pair = pair
        except Exception as error:  # noqa: BLE001 (it is raised for each capture)
            if len(group) > 1:
                for each in [each for each in group if each.pair is None]:
                    self._write_blocks([each], at)
            elif isinstance(error, OSError):
                why = f"{files.describe_error(error)}. A captured conversation was not stored"
                group[0].error = archive_files.ArchiveUnwritable(why)
                group[0].error.__cause__ = error
            else:
                group[0].error = error

    def _pair(self, capture: Capture, at: float) -> Pair:
        timestamp = self._next_timestamp(at)
        pair = Pair(
            id=archive.qa_id(timestamp),
            timestamp=timestamp,
            said_at=rfc3339(capture.said_at, digits=6),
            conversation_id=capture.conversation_id,
            message_ids=tuple(each.message_id for each in capture.messages),
            author_ids=tuple(each.author_id for each in capture.messages),
            turns=tuple(each.turn for each in capture.messages),
            doubted_ids=tuple(each.message_id for each in capture.messages if each.is_doubted),
        )
        return archive.with_addressees(pair, [each.addressee_id for each in capture.messages])

    def take_over(self, pair: Pair, at: float) -> Pair:
        """Append a pair of another archive, unchanged but for a new id."""
        timestamp = self._next_timestamp(at)
        taken = replace(pair, id=archive.qa_id(timestamp), timestamp=timestamp)
        self._append([taken])
        self.captures.remember(taken)
        return taken

    def _next_timestamp(self, at: float) -> str:
        last = self._timestamp or archive_files.last_timestamp(self.folder)
        self._timestamp = archive.next_timestamp(at, last)
        return self._timestamp

    def _append(self, pairs: Sequence[Pair]) -> None:
        """Append pairs of one week."""
        path = self.folder / archive.week_file(pairs[0].key)
        if self._complete_file != path and not self.is_rehearsal:
            archive_files.repair_tail(path)
        self._complete_file = None  # until the write has succeeded
        if not self.is_rehearsal:
            blocks = [archive.render(pair) for pair in pairs]
            start = files.append(path, "".join(blocks).encode())
            if self.on_stored is not None:
                for block, pair in zip(blocks, pairs, strict=True):
                    try:
                        self.on_stored(StoredBlock(path.name, start, block, pair))
                    except Exception:  # the pair is stored, and must not be written again
                        log.exception("%s was stored; its reader finds it later", pair.id)
                    start += len(block.encode())
        self._complete_file = path

    def _note_places(self, group: Iterable[_QueuedCapture]) -> None:
        """Note where stored captures come from. Errors are only logged: the captures stay stored."""
        stored = {pair.id: each for each in group if (pair := each.pair) is not None}
        if self.places is None or self.is_rehearsal or not stored:
            return
        names, links = ", ".join(stored), PairLinks(self.places)

        def line_of(qa_id: str, each: _QueuedCapture) -> str | None:
            if each.earlier_id is None:
                return pair_link_line(qa_id, each.capture)
            return links.line_of_revised(qa_id, each.earlier_id, each.capture)

        try:
            noted = (line_of(qa_id, each) for qa_id, each in stored.items())
            lines = "".join(line for line in noted if line is not None)
            if lines:
                files.append(self.places, lines.encode(), own_line=True)
        except OSError as error:
            log.warning("%s: %s; answers from %s will have no link", self.places, error.strerror, names)
        except WorkCancelled as taken_over:  # by another process (`transport/fenced_log.py: Fenced`)
            log.warning("%s: %s; answers from %s will have no link", self.places, taken_over, names)
        except Exception:
            log.exception("%s: answers from %s will have no link", self.places, names)


def _own(messages: Iterable[CapturedMessage], author_id: int) -> list[CapturedMessage]:
    """Return what somebody said as a user."""
    return [each for each in messages if each.author_id == author_id and each.turn.speaker is Speaker.USER]


def merge(latest: Pair, capture: Capture) -> Capture | None:
    """Return what to store of a capture if a later one is stored: the messages of both; None: nothing is missing."""
    stored = {each.message_id: each for each in captured_messages(latest)}
    if not latest.kind.joins_by_messages:
        # A thread is read as a whole each time: what a later reading lacks has been deleted.
        return None if max(stored) >= capture.messages[-1].message_id else capture
    both = {each.message_id: each for each in capture.messages} | stored
    return None if len(both) == len(stored) else replace(capture, messages=tuple(both[i] for i in sorted(both)))


@dataclass(slots=True)
class ImportCounts:
    """Counts pairs of another archive: stored; `known` already; no exchange without texts of people who `opted_out`."""

    stored: int = 0
    known: int = 0
    opted_out: int = 0


class ImportArchive:
    """Stores captures and pairs that no block holds whole, so that importing a file again, or resuming it, adds nothing
    twice. `conversations`: the ids of the conversations of which something was stored.
    """

    def __init__(self, archive: RawArchive, earlier: Iterable[Pair]) -> None:
        """`earlier`: the pairs of the whole archive."""
        self.conversations: set[str] = set()
        self._archive = archive
        self._blocks = 0
        self._turn = asyncio.Lock()  # one capture's block may hold the next capture
        self._blocks_with: dict[int, set[int]] = {}  # the numbers of the blocks with each message
        for pair in earlier:
            self._add_block(pair.message_ids)

    async def keep(self, capture: Capture) -> Outcome:
        """Like `RawArchive.keep`, but a capture whose messages are in the archive ends as `skipped("duplicate")`."""
        async with self._turn:
            return await self._keep(capture)

    async def revise(self, _guild_id: int | None, revisions: Sequence[Revision]) -> Sequence[Pair]:
        """Like `RawArchive.revise`."""
        async with self._turn:
            return await self._archive.revise(revisions)

    async def _keep(self, capture: Capture) -> Outcome:
        joined = self._archive.captures.join(capture)
        message_ids = [each.message_id for each in joined.messages]
        if capture.part is not None and self._is_stored(message_ids):
            return Outcome(capture.part, now(), OutcomeKind.SKIPPED, Reason.DUPLICATE)
        outcome = await self._archive.keep(capture)
        if outcome.result is OutcomeKind.CAPTURED:
            self._add_block(message_ids)
            self.conversations.add(joined.conversation_id)
        return outcome

    def take_over(self, pairs: Iterable[Pair]) -> ImportCounts:
        """Store those pairs of another archive that no block holds whole, without texts of people who have opted out.
        Blocking. Raises OSError.
        """
        taken = ImportCounts()
        for whole in pairs:
            pair = self._archive.captures.without_withheld(whole)
            if pair is None:
                taken.opted_out += 1
                continue
            if self._is_stored(pair.message_ids) and not self._is_news(pair):
                taken.known += 1
                continue
            self._archive.take_over(pair, self._archive.clock())
            self._add_block(pair.message_ids)
            self.conversations.add(pair.conversation_id)
            taken.stored += 1
        return taken

    def _is_news(self, pair: Pair) -> bool:
        """Return True if a message was removed from the pair, and the last capture of its conversation differs."""
        has_removed = any(turn.text == REMOVED for turn in pair.turns)
        capture = Capture(None, pair.conversation_id, tuple(captured_messages(pair)))
        return has_removed and self._archive.captures.stored_as(capture) is None

    def _is_stored(self, message_ids: Sequence[int]) -> bool:
        """Return True if one block holds all of these messages."""
        blocks = [self._blocks_with.get(message_id, set[int]()) for message_id in message_ids]
        return bool(blocks and set[int].intersection(*blocks))

    def _add_block(self, message_ids: Iterable[int]) -> None:
        self._blocks += 1
        for message_id in message_ids:
            self._blocks_with.setdefault(message_id, set()).add(self._blocks)


# The functions below must not run at once: decisions have an order. A cancelled call is still finished.


async def write_decision(
    library: TeamLibrary,
    decision: Decision,
    pair: Pair,
    on_written: Callable[[], None] | None = None,
    *,
    put_off: bool = False,
    brings_back: bool = True,
) -> Sequence[str]:
    """Write a decision about `pair`, and the changed topics, unless these are `put_off`; then call `on_written` in the
    same thread, off the event loop. Returns the names of the topics that changed. `put_off`, `brings_back`: as in
    `TeamLibrary.decide`.

    Raises LibraryUnwritable: a file cannot be written; the library knows what is left to do.
    """

    def decided() -> frozenset[str]:
        changed = library.decide(decision, pair, put_off=put_off, brings_back=brings_back)
        if on_written is not None:
            on_written()
        return changed

    changed = sorted(await run_blocking(decided))
    for topic in changed:
        log.info("topic_file_updated %s by %s", topic, decision.qa_id)
    return changed


async def write_description(
    library: TeamLibrary,
    topic: Topic,
    summary: str,
    key: str,
    on_written: Callable[[], None] | None = None,
    *,
    put_off: bool = False,
) -> None:
    """Like `write_decision`, for the description of a topic. `key`: of the describer."""

    def described() -> None:
        library.describe(topic, summary, key, put_off=put_off)
        if on_written is not None:
            on_written()

    await run_blocking(described)
