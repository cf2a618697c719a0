"""Lines in blocks of limited length, cut where the author left a blank line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def blocks(lines: Sequence[str], first: int, last: int, most: int) -> Iterator[tuple[int, int]]:
    """First and last lines of blocks of at most `most` lines; they and `first` and `last` count from 1.

    Cut before a line in column 0 that follows a blank one, else behind a blank line, else where it is full; never
    before half of it is full.
    """
    while last - first + 1 > most:
        cut = _cut(lines, first + most // 2, first + most)
        yield first, cut - 1
        first = cut
    if first <= last:
        yield first, last


def _cut(lines: Sequence[str], earliest: int, latest: int) -> int:
    """The line that begins the next block."""
    blank = 0
    for number in range(latest, earliest, -1):
        if not lines[number - 2].strip() and lines[number - 1].strip():
            if not lines[number - 1][:1].isspace():
                return number
            blank = blank or number
    return blank or latest
