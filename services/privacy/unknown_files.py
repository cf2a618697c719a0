"""Files in a data folder that are not part of its layout: recordings, logs, backups, and whatever else was put
there.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import cast

from services.storage import DataFolder
from services.telemetry import number_of

NAMED = 5
"""Files of one folder that are named one by one; of more, the folder is named."""

_LONGEST_LINE = 1 << 20
_DATABASE = re.compile(r".*\.sqlite(-(wal|shm|journal))?")


class Kind(StrEnum):
    EXCHANGES = "exchanges"
    RECORDING = "recording"
    DATABASE = "database"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class FolderContents:
    """What the configuration says about files in the data folder.

    Attributes:
        ours: further files and folders of this program, or of the operator's documents.
        documents: those of `ours` in which nobody's words are looked for: what the operator wrote or chose.
        log: the log file, which has others beside it that begin with its name.
        running: a bot writes to the folder, so that what is no part of its layout is named only.
    """

    ours: Collection[Path] = ()
    documents: Collection[Path] = ()
    log: Path | None = None
    running: bool = False


def unknown_files(folder: DataFolder, ours: Collection[Path]) -> list[Path]:
    """Return the files that are not part of the layout, in order of their paths."""
    # Those that are dealt with as servers' folders, by the same rule.
    folders = [folder, *(DataFolder(folder.guilds / str(guild_id)) for guild_id in folder.guild_ids())]
    mine = (path for each in folders for path in _ours(each))
    known = {path.absolute() for path in (*mine, *ours)}
    return [path for path in sorted(_files(folder.root)) if not known & {path.absolute(), *path.absolute().parents}]


def kind_of(path: Path) -> Kind:
    """Determine the kind of a file by its name, or its first line that is a JSON object. Raises OSError."""
    if _DATABASE.fullmatch(path.name):
        return Kind.DATABASE
    with path.open("rb") as file:
        for _ in range(10):
            line = file.readline(_LONGEST_LINE)
            try:
                first: object = json.loads(line)
            except (ValueError, RecursionError):
                if not line:
                    break
                continue
            keys = set(cast("dict[str, object]", first)) if isinstance(first, dict) else set[str]()
            if {"at", "t", "d"} <= keys:
                return Kind.RECORDING
            return Kind.EXCHANGES if {"step", "hash"} <= keys else Kind.OTHER
    return Kind.OTHER


def logs_among(paths: Iterable[Path], log: Path | None) -> list[Path]:
    """Return the log file, and the rotated ones beside it."""
    if log is None:
        return []
    return [
        path for path in paths if path.parent.absolute() == log.parent.absolute() and path.name.startswith(log.name)
    ]


def named(paths: Iterable[Path], why: str) -> Iterator[str]:
    """Yield one line for each file; for a folder with many, one line for all of them."""
    by_folder: defaultdict[Path, list[Path]] = defaultdict(list)
    for path in paths:
        by_folder[path.parent].append(path)
    for folder, some in by_folder.items():
        if len(some) > NAMED:
            yield f"{folder}: {number_of(len(some), 'file')}: {why}"
        else:
            yield from (f"{path}: {why}" for path in some)


def _files(root: Path) -> Iterator[Path]:
    return (path for path in root.rglob("*") if path.is_symlink() or path.is_file())


def _ours(folder: DataFolder) -> Iterator[Path]:
    """The files of the layout, but for those that the configuration may have anywhere (sources, archive, topics), and
    for databases, of which it says which are in use.
    """
    yield from (
        folder.lock_file,
        folder.seen,
        folder.usage,
        folder.token_days,
        folder.last_report,
        folder.posts,
        folder.feedback,
        folder.feedback_key,
    )
    yield from (folder.opt_outs, folder.shown_runbooks, folder.tombstones)
    # What is in there without being named so is reported by who looks into it.
    yield from (folder.decisions, folder.places, folder.pending, *folder.outbox.glob("*.json"))
    yield from folder.outcomes.glob("????-??-??.jsonl")
