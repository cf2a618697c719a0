"""Selects the files of a backup, and their order."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from services.storage import arrival
from services.storage.backups import databases, manifest
from services.storage.files import LEFTOVER_PREFIX

_PASSED_OVER = {".lock", arrival.RESTORING, arrival.RESTORED, "lost+found"}
"""At the top of the folder: of no use in another one."""


@dataclass(frozen=True, slots=True)
class CopyOrder:
    """The order in which files are copied: the reverse of the order in which the program writes.

    It writes what counts, and after that what relies on it: an answer's record, then the mark that its question is
    done; a capture, then the decision about it, then the topic. Copied the other way round, whatever relies on
    something was copied before it. So the copy of that something is at least as new, and has it. Copied in the order
    of writing, a mark could be newer than the records, and vouch for a capture that the backup does not hold.

    So the copies, together, are what a crash between two writes could have left, and every start heals that.

    Attributes:
        first, last: files and folders; all that is not named comes between them.
        without: files and folders that are left out.
    """

    first: Sequence[Path] = ()
    last: Sequence[Path] = ()
    without: Sequence[Path] = ()


@dataclass(frozen=True, slots=True)
class SelectedFile:
    """A file to be copied, and its name in the backup."""

    path: Path
    name: str


@dataclass(slots=True)
class Selection:
    """Walks a folder in the order of the copy.

    Attributes:
        folders: those that hold nothing, by their names in the backup.
        left: lines for the operator about what is not copied, each with its reason.
    """

    root: Path
    order: CopyOrder
    folders: set[str] = field(default_factory=set[str], init=False)
    left: list[str] = field(default_factory=list[str], init=False)
    _done: set[Path] = field(default_factory=set[Path], init=False)

    def __iter__(self) -> Iterator[SelectedFile]:
        """Yield each file once, as it is when its turn comes. Raises OSError: a folder cannot be read."""
        held_back = set(self.order.last)
        self._done = {*self.order.without, *held_back}
        for place in self.order.first:
            yield from self._turn_of(place)
        yield from self._below(self.root)
        self._done -= held_back
        for place in self.order.last:
            yield from self._turn_of(place)

    def _turn_of(self, place: Path) -> Iterator[SelectedFile]:
        if place.is_relative_to(self.root) and place not in self._done:
            yield from self._found(place)
            self._done.add(place)

    def _below(self, folder: Path) -> Iterator[SelectedFile]:
        try:
            names = sorted(os.listdir(folder))  # noqa: PTH208 (names only)
        except FileNotFoundError:
            return  # it was there a moment ago
        if not names and folder != self.root:
            self.folders.add(folder.relative_to(self.root).as_posix())
        for name in names:
            path = folder / name
            passed_over = folder == self.root and name in _PASSED_OVER
            if path in self._done or passed_over or name.startswith(LEFTOVER_PREFIX):
                continue
            yield from self._found(path)

    def _found(self, path: Path) -> Iterator[SelectedFile]:
        name = path.relative_to(self.root).as_posix()
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            return
        if not manifest.is_sound(name):
            self.left.append(f"{name} (a name that not every system takes)")
            return
        if stat.S_ISLNK(mode):
            target = Path(os.path.realpath(path))
            if not (target.is_file() and target.is_relative_to(os.path.realpath(self.root))):
                self.left.append(f"{name} (a link to elsewhere)")
                return
        elif stat.S_ISDIR(mode):
            yield from self._below(path)
            return
        elif not stat.S_ISREG(mode):
            self.left.append(f"{name} (no ordinary file)")
            return
        if not databases.is_beside_one(path):
            yield SelectedFile(path, name)
