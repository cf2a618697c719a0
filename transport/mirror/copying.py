"""Restore a folder from the log."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.errors import ObjectNotFoundError

from services.storage import files
from transport.fence import FencedLog, read_all
from transport.mirror import entries
from transport.mirror.entries import Entry
from transport.mirror.folders import files_below
from transport.mirror.patience import patiently

RESTORE_TRIES = 8


class ScopeContents:
    """The files of a scope as the log has them: collected entry by entry, then written to a folder where it differs."""

    def __init__(self) -> None:
        self._files: dict[str, list[Entry]] = {}

    def add(self, message: Msg) -> None:
        entry = entries.read(message)
        if entry is None:
            return
        before = self._files.pop(entry.change.path, [])  # the order is that of the last changes
        if entry.change.kind in ("replace", "remove"):
            before = []
        if entry.change.kind != "remove":
            before.append(entry)
            self._files[entry.change.path] = before

    def paths(self) -> Sequence[str]:
        return tuple(self._files)

    async def content(self, streams: JetStreamContext, path: str) -> bytes:
        """Raises ObjectNotFoundError: the file has been replaced meanwhile."""
        content = bytearray()
        for entry in self._files[path]:
            (await entry.whole(streams)).apply(content)
        return bytes(content)

    async def settle(self, streams: JetStreamContext, root: Path, subfolders: Collection[str]) -> list[str]:
        """Make a folder so. Files of `subfolders` that the log does not have are deleted ("." is all of the folder);
        gives the paths of those that were not so.

        Raises:
            ObjectNotFoundError: a file has been replaced meanwhile.
            OSError: the disk.
        """
        changed: list[str] = []
        for path in self._files:
            content = await self.content(streams, path)
            if await asyncio.to_thread(make, root, path, content):
                changed.append(path)
        changed += await asyncio.to_thread(_clear_others, root, subfolders, self._files.keys())
        return changed


async def restore(scope: FencedLog, root: Path, subfolders: Collection[str] = ()) -> list[str]:
    """Make a folder what the log says, as `ScopeContents.settle`; on the loop of the connection.

    Raises:
        OSError: the disk, or NATS does not answer.
    """
    for _ in range(RESTORE_TRIES):
        contents = await patiently(lambda: _contents(scope))
        try:
            return await patiently(lambda contents=contents: contents.settle(scope.streams, root, subfolders))
        except ObjectNotFoundError:  # somebody writes it meanwhile
            continue
    raise OSError(errno.EIO, f"the files of {scope.scope} in NATS change faster than they can be read", str(root))


async def _contents(scope: FencedLog) -> ScopeContents:
    contents = ScopeContents()
    async for message in scope.entries(branch=f"{entries.FILES}.>"):
        contents.add(message)
    return contents


async def read_in_all_scopes(streams: JetStreamContext, path: str) -> Mapping[str, bytes]:
    """The content of one path in every scope that has it, by scope.

    Raises:
        OSError: it is replaced faster than it can be read.
        nats.errors.Error, TimeoutError, APIError: NATS does not answer.
    """
    for _ in range(RESTORE_TRIES):
        found: dict[str, ScopeContents] = {}
        async for message in read_all(streams, f"log.*.{entries.FILES}.{entries.token(path)}"):
            found.setdefault(message.subject.split(".")[1], ScopeContents()).add(message)
        try:
            there = {scope: contents for scope, contents in found.items() if path in contents.paths()}
            return {scope: await contents.content(streams, path) for scope, contents in there.items()}
        except ObjectNotFoundError:  # somebody writes it meanwhile
            continue
    raise OSError(errno.EIO, "it changes faster than it can be read", path)


def make(root: Path, path: str, content: bytes) -> bool:
    """Give a file this content, atomically; tells whether it had another. Blocking. Raises OSError."""
    file = root / path
    try:
        if file.read_bytes() == content:
            return False
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        _clear_way(root, file)
    files.renew(file, content, flush=False)
    return True


def _clear_way(root: Path, file: Path) -> None:
    """What was a folder is a file now, or the other way round."""
    if file.is_dir():
        files.remove_folder(file)
    for folder in file.parents:
        if folder == root:
            break
        if folder.is_file():
            files.remove(folder)


def _clear_others(root: Path, subfolders: Collection[str], wanted: Collection[str]) -> list[str]:
    others = [path for path in files_below(root, subfolders) if path not in wanted]
    for path in others:
        files.remove(root / path)
    return others
