"""Cuts an answer into pieces that Discord accepts, code blocks intact.

Length is counted in UTF-16 code units. Discord's documents say "characters" and leave open which; no other way of
counting gives more, so that a piece is never too long.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from itertools import accumulate
from typing import NamedTuple

LIMIT = 2_000
"""Content of one message (Discord API reference, "Create Message")."""

FENCE = re.compile(r"[ \t]*(?P<mark>`{3,}|~{3,})(?P<info>.*)")
BLANK_LINES = re.compile(r"(?:[^\S\n]*\n)+")
GAP = re.compile(r"(?:[^\S\n]*\n)+|[^\S\n]+")
"""White space that falls away at a cut: line ends and blank lines, but not the indentation that follows them."""


class Rank(IntEnum):
    """Where to cut, best first. A code block is cut only when there is no line end outside of one."""

    PARAGRAPH = 0
    LINE = 1
    PARAGRAPH_OF_CODE = 2
    LINE_OF_CODE = 3
    SENTENCE = 4
    WORD = 5
    ANYWHERE = 6
    FENCE_LIKE = 7
    """Would make or break the look of a fence: only text that is nothing but fence marks comes to this."""


@dataclass(frozen=True, slots=True)
class Fence:
    opening: str
    """The whole line, to open it again."""
    mark: str

    @property
    def reopening_units(self) -> int:
        return units(self.opening) + 1

    @property
    def closing_units(self) -> int:
        return len(self.mark) + 1


class Cut(NamedTuple):
    end: int
    fence: Fence | None
    """The code block that is open there."""


class Piece(NamedTuple):
    reopened: Fence | None
    body: str
    closed: Fence | None


def units(text: str) -> int:
    """The length of `text` in UTF-16 code units."""
    return len(text) + (0 if text.isascii() else sum(character > "\uffff" for character in text))


def split(text: str, limit: int = LIMIT) -> list[str]:
    """`text` in pieces of at most `limit` (≥ 2) units, none blank; none at all when `text` is blank.

    Cut after a paragraph, else a line, a sentence, a word, else anywhere. A code block (``` or ~~~) that is cut is
    closed, and opened again in the next piece; one that the text leaves open is closed at the end. Put together
    without these added fences, the pieces are the text, except for white space at the cuts.
    """
    plain = text.rstrip()
    if plain and not plain[0].isspace() and "```" not in plain and "~~~" not in plain and units(plain) <= limit:
        return [plain]  # what most answers are
    return [_whole(piece) for piece in pieces(text, limit)]


def pieces(text: str, limit: int = LIMIT) -> Iterator[Piece]:
    """The pieces, with the fences that are added to each kept apart."""
    rest = text.rstrip()
    fence: Fence | None = None
    gap = BLANK_LINES.match(rest)
    while True:
        rest = rest[gap.end() :] if gap else rest
        if not rest:
            return
        if units(rest) - units(rest.lstrip()) > limit // 4:
            rest = rest.lstrip()  # an indentation that leaves no room for text
        cut = _cut(rest, fence, limit)
        yield Piece(fence, rest[: cut.end].rstrip(), cut.fence)
        rest, fence = rest[cut.end :], cut.fence
        gap = GAP.match(rest)


def _whole(piece: Piece) -> str:
    before = "" if piece.reopened is None else piece.reopened.opening + "\n"
    after = "" if piece.closed is None else "\n" + piece.closed.mark
    return before + piece.body + after


def _cut(rest: str, fence: Fence | None, limit: int) -> Cut:
    """The best place to end the piece that begins with `rest`, inside `fence`."""
    room = limit - (fence.reopening_units if fence else 0)
    window = rest[: room + 1]
    used = [0, *accumulate(2 if character > "\uffff" else 1 for character in window)]
    text_begins = len(rest) - len(rest.lstrip())
    best: dict[Rank, Cut] = {}

    def candidate(rank: Rank, end: int, state: Fence | None) -> bool:
        needed = used[end] + (state.closing_units if state else 0) if end < len(used) else limit + 1
        if needed > room or end <= text_begins:
            return False
        best[rank] = Cut(end, state)
        return True

    start = 0
    while start < len(used):
        stop = _line_end(rest, start)
        line = rest[start:stop]
        before, fence = fence, _after(line, fence, limit)
        is_marker = before is not fence
        if stop == len(rest) and candidate(Rank.PARAGRAPH, stop, fence):
            return best[Rank.PARAGRAPH]
        if not is_marker:
            for rank, end in _inner_cuts(line, len(used) - start, in_code=fence is not None):
                candidate(rank, start + end, fence)
        opens_here = is_marker and fence is not None
        if not opens_here and not _closes_next(rest, stop, fence, limit):
            candidate(_rank_of_line_end(rest, stop, fence), stop, fence)
        start = stop + 1
    return best[min(best)]


def _inner_cuts(line: str, room: int, *, in_code: bool) -> Iterator[tuple[Rank, int]]:
    """Where a line can be cut within, in order: the last of each rank is the one that fills the piece most."""
    fence_like = FENCE.match(line) is not None
    for end in range(1, min(len(line), room)):
        if fence_like or (line[end] in "`~ \t" and FENCE.match(line, end) is not None):
            yield Rank.FENCE_LIKE, end
        elif line[end].isspace() and not line[end - 1].isspace():
            ends_sentence = not in_code and line[:end].rstrip("\"')]*_").endswith(tuple(".!?…。！？"))
            yield (Rank.SENTENCE if ends_sentence else Rank.WORD), end
        else:
            yield Rank.ANYWHERE, end


def _rank_of_line_end(rest: str, stop: int, fence: Fence | None) -> Rank:
    paragraph_ends = not rest[stop + 1 : _line_end(rest, stop + 1)].strip()
    if fence is None:
        return Rank.PARAGRAPH if paragraph_ends else Rank.LINE
    return Rank.PARAGRAPH_OF_CODE if paragraph_ends else Rank.LINE_OF_CODE


def _closes_next(rest: str, stop: int, fence: Fence | None, limit: int) -> bool:
    """Whether the code block ends with the next line: a cut here would open it again for nothing."""
    if fence is None:
        return False
    gap = GAP.match(rest, stop)
    start = gap.end() if gap else stop
    return _after(rest[start : _line_end(rest, start)], fence, limit) is None


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end


def _after(line: str, fence: Fence | None, limit: int) -> Fence | None:
    """The code block that is open after `line` (CommonMark, "Fenced code blocks", at any indentation)."""
    found = FENCE.fullmatch(line)
    # What would fill a quarter of a piece when repeated is no fence but text.
    if found is None or units(line) > limit // 4:
        return fence
    mark, info = found["mark"], found["info"]
    if fence is None:
        return None if mark[0] == "`" and "`" in info else Fence(line.rstrip(), mark)
    closes = mark[0] == fence.mark[0] and len(mark) >= len(fence.mark) and not info.strip()
    return None if closes else fence
