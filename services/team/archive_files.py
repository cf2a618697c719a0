"""The files of the raw archive, one for each ISO week. Blocking.

All functions raise OSError as the system reports it.
"""

from __future__ import annotations

import logging
import os
import re
from collections import deque
from collections.abc import Callable, Collection, Container, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from operator import attrgetter
from pathlib import Path

from clock import DAY
from model.bounded import BoundedDict
from model.messages import snowflake_time
from services.storage import Signature, confined, files
from services.team import archive
from services.team.archive import MARKER, Pair, blocks, parse, sound_length

CHUNK_BYTES = 1 << 20  # read from a file at once, unless one block is longer
_NAME = re.compile(r"[0-9]{4}-W[0-9]{2}\.txt")
_SETTLED_NS = 100_000_000  # changes to a folder within the resolution of its clock look like one

log = logging.getLogger(__name__)


class ArchiveUnwritable(Exception):
    """A capture was not stored: one readable line that names the file and the remedy."""


def week_files(folder: Path) -> list[Path]:
    """List the files of an archive, oldest week first; none if the folder does not exist."""
    try:
        return sorted(path for path in folder.iterdir() if _NAME.fullmatch(path.name))
    except FileNotFoundError:
        return []


_warned = BoundedDict[str, None](10_000)


def warn_once(line: str) -> None:
    """Log a warning once for this process: the archive is read again and again."""
    if line not in _warned:
        log.warning("%s", line)
        _warned[line] = None


def pairs_in(folder: Path, weeks: int = 0) -> list[Pair]:
    """Read the pairs of the newest `weeks` files (0: all), oldest first. Logs and skips malformed blocks."""
    return [
        pair
        for path in week_files(folder)[-weeks:]
        for pair in parse(path.read_bytes().decode(errors="replace"), str(path), warn=warn_once)
    ]


CLOCK_SECONDS = DAY
"""The most by which the time of a message may be ahead of the clock of this machine."""


def _earliest_capture(message_id: int) -> int:
    """Return the second since 1970 before which a message cannot be captured: it had to be written first."""
    return int(snowflake_time(message_id) - CLOCK_SECONDS)


def _files_since(folder: Path, second: int) -> list[Path]:
    """Return the files with captures from this second since 1970 on."""
    first = archive.week_file(Decimal(second))
    return [path for path in week_files(folder) if path.name >= first]


def last_captures(folder: Path, message_ids: Collection[int]) -> list[Pair]:
    """Return the last capture of each conversation that holds one of these messages. Only files that may hold one are
    read.
    """
    found: dict[str, Pair] = {}
    for path in _files_since(folder, _earliest_capture(min(message_ids))):
        text, words = _sound_text(path), [*map(str, message_ids), *found]
        if not any(word in text for word in words):
            continue
        for pair in archive.pairs_with(text, words):
            known = found.get(pair.conversation_id)
            if known is not None or not set(message_ids).isdisjoint(pair.message_ids):
                found[pair.conversation_id] = max(known or pair, pair, key=attrgetter("key"))
    return list(found.values())


def earlier_captures(folder: Path, pair: Pair) -> list[Pair]:
    """Return the captures of a pair's conversation before it, oldest first. Only files that may hold one are read."""
    paths = _files_since(folder, min(_earliest_capture(min(pair.message_ids)), int(pair.key)))
    found = (each for path in paths for each in archive.pairs_with(_sound_text(path), [pair.conversation_id]))
    earlier = (each for each in found if each.conversation_id == pair.conversation_id and each.key < pair.key)
    return sorted(earlier, key=attrgetter("key"))


def last_ids_of(
    folder: Path, pair_ids: Container[str], conversation_ids: Iterable[str], since: int
) -> dict[Path, set[str]]:
    """Return by file the id of the last capture of each conversation that one of these pairs is of, or that has one of
    these ids. `since`: the id of something on Discord that is older than all of them.
    """
    wanted, last = set(conversation_ids), dict[str, tuple[Path, str]]()
    for path in _files_since(folder, _earliest_capture(since)):
        for pair_id, conversation_id, _ in archive.heads(_sound_text(path)):
            if pair_id in pair_ids:
                wanted.add(conversation_id)
            if conversation_id in wanted:
                last[conversation_id] = path, pair_id
    found: dict[Path, set[str]] = {}
    for path, pair_id in last.values():
        found.setdefault(path, set()).add(pair_id)
    return found


def pairs_by_id(path: Path, pair_ids: Container[str]) -> list[Pair]:
    """Return the pairs of a file with these ids."""
    return archive.pairs_by_id(_sound_text(path), pair_ids)


def _sound_text(path: Path) -> str:
    data = path.read_bytes()
    return data[: sound_length(data)].decode(errors="replace")


def authors_in(folder: Path, pair_ids: Iterable[str]) -> set[int]:
    """Return the ids of those who have written in these pairs, as far as they are known, as `pairs_with_ids` reads."""
    found = set[int]()
    return found.union(*(pair.author_ids for pair in pairs_with_ids(folder, pair_ids))) - {archive.UNKNOWN}


def pairs_with_ids(folder: Path, pair_ids: Iterable[str]) -> list[Pair]:
    """Return the pairs with these ids. Only the files of their weeks are read; what is no id of a pair is left out."""
    by_week: dict[str, list[str]] = {}
    for pair_id in pair_ids:
        with suppress(archive.BadId):
            by_week.setdefault(archive.week_file(archive.instant(pair_id)), []).append(pair_id)
    paths = (path for path in week_files(folder) if path.name in by_week)
    return [pair for path in paths for pair in pairs_by_id(path, by_week[path.name])]


def is_archive(path: Path) -> bool:
    """Return True if a file begins like an archive file, of this program or an earlier one."""
    with path.open("rb") as file:
        return file.read(len(MARKER) + 3).decode(errors="replace").removeprefix("\ufeff").startswith(MARKER)


def pairs_of(path: Path) -> list[Pair]:
    """Read the pairs of an imported file, whose last block may lack its final empty line."""
    return parse(path.read_bytes().decode(errors="replace").rstrip("\r\n") + "\n\n", str(path))


def last_timestamp(folder: Path) -> str | None:
    """Return the timestamp of the newest pair, read from the end of the newest file that has one; None for an empty
    archive.
    """
    pairs = map(last_pair, reversed(week_files(folder)))
    return next((pair.timestamp for pair in pairs if pair is not None), None)


def last_pair(path: Path) -> Pair | None:
    """Return the last complete pair of a file; None if it has none."""
    size = path.stat().st_size
    length = files.TAIL_BYTES
    while True:
        data = files.read_tail(path, length)
        found = [pair for _, pair in blocks(data[: sound_length(data)].decode(errors="replace"))]
        pairs = [pair for pair in found if isinstance(pair, Pair)]
        if pairs or length >= size:
            return pairs[-1] if pairs else None
        length *= 2


def repair_tail(path: Path) -> None:
    """Move a truncated last block, left by a crash, to `<file>.torn`, and log it."""
    files.repair_tail(path, sound_length, "block")


@dataclass(slots=True)
class _Position:
    """The position up to which a file was read. `seen`: the signature of the file when its end was reached."""

    offset: int = 0
    line: int = 1
    inode: int = 0
    seen: Signature | None = None


@dataclass(frozen=True, slots=True)
class StoredBlock:
    """A block that was just appended to the archive file `name`, at byte `start`."""

    name: str
    start: int
    text: str
    pair: Pair


PairFilter = Callable[[Pair], bool]

MAX_AHEAD = 100_000
"""Conversations of which the last capture is known that is not read yet: some 35 MB."""


def accept_all(_pair: Pair) -> bool:
    return True


class ArchiveReader:
    """Reads the wanted pairs of an archive, oldest first. Keeps only the last chunk that it read in memory; of what may
    come later the ids.

    Attributes:
        ahead: the ids of the last wanted captures that may not be in memory, by conversation.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._prefix = os.fspath(folder) + os.sep
        self._names: list[str] = []
        self._folder_seen: Signature | None = None
        self._positions: dict[str, _Position] = {}
        self._unread: deque[str] = deque()
        self._waiting: deque[Pair] = deque()
        self._latest: dict[str, Pair] = {}  # of the waiting pairs, the last of each conversation
        self.ahead = BoundedDict[str, str](MAX_AHEAD)

    def survey(self, wanted: PairFilter) -> Iterator[Pair]:
        """Yield every pair of the archive once. Afterwards `oldest` starts at the first wanted pair of each file."""
        self.rewind()
        self._forget_ahead()
        self._find_unread()
        for name in list(self._unread):
            here = _Position()
            done = True
            while (pairs := self._read(name, here)) is not None:
                found = list(filter(wanted, pairs))
                for pair in found:
                    self.note_ahead(pair)
                done = done and not found
                if done:
                    self._positions[name] = replace(here)
                yield from pairs
            if done:
                self._positions[name] = here
                self._unread.remove(name)

    def oldest(self, wanted: PairFilter, ready: PairFilter = accept_all) -> Pair | None:
        """Return the first wanted pair for which `ready` is true. Opens no file if nothing was added since the last
        call.
        """
        while True:
            if (found := self.peek(wanted, ready)) is not None:
                return found
            if not self._unread:
                self._find_unread()
            if not self._unread:
                self._forget_ahead()  # all is in memory
                return None
            pairs = self._read(self._unread[0], self._positions.setdefault(self._unread[0], _Position()))
            if pairs is None:
                self._unread.popleft()
            else:
                self._wait(sorted(filter(wanted, pairs), key=attrgetter("key")))

    def peek(self, wanted: PairFilter, ready: PairFilter = accept_all) -> Pair | None:
        """Return what `oldest` returns, from the pairs in memory only."""
        while self._waiting and not wanted(self._waiting[0]):
            unwanted = self._waiting.popleft()
            if self._latest.get(unwanted.conversation_id) is unwanted:
                del self._latest[unwanted.conversation_id]
        return next((pair for pair in self._waiting if wanted(pair) and ready(pair)), None)

    def in_memory(self, wanted: PairFilter) -> list[Pair]:
        """Return the wanted pairs in memory."""
        return list(filter(wanted, self._waiting))

    def later_capture(self, pair: Pair) -> str | None:
        """Return the id of the last capture of the same conversation, as far as it is known, if it is later."""
        latest = max(self._latest.get(pair.conversation_id, pair), pair, key=attrgetter("key"))
        ahead = self.ahead.get(pair.conversation_id)
        if ahead is not None and archive.instant(ahead) > latest.key:
            return ahead
        return latest.id if latest.key > pair.key else None

    def note_ahead(self, pair: Pair) -> None:
        """Note that a wanted pair may be on the disk alone."""
        known = self.ahead.get(pair.conversation_id)
        if known is None or archive.instant(known) < pair.key:
            self.ahead[pair.conversation_id] = pair.id

    def add_block(self, block: StoredBlock) -> bool:
        """Take over a block that was just appended, if it follows the last block that was read. False: it is read from
        the disk later.
        """
        # So is the first block of a new week: the file before may hold unread blocks.
        position = self._positions.get(block.name)
        if position is not None and position.offset == block.start and not self._unread:
            position.offset += len(block.text.encode())
            position.line += block.text.count("\n")
            self._wait([block.pair])
            return True
        return False

    def _forget_ahead(self) -> None:
        self.ahead = BoundedDict[str, str](MAX_AHEAD)  # anew: another thread may add to it

    def rewind(self) -> None:
        """Start reading from the beginning again, as skipped pairs may be wanted now."""
        for pair in self._waiting:
            self.note_ahead(pair)
        self._folder_seen = None
        self._positions.clear()
        self._unread.clear()
        self._waiting.clear()
        self._latest.clear()

    def find(self, keys: Iterable[Decimal]) -> dict[Decimal, Pair]:
        """Find the pairs with these keys; of two with the same key, the first."""
        missing = set(keys)
        found: dict[Decimal, Pair] = {}
        likely = {archive.week_file(key) for key in missing}
        for path in sorted(week_files(self._folder), key=lambda path: path.name not in likely):
            position = _Position()
            while missing and (pairs := self._read(path.name, position)) is not None:
                for pair in pairs:
                    if pair.key in missing:
                        missing.discard(pair.key)
                        found[pair.key] = pair
        return found

    def _wait(self, pairs: Iterable[Pair]) -> None:
        for pair in pairs:
            self._waiting.append(pair)
            known = self._latest.get(pair.conversation_id, pair)
            self._latest[pair.conversation_id] = max(known, pair, key=attrgetter("key"))

    def _find_unread(self) -> None:
        """Find the files with unread blocks."""
        folder = _signature(self._prefix)
        newest = self._names[-1] if self._names else None
        last = _signature(self._prefix + newest) if newest is not None else None
        settled = folder is not None and last is not None and last[0] - folder[0] > _SETTLED_NS
        if newest is None or not settled or folder != self._folder_seen:
            self._names = [path.name for path in week_files(self._folder)]
            self._folder_seen = folder
            found = {name: _signature(self._prefix + name) for name in self._names}
        else:
            found = {newest: last}
        for name, seen in found.items():
            if seen is not None and (name not in self._positions or self._positions[name].seen != seen):
                self._unread.append(name)

    def _read(self, name: str, position: _Position) -> list[Pair] | None:
        """Read the next pairs of a file; None at its end."""
        path = self._prefix + name
        try:
            file = open(path, "rb")  # noqa: PTH123, SIM115 (measured, as below; closed below)
        except FileNotFoundError:
            return None
        with file:
            seen = confined.signature_of(os.fstat(file.fileno()))
            if seen[1] < position.offset or seen[2] != position.inode:
                position.offset, position.line, position.inode = 0, 1, seen[2]  # a new file, or a replaced one
            length = CHUNK_BYTES
            while True:
                file.seek(position.offset)
                data = file.read(length)
                sound = sound_length(data)
                if sound or len(data) < length:
                    break
                length *= 2
        if not sound:
            position.seen = seen
            return None
        text = data[:sound].decode(errors="replace")
        pairs = parse(text, path, position.line, warn_once)
        position.offset += sound
        position.line += text.count("\n")
        return pairs


def _signature(path: str) -> Signature | None:
    try:
        return confined.signature_of(os.stat(path))  # noqa: PTH116 (measured: half the cost)
    except FileNotFoundError:
        return None
