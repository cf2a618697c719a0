"""Changes to files of one JSON object a line, whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from services.storage import files

Record = dict[str, Any]


@dataclass(slots=True)
class LineEdits:
    changed: int = 0
    dropped: int = 0
    damaged: int = 0
    """Lines that are no JSON object: they stay as they are."""


def edit(path: Path, change: Callable[[Record], Record | None]) -> LineEdits:
    """Put each object through `change`: None drops its line. Lines that come back equal stay byte for byte.

    A file that does not exist has no lines. Atomic; a file in which nothing changed is not written. Appends by this
    process or another wait meanwhile.

    Raises:
        OSError: the file cannot be read or written.
    """
    with files.alone(path):
        return _edit(path, change)


def _edit(path: Path, change: Callable[[Record], Record | None]) -> LineEdits:
    edited = LineEdits()
    kept: list[bytes] = []
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        return edited
    for line in lines:
        record = _record(line)
        if record is None:
            edited.damaged += bool(line.strip())
            kept.append(line)
            continue
        after = change(dict(record))
        if after is None:
            edited.dropped += 1
        elif after != record:
            edited.changed += 1
            kept.append(json.dumps(after).encode() + b"\n")
        else:
            kept.append(line)
    if edited.changed or edited.dropped:
        files.replace(path, b"".join(kept))
    return edited


def _record(line: bytes) -> Record | None:
    try:
        record: object = json.loads(line)
    except ValueError:
        return None
    return cast("Record", record) if isinstance(record, dict) else None
