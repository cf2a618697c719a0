"""Join the state of all partitions into one folder: the inverse of `splitting`. Blocking."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

from services.conversations import Mark, read_marks, render_marks
from services.llm import read_token_days, render_token_days, summed_token_days
from services.storage import DataFolder, files
from transport.mirror.folders import files_below
from transport.moving.splitting import SHARED, STATE, lines_of


def merge(partitions: Sequence[Path], into: Path) -> Collection[str]:
    """Write the state below `into`, of folders with one part of it each. Gives the paths of the files.

    Raises:
        OSError: a file cannot be read or written.
    """
    holders: dict[str, list[Path]] = defaultdict(list)
    for root in partitions:
        for path in files_below(root, STATE):
            if path not in SHARED:
                holders[path].append(root / path)
    for path, parts in holders.items():
        files.renew(into / path, _merged(DataFolder(into), into / path, parts), flush=False)
    return holders.keys()


def _merged(folder: DataFolder, path: Path, parts: Sequence[Path]) -> bytes:
    if path in (folder.posts, folder.feedback) or path.parent == folder.outcomes:
        return _by_time(parts)
    if path == folder.seen:
        return render_marks(_newest(map(read_marks, parts)))
    if path == folder.token_days:
        return render_token_days(summed_token_days(map(read_token_days, parts)))
    return parts[0].read_bytes()


def _by_time(parts: Iterable[Path]) -> bytes:
    """Lines of equal times stay together as they were; one that several partitions have is there once."""
    lines = {line: _time_of(line) for part in parts for line in lines_of(part.read_bytes())}
    return b"".join(sorted(lines, key=lines.__getitem__))


def _time_of(line: bytes) -> tuple[float, str]:
    """Posts tell seconds, the others a time as text. What is damaged comes first."""
    try:
        at: object = json.loads(line)["at"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return 0.0, ""
    return (float(at), "") if isinstance(at, int | float) else (0.0, str(at))


def _newest(parts: Iterable[Mapping[int, Mark]]) -> Mapping[int, Mark]:
    """Of each place what is known best; of a server, below minus its id, what is true for all of its places."""
    newest: dict[int, Mark] = {}
    for marks in parts:
        for place_id, mark in marks.items():
            better: Callable[..., Mark] = max if place_id > 0 else min
            newest[place_id] = better(newest.get(place_id, mark), mark, key=_reach)
    return newest


def _reach(mark: Mark) -> tuple[int, int]:
    return mark.below, len(mark.done)
