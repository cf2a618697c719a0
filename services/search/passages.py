"""Cuts a source into passages that can be quoted on their own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

_SHORT_SECTION = 500
"""Characters. Few readers mind the sentence before and after; many miss it."""

_MOST_LINES = 100_000
"""Of one source: more than the largest one has, unless its lines are all but empty."""
_LONGEST_TITLE = 300
"""Characters. It also bounds how long the patterns below can look at one line."""

_HEADING = re.compile(r"(?P<level>#{1,6})\s+(?P<title>.*?)\s*#*")
_BARE_TITLE = re.compile(r"[A-Z0-9][^\n.:;!?`|<>={}]{2,70}\??")
_UNDERLINE = re.compile(r"(?:=+|-{3,})\s*")
_FENCE = re.compile(r"\s*(?P<mark>`{3,}|~{3,})")
_ITEM = re.compile(r"(?P<indent>\s*)(?:[-*+•]|(?P<number>\d{1,3}[.)]))\s+\S")
_TABLE = re.compile(r"\s*\|")
_RULE = re.compile(r"\s*(?:[-*_]\s*){3,}")


@dataclass(frozen=True, slots=True)
class Passage:
    heading: str
    """Titles above it, outermost first, joined by ` › `; for team knowledge what the users asked."""
    text: str


def passages(text: str) -> list[Passage]:
    """Paragraphs, lists, tables and code of a Markdown or plain text.

    What a line ending in a colon announces stays with it, and so does code with the paragraph before it. A list
    without such a line is cut into its items, unless it is numbered: steps belong together. What stands under one
    heading stays whole when it is short.
    """
    joined: list[Passage] = []
    for heading, pieces in groupby(_pieces(text), key=lambda piece: piece.heading):
        section = list(pieces)
        whole = "\n\n".join(piece.text for piece in section)
        joined.extend([Passage(heading, whole)] if len(whole) <= _SHORT_SECTION else section)
    return joined


def _pieces(text: str) -> list[Passage]:
    found: list[Passage] = []
    titles: dict[int, str] = {}
    lead: Passage | None = None
    for block in _blocks(text.split("\n", _MOST_LINES)[:_MOST_LINES]):
        if isinstance(block, _Title):
            titles = {level: title for level, title in titles.items() if level < block.level} | {
                block.level: block.text
            }
            lead = None
            continue
        heading = " › ".join(titles[level] for level in sorted(titles))
        if lead is not None and (block.kind == "code" or (block.kind != "prose" and lead.text.endswith(":"))):
            found[-1] = Passage(heading, f"{lead.text}\n{block.text}")
            lead = found[-1] if block.kind == "list" else None
            continue
        found.extend(Passage(heading, piece) for piece in block.pieces)
        lead = found[-1] if block.kind in {"prose", "list"} else None
    return found


@dataclass(frozen=True, slots=True)
class _Title:
    level: int
    text: str


@dataclass(frozen=True, slots=True)
class _Block:
    kind: str
    """`prose`, `list`, `table` or `code`."""
    lines: list[str]

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip("\n").rstrip()

    @property
    def pieces(self) -> list[str]:
        first = _ITEM.match(self.lines[0])
        if self.kind != "list" or first is None or first["number"]:
            return [self.text]
        items: list[list[str]] = []
        for line in self.lines:
            item = _ITEM.match(line)
            if item and len(item["indent"]) <= len(first["indent"]):
                items.append([])
            items[-1].append(line)
        return ["\n".join(item).rstrip() for item in items]


def _blocks(lines: list[str]) -> list[_Title | _Block]:
    """Titles and blocks, in order."""
    reader = _Reader()
    for line in lines:
        reader.read(line)
    reader.end_block()
    marked = any(isinstance(block, _Title) for block in reader.found)
    return reader.found if marked else list(_with_bare_titles(reader.found))


def _with_bare_titles(blocks: list[_Title | _Block]) -> Iterator[_Title | _Block]:
    for at, block in enumerate(blocks):
        is_last = at == len(blocks) - 1
        if isinstance(block, _Block) and not is_last and _bare_title(block):
            yield _Title(1 if at == 0 else 2, block.lines[0].strip())
        else:
            yield block


class _Reader:
    def __init__(self) -> None:
        self.found: list[_Title | _Block] = []
        self._block: _Block | None = None
        self._fence = ""
        """The mark that closes the code being read."""

    def read(self, line: str) -> None:
        if self._block is not None and self._fence:
            self._read_code(self._block, line)
            return
        title = _title(line, self._block)
        if title is not None:
            self._read_title(title, underlined=not line.startswith("#"))
            return
        kind = _kind(line, self._block)
        if self._block is not None and kind != self._block.kind:
            self.end_block()
        if kind:
            self._block = self._block or _Block(kind, [])
            self._block.lines.append(line)
        if opening := _FENCE.match(line):
            self._fence = opening["mark"]

    def end_block(self) -> None:
        if self._block is not None and self._block.lines:
            self.found.append(self._block)
        self._block = None

    def _read_code(self, block: _Block, line: str) -> None:
        block.lines.append(line)
        closing = _FENCE.match(line)
        if closing and closing["mark"].startswith(self._fence):
            self._fence = ""
            # A fence within a list item belongs to the list, which may go on.
            if block.kind == "code":
                self.end_block()

    def _read_title(self, title: _Title, *, underlined: bool) -> None:
        if underlined and self._block is not None:
            self._block.lines.pop()  # it was the title, and no prose
        self.end_block()
        self.found.append(title)


def _bare_title(block: _Block) -> bool:
    """Text taken from a web page has lost its marks: a short line on its own without a full stop was a heading."""
    line = block.lines[0].strip()
    return block.kind == "prose" and len(block.lines) == 1 and bool(_BARE_TITLE.fullmatch(line))


def _title(line: str, block: _Block | None) -> _Title | None:
    if len(line) > _LONGEST_TITLE:
        return None
    if heading := _HEADING.fullmatch(line):
        return _Title(len(heading["level"]), heading["title"])
    if block is not None and block.kind == "prose" and len(block.lines) == 1 and _UNDERLINE.fullmatch(line):
        return _Title(1 if line.startswith("=") else 2, block.lines[0].strip())
    return None


def _kind(line: str, block: _Block | None) -> str:
    """What a line outside fences belongs to; empty for a line between blocks."""
    before = block.kind if block is not None else ""
    if not line.strip():
        return "list" if before == "list" else ""
    if before == "list" and (
        line.startswith((" ", "\t")) or (block and block.lines[-1].strip() and not _FENCE.match(line))
    ):
        return "list"  # a further line of an item
    if _FENCE.match(line):
        return "code"
    if len(line) <= _LONGEST_TITLE and _RULE.fullmatch(line):
        return ""
    if _ITEM.match(line):
        return "list"
    return "table" if _TABLE.match(line) else "prose"
