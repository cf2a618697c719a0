"""What the tests of folders in the log share."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from transport.connection import Beside
from transport.fence import FencedLog
from transport.mirror import restore


async def opened(beside: Beside, scope: str = "p03", owner: str = "a") -> FencedLog:
    log = FencedLog(beside.streams, scope)
    await beside.do(log.open(owner, 1.0))
    return log


def contents(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


async def copied(beside: Beside, log: FencedLog, root: Path, subfolders: Collection[str] = (".",)) -> dict[str, bytes]:
    await beside.do(restore(log, root, subfolders))
    return contents(root)
