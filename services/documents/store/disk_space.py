"""Limits the disk space of the files of all threads and runbooks, and the share of one person."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from services.documents.limits import FileRefused, display_name, format_size
from services.documents.store.collection_files import SUFFIX, open_to_read
from services.documents.store.protocol import Origin, StoreUnavailable

PERSONAL_SHARE = 1 / 20
"""The most that the documents of one person may take of all disk space: 256 MiB of 5 GiB, as much as a thread full of
logs.
"""

_SIZES = "SELECT uploader_id, sum(size) FROM documents WHERE state IN ('lexical', 'ready') GROUP BY uploader_id"


class DiskFull(StoreUnavailable):
    """The files and runbooks of all people take what they may take."""


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """Bounds the disk space of collections, in all and for each person.

    A collection may hold documents of several people. The size of its file is divided among them in proportion to the
    sizes of their documents.

    Attributes:
        folders: those of the collections.
        most_bytes: the most that all files in them may take.
    """

    folders: Sequence[Path]
    most_bytes: int
    _shares: dict[Path, tuple[tuple[float, ...], dict[int | None, float]]] = field(
        default_factory=dict[Path, tuple[tuple[float, ...], dict[int | None, float]]], init=False
    )
    """By the path of a collection: its sizes and times when it was read, and the bytes that count for each uploader."""

    def check_room(self, origin: Origin) -> None:
        """Check that there is room for another document. `origin`: who brings it. Blocking.

        Raises:
            DiskFull: all files together take as much as they may.
            FileRefused: those of its uploader take as much as one person's may.
        """
        found: dict[Path, tuple[int, float]] = {}
        for path in (each for folder in self.folders for each in folder.rglob("*")):
            with contextlib.suppress(OSError):  # deleted this very moment
                stat = path.lstat()
                found[path] = stat.st_size, stat.st_mtime
        if sum(size for size, _ in found.values()) >= self.most_bytes:
            raise DiskFull("no more files and runbooks are taken in (documents.max_disk_bytes)")
        if origin.uploader_id is None:
            return
        taken, most = 0.0, int(self.most_bytes * PERSONAL_SHARE)
        for gone in [path for path in self._shares if path not in found]:
            self._shares.pop(gone, None)
        for path, state in found.items():
            if path.suffix == SUFFIX:
                log = found.get(path.with_name(f"{path.name}-wal"))
                shares = self._shares_of(path, (*state, *(log or (0, 0.0))), has_log=log is not None)
                taken += shares.get(origin.uploader_id, 0.0)
        if taken >= most:
            name = display_name(origin.filename)
            raise FileRefused(
                "your_part_is_full", "delete_one", name=name, size=format_size(int(taken)), most=format_size(most)
            )

    def _shares_of(self, path: Path, state: tuple[float, ...], *, has_log: bool) -> dict[int | None, float]:
        known = self._shares.get(path)
        if known is not None and known[0] == state:
            return known[1]
        try:
            with contextlib.closing(open_to_read(path, immutable=not has_log)) as connection:
                sizes: dict[int | None, int] = dict(connection.execute(_SIZES).fetchall())
        except sqlite3.Error:  # it is being made, or deleted
            return {}
        per_byte = (state[0] + state[2]) / max(1, sum(sizes.values()))
        shares = {uploader: size * per_byte for uploader, size in sizes.items()}
        self._shares[path] = state, shares
        return shares
