"""Cuts prose and Markdown into chunks below their headings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from services.documents.prepared import Chunk, ChunkType
from services.documents.reading.outlines import Unreadable, read_yaml

CHARS_PER_TOKEN = 4
PASSAGE_CHARS = 512 * CHARS_PER_TOKEN
OVERLAP_CHARS = 50 * CHARS_PER_TOKEN


class _Piece(NamedTuple):
    text: str
    line: int


def prose_chunks(lines: Sequence[str]) -> list[Chunk]:
    """Return passages, cut at line ends; a line that is too long for that is cut at blanks."""
    chunks: list[Chunk] = []
    waiting: list[_Piece] = []
    size = fresh = 0
    for piece in _pieces(lines):
        if waiting and size + len(piece.text) > PASSAGE_CHARS and fresh:
            chunks.append(_chunk(len(chunks), waiting))
            waiting = _overlap(waiting)
            size, fresh = sum(len(kept.text) + 1 for kept in waiting), 0
        waiting.append(piece)
        size += len(piece.text) + 1
        fresh += bool(piece.text.strip())
    if fresh:
        chunks.append(_chunk(len(chunks), waiting))
    return chunks


def _pieces(lines: Sequence[str]) -> Iterator[_Piece]:
    for number, line in enumerate(lines, start=1):
        rest = line
        while len(rest) > PASSAGE_CHARS:
            at = rest.rfind(" ", PASSAGE_CHARS // 2, PASSAGE_CHARS) + 1 or PASSAGE_CHARS
            yield _Piece(rest[:at], number)
            rest = rest[at:]
        yield _Piece(rest, number)


def _overlap(pieces: list[_Piece]) -> list[_Piece]:
    kept: list[_Piece] = []
    size = 0
    for piece in reversed(pieces):
        size += len(piece.text) + 1
        if size > OVERLAP_CHARS:
            break
        kept.insert(0, piece)
    return kept


def _chunk(index: int, pieces: list[_Piece]) -> Chunk:
    text = pieces[0].text
    for before, piece in pairwise(pieces):
        text += piece.text if piece.line == before.line else f"\n{piece.text}"
    return Chunk(index, ChunkType.TEXT, text, pieces[0].line, pieces[-1].line)


SHORTEST = 100
LONGEST = 3000
DEEPEST = 3  # headings of lower rank stay within their section
_MAX_FIELDS = 20

_HASHES = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))??(?:[ \t]+#+)?[ \t]*")
_EQUALS = re.compile(r"(={1,6})[ \t]+(\S.*)")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*")
_ROW = re.compile(r"([=\-~^\"'`#*+:.<>_!$%&,/;?@\\|])\1{2,1000}\s*")


class _Heading(NamedTuple):
    """A heading. `line`: where its section begins, from 0: at the overline, if there is one."""

    line: int
    rank: int
    title: str


class _Part(NamedTuple):
    first: int
    after: int
    heading: tuple[str, ...]


def markdown_chunks(lines: Sequence[str], ending: str = ".md", title: str | None = None) -> list[Chunk]:
    """Return a chunk for each section. `ending` names the dialect: `.md`, `.rst` or `.adoc`."""
    begin, fields = _front_matter(lines)
    whole = fenced(lines, delimiters=ending == ".adoc")
    sizes = list(accumulate((len(line) + 1 for line in lines), initial=0))
    parts = _merged(list(_parts(begin, len(lines), _headings(lines, whole, begin, ending))), sizes)
    together = [inside or (ending == ".rst" and line[:1].isspace()) for inside, line in zip(whole, lines, strict=True)]
    if title:
        fields = {**fields, "title": title}
    chunks: list[Chunk] = []
    for first, after, titles in (piece for part in parts for piece in _split(part, lines, together, whole, sizes)):
        heading, text = " › ".join(titles) or None, "\n".join(lines[first:after])
        if text.strip():
            chunks.append(Chunk(len(chunks), ChunkType.SECTION, text, first + 1, after, heading=heading, extra=fields))
    return chunks


def _front_matter(lines: Sequence[str]) -> tuple[int, dict[str, str]]:
    """Return the line at which the text begins, and the fields before it, between two rows of hyphens."""
    if not lines or lines[0].rstrip() != "---":
        return 0, {}
    end = next((at for at, line in enumerate(lines[1:200], start=1) if line.rstrip() in ("---", "...")), 0)
    try:
        leaves = read_yaml("\n".join(lines[1:end])).leaves if end else []
    except Unreadable:
        leaves = []
    found: dict[str, list[str]] = {}
    for leaf in leaves:
        name = next((part for part in leaf.path if not part.startswith("[")), "")
        found.setdefault(name, []).append(leaf.value.strip("[]"))
    fields = {name: ", ".join(found[name]) for name in list(found)[:_MAX_FIELDS] if name}
    return (end + 1, fields) if fields else (0, {})


def _headings(lines: Sequence[str], whole: Sequence[bool], begin: int, ending: str) -> Iterator[_Heading]:
    ranks: dict[str, int] = {}
    for at in range(begin, len(lines)):
        if not any(whole[at : at + 2]):
            heading = _heading(lines, at, ending, ranks)
            if heading and heading.rank <= DEEPEST:
                yield heading


def _heading(lines: Sequence[str], at: int, ending: str, ranks: dict[str, int]) -> _Heading | None:
    line = lines[at]
    below = lines[at + 1] if at + 1 < len(lines) else ""
    above = lines[at - 1] if at else ""
    if ending == ".rst":
        row = _ROW.fullmatch(below)
        if not row or not line.strip() or _ROW.fullmatch(line) or len(below.rstrip()) < len(line.rstrip()):
            return None
        over = above.rstrip() == below.rstrip()
        if line[:1].isspace() and not over:
            return None
        rank = ranks.setdefault(row[1] * (1 + over), len(ranks) + 1)
        return _Heading(at - over, rank, line.strip())
    found = (_EQUALS if ending == ".adoc" else _HASHES).fullmatch(line)
    if found:
        return _Heading(at, len(found[1]), (found[2] or "").strip())
    under = _UNDERLINE.fullmatch(below) if ending == ".md" else None
    if under and re.match(r" {0,3}[^\s#>|*+-]", line) and len(line) <= LONGEST // 10:
        return _Heading(at, 1 if under[1][0] == "=" else 2, line.strip())
    return None


def _parts(begin: int, end: int, headings: Iterator[_Heading]) -> Iterator[_Part]:
    path: list[tuple[int, str]] = []
    first = begin
    for heading in headings:
        if heading.line > first:
            yield _Part(first, heading.line, tuple(title for _, title in path))
        while path and path[-1][0] >= heading.rank:
            path.pop()
        path.append((heading.rank, heading.title))
        first = heading.line
    if end > first:
        yield _Part(first, end, tuple(title for _, title in path))


def _merged(parts: list[_Part], sizes: list[int]) -> list[_Part]:
    """Merge small sections into the next one, a small last one into the one before; the larger gives its heading."""
    merged: list[_Part] = []
    for part in parts:
        last = merged[-1] if merged else part
        before, size = sizes[last.after] - sizes[last.first], sizes[part.after] - sizes[part.first]
        if merged and (before < SHORTEST or (part is parts[-1] and size < SHORTEST)):
            merged[-1] = _Part(last.first, part.after, last.heading if before > size else part.heading)
        else:
            merged.append(part)
    return merged


def _split(
    part: _Part, lines: Sequence[str], together: Sequence[bool], whole: Sequence[bool], sizes: list[int]
) -> Iterator[_Part]:
    """Cut a long section before a paragraph if possible, else at a line end, never within a fence."""
    first = part.first
    paragraph = line_end = first
    for at in range(part.first + 1, part.after):
        if sizes[at + 1] - sizes[first] > LONGEST:
            cut = paragraph if paragraph > first else line_end
            if cut > first:
                yield part._replace(first=first, after=cut)
                first = cut
        if not whole[at]:
            line_end = at
            if not together[at] and not lines[at - 1].strip():
                paragraph = at
    yield part._replace(first=first)


LARGEST_FENCE = 24_000  # characters. A larger one would fit into no prompt: it is cut like text

_FENCE = re.compile(r"\s*+(?:(?:[-*+>]|[0-9]{1,9}[.)])\s*+){0,9}(`{3,}+|~{3,}+)([^`\n]*)")
_DELIMITER = re.compile(r"(-{4,}|\.{4,}|={4,}|\+{4,}|_{4,}|\*{4,}|/{4,}|\|={3,})\s*")


def fenced(lines: Sequence[str], *, delimiters: bool = False) -> list[bool]:
    """Return for each line whether no cut may be made in front of it: all lines of a fence but its first.

    `delimiters`: blocks between two equal rows of characters, as in AsciiDoc, count as well.
    """
    inside = [False] * len(lines)
    unclosed: set[str] = set()
    at = 0
    while at < len(lines):
        end = _end(lines, at, unclosed, delimiters=delimiters)
        if end > at and sum(map(len, lines[at : end + 1])) <= LARGEST_FENCE:
            inside[at + 1 : end + 1] = [True] * (end - at)
        at = max(at, end) + 1
    return inside


def _end(lines: Sequence[str], at: int, unclosed: set[str], *, delimiters: bool) -> int:
    """Return the line that closes the fence beginning at `at`; -1 when none begins, or it is never closed."""
    fence = _FENCE.fullmatch(lines[at])
    found = fence or (_DELIMITER.fullmatch(lines[at]) if delimiters else None)
    # Of a fence that was never closed, no later one of its kind is.
    if found is None or found[1] in unclosed:
        return -1
    mark = found[1]
    for number in range(at + 1, len(lines)):
        bare = lines[number].strip().lstrip("> ")
        if (len(bare) >= len(mark) and bare == mark[0] * len(bare)) if fence else lines[number].rstrip() == mark:
            return number
    unclosed.add(mark)
    return -1
