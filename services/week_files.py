"""The files of the raw archive: one for each ISO week (SPEC 6, "Raw archive"). Blocking; to be run off the loop.

Raises everywhere: OSError, as the system reported it.
"""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path

from services import files
from services.archive import MARKER, Pair, parse, sound_length

log = logging.getLogger(__name__)

TAIL_BYTES = 1 << 16
"""How much is read from the end of a file at first; a last block that is longer costs further, longer looks."""

_NAME = re.compile(r"[0-9]{4}-W[0-9]{2}\.txt")


class ArchiveUnwritable(Exception):
    """A capture was not stored: one readable line that names the file and the remedy."""


def week_files(folder: Path) -> list[Path]:
    """The files of an archive, oldest week first. A folder that is not there yet holds none."""
    try:
        return sorted(path for path in folder.iterdir() if _NAME.fullmatch(path.name))
    except FileNotFoundError:
        return []


def all_pairs(folder: Path) -> list[Pair]:
    """What an archive holds, oldest first. Malformed blocks are reported and left out."""
    return recent_pairs(folder, len(week_files(folder)))


def recent_pairs(folder: Path, weeks: int) -> list[Pair]:
    """What the newest files hold, oldest first. Malformed blocks are reported and left out."""
    return [
        pair
        for path in week_files(folder)[-weeks:]
        for pair in parse(path.read_bytes().decode(errors="replace"), str(path))
    ]


def last_timestamp(folder: Path) -> str | None:
    """That of the newest pair, read from the end of the newest file that holds one; None in an empty archive."""
    for path in reversed(week_files(folder)):
        pair = last_pair(path)
        if pair is not None:
            return pair.timestamp
    return None


def last_pair(path: Path) -> Pair | None:
    """The last sound block of a file."""
    size = path.stat().st_size
    length = TAIL_BYTES
    while True:
        data = _tail(path, length)
        text = data[: sound_length(data)].decode(errors="replace").replace("\r\n", "\n")
        # A marker opens the file or follows the end of a block; what lies before the first may be the rest of one.
        begun = f"\n{text}" if length >= size else text
        while (at := begun.rfind(f"\n{MARKER}\n")) >= 0:
            pairs = parse(begun[at + 1 :], str(path))
            if pairs:
                return pairs[-1]
            begun = begun[: at + 1]
        if length >= size:
            return None
        length *= 2


def cut_off_torn(path: Path) -> None:
    """Move the end of a file that is no whole block, the trace of a crash, to `<file>.torn`, and report it."""
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return
    length = TAIL_BYTES
    sound = sound_length(data := _tail(path, length))
    while not sound and length < size:
        length *= 2
        sound = sound_length(data := _tail(path, length))
    torn = data[sound:]
    if not torn:
        return
    aside = path.with_name(f"{path.name}.torn")
    # First there, then away from here: a crash between the two leaves it twice, never lost.
    files.append(aside, torn + b"\n")
    files.truncate(path, size - len(torn))
    log.warning("%s: a torn last block (%d bytes, the trace of a crash) was moved to %s", path, len(torn), aside.name)


def _tail(path: Path, length: int) -> bytes:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - length))
        return file.read()
