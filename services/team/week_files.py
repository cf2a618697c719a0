"""The files of the raw archive: one for each ISO week (SPEC 6, "Raw archive"). Blocking; to be run off the loop.

Raises everywhere: OSError, as the system reported it.
"""

from __future__ import annotations

import re
from pathlib import Path

from services.storage import tail_repair
from services.team.archive import MARKER, Pair, parse, sound_length

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
    length = tail_repair.TAIL_BYTES
    while True:
        data = tail_repair.tail(path, length)
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
    tail_repair.cut_off(path, sound_length, "block")
