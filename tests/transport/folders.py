"""What the tests of folders in the log share."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from transport.connection import FileConnection
from transport.fenced_log import FencedLog
from transport.folder_log import restore


async def opened(file_connection: FileConnection, scope: str = "p03", owner: str = "a") -> FencedLog:
    log = FencedLog(file_connection.streams, scope)
    await file_connection.do(log.open(owner, 1.0))
    return log


def contents(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


async def copied(
    file_connection: FileConnection, log: FencedLog, root: Path, subfolders: Collection[str] = (".",)
) -> dict[str, bytes]:
    await file_connection.do(restore(log, root, subfolders))
    return contents(root)
