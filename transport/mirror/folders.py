"""List the files of a folder that belong in the log."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterator
from pathlib import Path

from services.storage import files

OWN_ENDINGS = (".sqlite", ".sqlite-wal", ".sqlite-shm", ".sqlite-journal")
"""Of files that each process makes for itself: databases, built from the others."""

log = logging.getLogger(__name__)


def files_below(root: Path, subfolders: Collection[str]) -> Iterator[str]:
    """The paths of files, relative to `root`, in order. Not those that lead out of it, nor databases. Blocking."""
    home = os.path.realpath(root)
    for name in sorted(subfolders):
        top = root / name
        found = [top] if top.is_file() else _walked(top)
        for path in found:
            if path.name.endswith(OWN_ENDINGS) or path.name.startswith(files.LEFTOVER_PREFIX) or not path.is_file():
                continue
            if not os.path.realpath(path).startswith(f"{home}{os.sep}"):
                log.warning("%s: left out, it leads out of %s", path, root)
                continue
            yield path.relative_to(root).as_posix()


def _walked(top: Path) -> Iterator[Path]:
    been: set[str] = set()
    for folder, folders, names in os.walk(top, followlinks=True):
        been.add(os.path.realpath(folder))
        # A link to a folder above it has no end.
        folders[:] = sorted(each for each in folders if os.path.realpath(Path(folder, each)) not in been)
        yield from (Path(folder, name) for name in sorted(names))


def is_in(path: str, subfolders: Collection[str]) -> bool:
    return any(each in (".", path) or path.startswith(f"{each}/") for each in subfolders)
