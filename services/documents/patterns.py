"""The shapes of log lines: what lines have in common once numbers, ids and times are masked (DOCUMENT_QA 4.4)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from services.documents.log_lines import says_what_broke
from services.documents.severities import ALARMING
from services.documents.spans import log_chunk
from services.documents.units import Chunk, ChunkType, LineRecord

MOST_PATTERNS = 2000
MOST_LISTED = 1000
"""So many lines of a pattern are listed."""
_MASKED_CHARS = 400
"""What comes later in a line does not make it another pattern."""

_VARIABLE = re.compile(
    r"-?(?:[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    r"|0[xX][0-9a-fA-F]+"
    r"|\b(?:[a-f]+[0-9]|[0-9]+[a-f])[0-9a-f]*\b"
    r"|[0-9]+(?:[.,:-]?[0-9]+)*)"
)


def mask(line: str) -> str:
    """Found child 6725 in slot 10 → Found child # in slot #."""
    return _VARIABLE.sub("#", line[:_MASKED_CHARS])


def patterns(
    lines: Sequence[str], records: Sequence[LineRecord], in_trace: Sequence[bool], *, first_index: int
) -> list[Chunk]:
    """One chunk for each shape, at most 2,000: alarming ones first, of equals the rare ones."""
    shapes: dict[str, list[int]] = {}
    for number, text in enumerate(lines, start=1):
        if not text.strip() or (in_trace[number - 1] and not says_what_broke(text)):
            continue
        shapes.setdefault(mask(text), []).append(number)
    ranked = sorted(shapes.values(), key=lambda of: (records[of[0] - 1].severity not in ALARMING, len(of), of[0]))
    return [
        log_chunk(
            index,
            ChunkType.PATTERN,
            lines[of[0] - 1],
            of[0],
            of[0],
            [records[number - 1] for number in of],
            of[:MOST_LISTED],
            len(of),
        )
        for index, of in enumerate(ranked[:MOST_PATTERNS], start=first_index)
    ]
