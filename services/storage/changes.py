"""Changes to files, and the journal that records each before it is made on the disk, so that the folder can be rebuilt
from the journal.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

Kind = Literal["replace", "append", "truncate", "remove"]


@dataclass(frozen=True, slots=True)
class FileChange:
    """A change to one file.

    Attributes:
        path: relative to the folder, with `/`.
        data: the whole content after `replace`; what `append` adds.
        length: of the file before `append`; of what `truncate` leaves. Whatever lies behind it goes with either.
    """

    kind: Kind
    path: str
    data: bytes = b""
    length: int = 0

    def apply(self, content: bytearray) -> None:
        """Apply the change to the content of the file; `remove` leaves nothing.

        Raises:
            ValueError: it is not the content that was changed.
        """
        if len(content) < self.length:
            raise ValueError(f"{self.path}: {len(content)} bytes, where {self.length} were changed")
        del content[self.length :]
        content += self.data


class Journal(Protocol):
    """A durable log of the changes to a folder. What it has accepted counts, whether or not the disk has it."""

    def commit(self, change: FileChange) -> None:
        """Record a change durably, before it is made on the disk. Called from any thread, one change after another.

        Raises:
            Exception: the change does not happen. An OSError is reported like one of the disk.
        """
        ...


@dataclass(frozen=True, slots=True)
class _Journaled:
    root: str
    journal: Journal
    turn: threading.Lock


_folders: tuple[_Journaled, ...] = ()


@contextlib.contextmanager
def journaled(root: Path, journal: Journal) -> Generator[None]:
    """Hand each change below `root` to `journal` first, for as long as the block runs.

    What `services.storage.files` writes there is not flushed to the disk: after a crash the folder is made again from
    the journal.
    """
    global _folders  # noqa: PLW0603 (writers know their paths only)
    folder = _Journaled(os.path.abspath(root), journal, threading.Lock())  # noqa: PTH100 (`absolute` leaves `..` in)
    _folders = (*_folders, folder)
    try:
        yield
    finally:
        _folders = tuple(each for each in _folders if each is not folder)


@contextlib.contextmanager
def committed(kind: Kind, path: Path, data: bytes = b"", length: int = 0) -> Generator[bool]:
    """Make a change on the disk inside the block, after the journal has accepted it and in the journal's order. Yields
    whether there is a journal.
    """
    folder = None if not _folders else _of(path)
    if folder is None:
        yield False
        return
    found, name = folder
    with found.turn:
        found.journal.commit(FileChange(kind, name, data, length))
        yield True


def is_journaled(path: Path) -> bool:
    return bool(_folders) and _of(path) is not None


def _of(path: Path) -> tuple[_Journaled, str] | None:
    full = os.path.abspath(path)  # noqa: PTH100 (as above)
    for folder in _folders:
        if full.startswith(f"{folder.root}{os.sep}"):
            return folder, full[len(folder.root) + 1 :]
    return None
