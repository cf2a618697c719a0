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

MAX_LISTED_FILES = 5
"""The most files of one folder that are reported one by one; of more, one line reports all."""

_MAX_LINE_BYTES = 1 << 20
_DATABASE = re.compile(r".*\.sqlite(-(wal|shm|journal))?")


class FileKind(StrEnum):
    LLM_CALLS = "llm calls"
    RECORDING = "recording"
    DATABASE = "database"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class ConfiguredFiles:
    """Files that belong to the program by its configuration, beside those of the data folder's layout.

    Attributes:
        ours: files and folders of this program, and of the operator's documents.
        documents: those of `ours` that the operator wrote or chose: they are not searched for a person's words.
        log: the log file; the names of rotated ones begin with its name.
        is_running: a bot writes to the folder, so that files outside of the layout are only reported.
    """

    ours: Collection[Path] = ()
    documents: Collection[Path] = ()
    log: Path | None = None
    is_running: bool = False


def unknown_files(folder: DataFolder, ours: Collection[Path]) -> list[Path]:
    """Return the files that are not part of the layout, in order of their paths."""
    folders = [folder, *(DataFolder(folder.guilds / str(guild_id)) for guild_id in folder.guild_ids())]
    layout = (path for each in folders for path in _layout_of(each))
    known = {path.absolute() for path in (*layout, *ours)}
    paths = sorted(path for path in folder.root.rglob("*") if path.is_symlink() or path.is_file())
    return [path for path in paths if not known & {path.absolute(), *path.absolute().parents}]


def kind_of(path: Path) -> FileKind:
    """Determine the kind of a file by its name, or its first line that is a JSON object. Raises OSError."""
    if _DATABASE.fullmatch(path.name):
        return FileKind.DATABASE
    with path.open("rb") as file:
        for _ in range(10):
            line = file.readline(_MAX_LINE_BYTES)
            try:
                first: object = json.loads(line)
            except (ValueError, RecursionError):
                if not line:
                    break
                continue
            keys = set(cast("dict[str, object]", first)) if isinstance(first, dict) else set[str]()
            if {"at", "t", "d"} <= keys:
                return FileKind.RECORDING
            return FileKind.LLM_CALLS if {"step", "hash"} <= keys else FileKind.OTHER
    return FileKind.OTHER


def logs_among(paths: Iterable[Path], log: Path | None) -> list[Path]:
    """Return the log file, and the rotated ones beside it."""
    if log is None:
        return []
    return [
        path for path in paths if path.parent.absolute() == log.parent.absolute() and path.name.startswith(log.name)
    ]


def report_lines(paths: Iterable[Path], why: str) -> Iterator[str]:
    """Yield one line for each file; for a folder with many, one line for all of them."""
    by_folder: defaultdict[Path, list[Path]] = defaultdict(list)
    for path in paths:
        by_folder[path.parent].append(path)
    for folder, inside in by_folder.items():
        if len(inside) > MAX_LISTED_FILES:
            yield f"{folder}: {number_of(len(inside), 'file')}: {why}"
        else:
            yield from (f"{path}: {why}" for path in inside)


def _layout_of(folder: DataFolder) -> Iterator[Path]:
    """Yield the files of the layout, except those whose paths are configured (sources, archive, topics) and databases,
    as the configuration tells which are in use.
    """
    yield from (
        folder.lock_file,
        folder.watermarks,
        folder.usage,
        folder.token_days,
        folder.last_report,
        folder.alerts,
        folder.dismissed,
        folder.audit,
        folder.posts,
        folder.feedback,
        folder.feedback_key,
        folder.opt_outs,
        folder.shown_runbooks,
        folder.tombstones,
        folder.decisions,
        folder.places,
        folder.pending,
        # Files with other names in these folders are reported by the functions that read the folders.
        *folder.outbox.glob("*.json"),
        *folder.drafts.glob("*.json"),
        *folder.outcomes.glob("????-??-??.jsonl"),
    )
