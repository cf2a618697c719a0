"""Repairs a truncated last record: what a crash left at the end of a file is moved aside, so that the next append
begins after something complete.

Blocking. All raise OSError, as the system reported it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

from services.storage import files

log = logging.getLogger(__name__)

TAIL_BYTES = 1 << 16
"""Read from the end of a file at first; a last record that is longer costs further, longer reads."""


def cut_off(path: Path, sound_length: Callable[[bytes], int], what: str) -> None:
    """Move a truncated last record to `<file>.torn`, and log it; `what` names the record, such as `line`.

    `sound_length` tells how many of the given bytes, the end of the file, are whole. A missing file is sound.
    """
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return
    length = TAIL_BYTES
    sound = sound_length(data := tail(path, length))
    while not sound and length < size:
        length *= 2
        sound = sound_length(data := tail(path, length))
    truncated = data[sound:]
    if not truncated:
        return
    aside = path.with_name(f"{path.name}.torn")
    # First there, then away from here: a crash between the two leaves it twice, never lost.
    files.append(aside, truncated + b"\n")
    files.truncate(path, size - len(truncated))
    size = len(truncated)
    log.warning("%s: a truncated last %s (%d bytes, left by a crash) was moved to %s", path, what, size, aside.name)


def tail(path: Path, length: int) -> bytes:
    """Return the last `length` bytes of a file."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - length))
        return file.read()
