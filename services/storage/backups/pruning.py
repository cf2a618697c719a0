"""Deletes old backups: those that lie beside a new one and whose names differ from its name in digits only."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from services.storage import files
from services.storage.backups.manifest import BadBackup
from services.storage.backups.restoring import read_manifest

_DIGITS = re.compile(r"[0-9]+")


@dataclass(frozen=True, slots=True)
class Pruned:
    """The result of a pruning: names of deleted backups, and of files that look like backups and are none (each with
    the reason in brackets), which stay.
    """

    deleted: tuple[str, ...]
    left: tuple[str, ...]


def series_of(name: str) -> str | None:
    """Return the name with each number replaced, which all backups of a series share. None: it holds no number."""
    series = _DIGITS.sub("0", name)
    return series if _DIGITS.search(name) else None


def prune(newest: Path, keep: int) -> Pruned:
    """Delete the oldest backups of the series of `newest` beyond `keep`, by the times in them; `newest` always stays.

    Each is deleted whole, by one step, after its manifest was read. Links, folders and what is no whole backup stay.

    Raises:
        OSError: a file cannot be read or deleted; the others that were not yet deleted stay.
    """
    newest = Path(os.path.realpath(newest))
    others: list[tuple[str, Path]] = []
    left: list[str] = []
    for path in sorted(newest.parent.iterdir()):
        same_series = path.name != newest.name and series_of(path.name) == series_of(newest.name) is not None
        if not same_series or path.is_symlink() or not path.is_file():
            continue
        try:
            others.append((read_manifest(path).made_at, path))
        except BadBackup as bad:
            left.append(f"{path.name} ({bad})")
    others.sort(reverse=True)
    old = [path for _, path in others[max(keep - 1, 0) :]]
    for path in reversed(old):
        path.unlink(missing_ok=True)
    if old:
        files.sync_folder(newest.parent)
    return Pruned(tuple(path.name for path in reversed(old)), tuple(left))
