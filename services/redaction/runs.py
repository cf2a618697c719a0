"""Matches long repetitions of alternatives piece by piece.

A pattern that repeats alternatives keeps a state for each piece that it has matched, some hundred bytes for a
character, also where nothing can be given back. So it repeats them a bounded number of times, and is asked again from
where it ended.
"""

from __future__ import annotations

import re

PIECES = 500
"""How often the pattern of a run repeats its alternatives."""


def run_of(pieces: str) -> re.Pattern[str]:
    """Compile a pattern that matches at most `PIECES` repetitions of `pieces`, without backtracking; for `end_of_run`."""
    return re.compile(rf"(?>(?:{pieces}){{0,{PIECES}}})")


def end_of_run(run: re.Pattern[str], text: str, at: int) -> int:
    """Return where the repetition that begins at `at` ends; `at` itself if there is none."""
    while (found := run.match(text, at)) and found.end() > at:
        at = found.end()
    return at
