"""A folder that others write, such as the operator's documents, brought to the log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from services.storage import Change
from transport.fence import FencedLog
from transport.mirror import entries
from transport.mirror.folders import files_below, is_in
from transport.mirror.writing import Writer


@dataclass(slots=True)
class Published:
    """How many files were told of; `told` and `removed` are 0 where the log has the same already."""

    told: int = 0
    removed: int = 0


async def publish(
    scope: FencedLog,
    root: Path,
    subfolders: Collection[str],
    last: Collection[str] = (),
    on_file: Callable[[str], object] = lambda _: None,
) -> Published:
    """Bring the log to what these folders (or files) below `root` hold: what is new or differs first, the files of
    `last` after the others, then what is gone. On the loop of the connection; nothing else may write the scope.

    Raises:
        Fenced, OSError: as `FencedLog.append`; or a file cannot be read.
    """
    writer = Writer(scope)
    known = await writer.recorded()
    found = await asyncio.to_thread(lambda: list(files_below(root, subfolders)))
    done = Published()
    for path in sorted(found, key=lambda path: (path in last, path)):
        data = await asyncio.to_thread((root / path).read_bytes)
        digest = entries.digest(data)
        if path not in known or known[path].digest != digest:
            await writer.write(Change("replace", path, data), digest)
            done.told += 1
            on_file(path)
    for path in [path for path in known if is_in(path, subfolders) and path not in found]:
        await writer.write(Change("remove", path))
        done.removed += 1
    return done
