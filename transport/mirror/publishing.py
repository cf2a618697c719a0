"""Publish a folder that is written outside this program, such as the operator's documents, to the log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from services.storage import FileChange
from transport.fence import FencedLog
from transport.mirror import entries
from transport.mirror.folders import files_below, is_in
from transport.mirror.writing import Writer


@dataclass(slots=True)
class Published:
    """How many files were written to the log or removed from it; 0 if the log was up to date."""

    published: int = 0
    removed: int = 0


class FolderPublisher:
    """Brings the log to what folders hold, again and again: what did not change since is not read again."""

    def __init__(
        self,
        scope: FencedLog,
        root: Path,
        subfolders: Collection[str],
        last: Collection[str] = (),
        elsewhere: Mapping[str, Path] = MappingProxyType({}),
    ) -> None:
        """`subfolders`: folders or files below `root`; `last`: files that name others, and come after them;
        `elsewhere`: where on the disk some of the subfolders are, instead of below `root`.
        """
        self._writer = Writer(scope)
        self._root, self._subfolders, self._last, self._elsewhere = root, subfolders, last, elsewhere
        self._stamps: dict[str, tuple[int, int]] = {}

    async def publish(self, on_file: Callable[[str], object] = lambda _: None) -> Published:
        """On the loop of the connection; nothing else may write the scope.

        Raises:
            Fenced, OSError: as `FencedLog.append`; or a file cannot be read.
        """
        known = await self._writer.recorded_files()
        found, done = await self.found(), Published()
        for path in sorted(found, key=lambda path: (path in self._last, path)):
            stamp = await asyncio.to_thread(_stamp, found[path])
            if self._stamps.get(path) == stamp and path in known:
                continue
            data = await asyncio.to_thread(found[path].read_bytes)
            digest = entries.digest(data)
            if path not in known or known[path].digest != digest:
                await self._writer.write(FileChange("replace", path, data), digest)
                done.told += 1
                on_file(path)
            self._stamps[path] = stamp
        for path in [path for path in known if is_in(path, self._subfolders) and path not in found]:
            await self._writer.write(FileChange("remove", path))
            self._stamps.pop(path, None)
            done.removed += 1
        return done

    async def found(self) -> dict[str, Path]:
        """The files on the disk, by their paths in the log."""
        return await asyncio.to_thread(self._found)

    def _found(self) -> dict[str, Path]:
        found = {
            path: self._root / path
            for path in files_below(self._root, self._subfolders)
            if not is_in(path, self._elsewhere)
        }
        for prefix, place in self._elsewhere.items():
            if place.is_file():
                found[prefix] = place
            elif place.is_dir():
                found |= {f"{prefix}/{path}": place / path for path in files_below(place, (".",))}
        return found


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size


async def publish(
    scope: FencedLog,
    root: Path,
    subfolders: Collection[str],
    last: Collection[str] = (),
    on_file: Callable[[str], object] = lambda _: None,
) -> Published:
    """Once: as `FolderPublisher.publish`."""
    return await FolderPublisher(scope, root, subfolders, last).publish(on_file)
