"""Cuts a document into passages that can be quoted on their own."""

from __future__ import annotations

import re
from itertools import groupby
from typing import NamedTuple

_SHORT_SECTION = 500
"""Characters. Few readers mind the sentence before and after; many miss it."""
_MAX_LINES = 100_000
"""Of one source: the largest ones have fewer, unless most of their lines are empty."""
_MAX_TITLE_CHARS = 300
"""Also bounds how long the patterns below can look at one line."""

_HEADING = re.compile(r"(?P<level>#{1,6})\s+(?P<title>.*?)\s*#*")
_BARE_TITLE = re.compile(r"[A-Z0-9][^\n.:;!?`|<>={}]{2,70}\??")
_UNDERLINE = re.compile(r"(?:=+|-{3,})\s*")
_FENCE = re.compile(r"\s*(?P<mark>`{3,}|~{3,})")
_ITEM = re.compile(r"(?P<indent>\s*)(?:[-*+•]|(?P<number>\d{1,3}[.)]))\s+\S")
_RULE = re.compile(r"\s*(?:[-*_]\s*){3,}")


class Passage(NamedTuple):
    """Text to quote. `heading`: the titles above it, outermost first, joined by ` › `; or what users asked the team."""

    heading: str
    text: str


class _Title(NamedTuple):
    level: int
    text: str


class _Block(NamedTuple):
    """Lines of one kind: `prose`, `list`, `table` or `code`."""

    kind: str
    lines: list[str]

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip("\n").rstrip()

    @property
    def pieces(self) -> list[str]:
        """The items of a list that is not numbered, else the block as a whole."""
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

    @property
    def is_bare_title(self) -> bool:
        """A short line on its own without a full stop: in text from a web page, a heading that has lost its mark."""
        return self.kind == "prose" and len(self.lines) == 1 and bool(_BARE_TITLE.fullmatch(self.lines[0].strip()))


def passages(text: str) -> list[Passage]:
    """Paragraphs, lists, tables and code of a Markdown or plain text.

    A line that ends in a colon stays with what it announces, and code with the paragraph before it. Other lists are cut
    into their items, unless they are numbered: steps belong together. A short section stays whole.
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
    for block in _with_bare_titles(_blocks(text.split("\n", _MAX_LINES)[:_MAX_LINES])):
        if isinstance(block, _Title):
            titles = {level: title for level, title in titles.items() if level < block.level}
            titles[block.level] = block.text
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


def _with_bare_titles(blocks: list[_Title | _Block]) -> list[_Title | _Block]:
    if any(isinstance(block, _Title) for block in blocks):
        return blocks
    return [
        _Title(1 if at == 0 else 2, block.lines[0].strip())
        if isinstance(block, _Block) and block.is_bare_title and at < len(blocks) - 1
        else block
        for at, block in enumerate(blocks)
    ]


def _blocks(lines: list[str]) -> list[_Title | _Block]:
    found: list[_Title | _Block] = []
    block: _Block | None = None
    fence = ""  # the mark that closes the code being read
    for line in lines:
        mark = _FENCE.match(line)
        if block is not None and fence:
            block.lines.append(line)
            if mark and mark["mark"].startswith(fence):
                fence = ""
                # A fence within a list item belongs to the list, which may continue.
                block = None if block.kind == "code" else block
            continue
        title = _title(line, block)
        if title is not None:
            if not line.startswith("#"):
                found.pop()  # the underlined line was the title, and no prose
            found.append(title)
            block = None
            continue
        kind = _kind(line, block)
        if block is not None and kind != block.kind:
            block = None
        if kind:
            if block is None:
                block = _Block(kind, [])
                found.append(block)
            block.lines.append(line)
        fence = mark["mark"] if mark else ""
    return found


def _title(line: str, block: _Block | None) -> _Title | None:
    if len(line) > _MAX_TITLE_CHARS:
        return None
    if heading := _HEADING.fullmatch(line):
        return _Title(len(heading["level"]), heading["title"])
    if block is not None and block.kind == "prose" and len(block.lines) == 1 and _UNDERLINE.fullmatch(line):
        return _Title(1 if line.startswith("=") else 2, block.lines[0].strip())
    return None


def _kind(line: str, block: _Block | None) -> str:
    """The kind of block that a line outside fences belongs to; empty for a line between blocks."""
    in_list = block is not None and block.kind == "list"
    if not line.strip():
        return "list" if in_list else ""
    fences = _FENCE.match(line)
    if block is not None and in_list and (line.startswith((" ", "\t")) or (block.lines[-1].strip() and not fences)):
        return "list"  # a further line of an item
    if fences:
        return "code"
    if len(line) <= _MAX_TITLE_CHARS and _RULE.fullmatch(line):
        return ""
    if _ITEM.match(line):
        return "list"
    return "table" if line.lstrip().startswith("|") else "prose"
