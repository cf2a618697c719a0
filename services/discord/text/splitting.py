"""Cuts an answer into pieces that Discord accepts, code blocks intact.

Length is counted in UTF-16 code units. Discord's documents say "characters" and leave open which; no other way of
counting gives more, so no piece is too long.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

LIMIT = 2_000
"""Content of one message (Discord API reference, "Create Message")."""

FENCE = re.compile(r"[ \t]*(?P<mark>`{3,}|~{3,})(?P<info>.*)")
BLANK_LINES = re.compile(r"(?:[^\S\n]*\n)+")
GAP = re.compile(r"(?:[^\S\n]*\n)+|[^\S\n]+")
"""White space dropped at a cut: line ends and blank lines, but not the indentation after them."""

PARAGRAPH, LINE, LINE_OF_CODE, SENTENCE, WORD, ANYWHERE, FENCE_LIKE = range(7)
"""Where to cut, best first. A code block is cut only when there is no line end outside of one. A cut beside what looks
like a fence could make or break one: only text that is nothing but fence marks comes to this.
"""


class Fence(NamedTuple):
    opening: str
    """The whole line, to open it again."""
    mark: str


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
    return [
        (f"{reopened.opening}\n" if reopened else "") + body + (f"\n{closed.mark}" if closed else "")
        for reopened, body, closed in pieces(text, limit)
    ]


def pieces(text: str, limit: int = LIMIT) -> Iterator[Piece]:
    """The pieces, with the fences that are added to each kept apart."""
    rest, fence, gap = text.rstrip(), None, BLANK_LINES
    while rest := rest[found.end() :] if (found := gap.match(rest)) else rest:
        if units(rest) - units(rest.lstrip()) > limit // 4:
            rest = rest.lstrip()  # an indentation that leaves no room for text
        end, closed = _cut(rest, fence, limit)
        yield Piece(fence, rest[:end].rstrip(), closed)
        rest, fence, gap = rest[end:], closed, GAP


def _cut(rest: str, fence: Fence | None, limit: int) -> tuple[int, Fence | None]:
    """Where to end the piece that begins with `rest`, inside `fence`; and the code block that is open there."""
    room = limit - (units(fence.opening) + 1 if fence else 0)
    used = [0, *accumulate(map(units, rest[: room + 1]))]
    text_begins = len(rest) - len(rest.lstrip())
    best: dict[int, tuple[int, Fence | None]] = {}
    start = 0
    while start < len(used):
        stop = len(rest) if (found := rest.find("\n", start)) < 0 else found
        line, before = rest[start:stop], fence
        fence = _after(line, before, limit)
        for end in range(max(start, text_begins) + 1, min(stop + 1, len(used))):
            if used[end] + (len(fence.mark) + 1 if fence else 0) > room:
                break
            if end == stop:
                rank = _rank_of_line_end(rest[stop:], before, fence, limit)
            else:
                rank = _rank_within(line, end - start, in_code=fence is not None) if fence is before else None
            if rank is not None:
                best[rank] = end, fence  # the last of a rank fills the piece most
        start = stop + 1
    return best[min(best)]


def _rank_of_line_end(after: str, before_line: Fence | None, fence: Fence | None, limit: int) -> int | None:
    """`after`: the text from the line end on. None: a cut would open a code block again only to close it."""
    if not after:
        return PARAGRAPH
    if fence is not None:
        opens_here = fence is not before_line
        closes_next = _after(after.lstrip().partition("\n")[0], fence, limit) is None
        return None if opens_here or closes_next else LINE_OF_CODE
    return PARAGRAPH if not after[1:].partition("\n")[0].strip() else LINE


def _rank_within(line: str, end: int, *, in_code: bool) -> int:
    if FENCE.match(line) or FENCE.match(line, end):
        return FENCE_LIKE
    if not line[end].isspace() or line[end - 1].isspace():
        return ANYWHERE
    ends_sentence = not in_code and line[:end].rstrip("\"')]*_").endswith(tuple(".!?…。！？"))
    return SENTENCE if ends_sentence else WORD


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
