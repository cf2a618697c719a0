"""Which shards of Discord's gateway a process takes: `--shards 0-15/64`."""

from __future__ import annotations

import argparse
import re

MOST_SHARDS = 100_000  # no bot has so many; a slip of the hand does

_WRITTEN = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?/([0-9]{1,9})", re.ASCII)


def shards_of(text: str) -> tuple[range, int]:
    """Parse a range of shards for argparse: `0-15/64` is shards 0 to 15 of 64, `3/64` is one shard."""
    found = _WRITTEN.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError("write the first and the last shard and how many there are: 0-15/64, or 3/64")
    first, last, count = int(found[1]), int(found[2] or found[1]), int(found[3])
    if not 0 < count <= MOST_SHARDS:
        raise argparse.ArgumentTypeError(f"there are 1 to {MOST_SHARDS:,} shards in all, not {count}: 0-15/64")
    if last < first:
        raise argparse.ArgumentTypeError(f"the first shard comes first: {last}-{first}/{count}")
    if last >= count:
        raise argparse.ArgumentTypeError(f"shards are counted from 0: the last of {count} is {count - 1}")
    return range(first, last + 1), count
