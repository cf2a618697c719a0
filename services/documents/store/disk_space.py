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

PEOPLE = 20
"""So many people can take all of the disk that there is, none of them more than such a part: 256 MiB of 5 GiB, which a
thread full of logs takes.
"""

_SIZES = "SELECT uploader_id, sum(size) FROM documents WHERE state IN ('lexical', 'ready') GROUP BY uploader_id"


class DiskFull(StoreUnavailable):
    """The files and runbooks of all people take what they may take."""


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """Bounds what the files in some folders take of the disk. The size of a collection counts for those who brought its
    documents, by the sizes of these.
    """

    folders: Sequence[Path]
    most_bytes: int
    _parts: dict[Path, tuple[tuple[float, ...], dict[int | None, float]]] = field(
        default_factory=dict[Path, tuple[tuple[float, ...], dict[int | None, float]]], init=False
    )
    """By collection: its sizes and times when it was read, and the part of each uploader."""

    def check_room(self, origin: Origin) -> None:
        """Look whether another document is taken in. Blocking.

        Raises DiskFull: the files take what all may take. Raises FileRefused: those of its uploader take one person's
        part.
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
        taken, most = 0.0, self.most_bytes // PEOPLE
        for gone in [path for path in self._parts if path not in found]:
            self._parts.pop(gone, None)
        for path, state in found.items():
            if path.suffix == SUFFIX:
                log = found.get(path.with_name(f"{path.name}-wal"))
                parts = self._parts_of(path, (*state, *(log or (0, 0.0))), has_log=log is not None)
                taken += parts.get(origin.uploader_id, 0.0)
        if taken >= most:
            name = display_name(origin.filename)
            raise FileRefused(
                "your_part_is_full", "delete_one", name=name, size=format_size(int(taken)), most=format_size(most)
            )

    def _parts_of(self, path: Path, state: tuple[float, ...], *, has_log: bool) -> dict[int | None, float]:
        known = self._parts.get(path)
        if known is not None and known[0] == state:
            return known[1]
        try:
            with contextlib.closing(open_to_read(path, alone=not has_log)) as connection:
                sizes: dict[int | None, int] = dict(connection.execute(_SIZES).fetchall())
        except sqlite3.Error:  # it is being made, or deleted
            return {}
        per_byte = (state[0] + state[2]) / max(1, sum(sizes.values()))
        parts = {uploader: size * per_byte for uploader, size in sizes.items()}
        self._parts[path] = state, parts
        return parts
