"""The archive read on from where it last stood (SPEC 6, "Classify and integrate"). Blocking.

Raises everywhere: OSError, as the system reported it.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

from services.storage import Signature, confined
from services.team import qa_ids
from services.team.archive import Pair, parse, sound_length
from services.team.week_files import week_files

CHUNK_BYTES = 1 << 20
"""So much of a file is in memory at once; more only where one block is longer."""

_SETTLED_NS = 100_000_000
"""Two changes to a folder within the clock's grain look like one."""


@dataclass(slots=True)
class _Place:
    """How far a file has been read."""

    offset: int = 0
    line: int = 1
    inode: int = 0
    seen: Signature | None = None
    """What the file looked like when there was nothing more in it."""


@dataclass(frozen=True, slots=True)
class Written:
    """A block that has just been appended."""

    name: str
    """Of the file."""
    start: int
    """In bytes."""
    text: str
    pair: Pair


class ArchiveReader:
    """Hands out the pairs that are wanted, oldest first. Holds no more of the archive than what it read last."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._prefix = os.fspath(folder) + os.sep
        self._names: list[str] = []
        self._folder_seen: Signature | None = None
        self._places: dict[str, _Place] = {}
        self._unread: deque[str] = deque()
        self._waiting: deque[Pair] = deque()

    def survey(self, wanted: Callable[[Pair], bool]) -> Iterator[Pair]:
        """Every pair of the archive, once. Later reading begins at the first that was wanted in each file."""
        self.rewind()
        self._look()
        names, again = list(self._unread), deque[str]()
        for name in names:
            here = _Place()
            done = True
            while (pairs := self._read(name, here)) is not None:
                done = done and not any(map(wanted, pairs))
                if done:
                    self._places[name] = replace(here)
                yield from pairs
            if done:
                self._places[name] = here
            else:
                again.append(name)
        self._unread = again

    def oldest(self, wanted: Callable[[Pair], bool]) -> Pair | None:
        """The first pair that is wanted. Asked again when nothing has come, it opens no file."""
        while True:
            while self._waiting:
                if wanted(self._waiting[0]):
                    return self._waiting[0]
                self._waiting.popleft()
            if not self._unread:
                self._look()
            if not self._unread:
                return None
            pairs = self._read(self._unread[0], self._places.setdefault(self._unread[0], _Place()))
            if pairs is None:
                self._unread.popleft()
            else:
                self._waiting.extend(sorted(filter(wanted, pairs), key=_instant))

    def at_hand(self, wanted: Callable[[Pair], bool]) -> Pair | None:
        """`oldest`, where that is known without a look at the disk."""
        return next(filter(wanted, self._waiting), None)

    def arrived(self, block: Written) -> None:
        """Take a block that follows what was read last as read. Any other is left on the disk, to be found there: the
        first of a new week, too, as the file before may hold something that was not read.
        """
        place = self._places.get(block.name)
        if place is not None and place.offset == block.start and not self._unread:
            place.offset += len(block.text.encode())
            place.line += block.text.count("\n")
            self._waiting.append(block.pair)

    def rewind(self) -> None:
        """Begin anew: something that was read and not wanted is wanted now."""
        self._folder_seen = None
        self._places.clear()
        self._unread.clear()
        self._waiting.clear()

    def find(self, keys: Iterable[Decimal]) -> dict[Decimal, Pair]:
        """The pairs with ids of these instants, as far as there are such; of two with one id, the first."""
        missing = set(keys)
        found: dict[Decimal, Pair] = {}
        files = week_files(self._folder)
        likely = {qa_ids.week_of(key) for key in missing}
        for path in sorted(files, key=lambda path: path.name not in likely):
            if not missing:
                break
            place = _Place()
            while missing and (pairs := self._read(path.name, place)) is not None:
                for pair in pairs:
                    if (key := _instant(pair)) in missing:
                        missing.discard(key)
                        found[key] = pair
        return found

    def _look(self) -> None:
        """Which files have something new."""
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
            if seen is not None and (name not in self._places or self._places[name].seen != seen):
                self._unread.append(name)

    def _read(self, name: str, place: _Place) -> list[Pair] | None:
        """The next pairs of a file; None at its end."""
        path = self._prefix + name
        try:
            file = open(path, "rb")  # noqa: PTH123, SIM115 (as above; closed below)
        except FileNotFoundError:
            return None
        with file:
            seen = confined.signature(os.fstat(file.fileno()))
            if seen[1] < place.offset or seen[2] != place.inode:
                place.offset, place.line, place.inode = 0, 1, seen[2]  # a new file, or another in its place
            length = CHUNK_BYTES
            while True:
                file.seek(place.offset)
                data = file.read(length)
                sound = sound_length(data)
                if sound or len(data) < length:
                    break
                length *= 2
        if not sound:
            place.seen = seen
            return None
        text = data[:sound].decode(errors="replace")
        pairs = parse(text, path, place.line)
        place.offset += sound
        place.line += text.count("\n")
        return pairs


def _instant(pair: Pair) -> Decimal:
    return qa_ids.instant(pair.id)


def _signature(path: str) -> Signature | None:
    try:
        return confined.signature(os.stat(path))  # noqa: PTH116 (measured: half the cost)
    except FileNotFoundError:
        return None
