"""The keys and values of a JSON file, read token by token in linear time; comments are allowed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from services.documents.reading.outlines import DEEPEST, Leaf, Outline, Path, Unreadable, one_line_value, one_name
from services.redaction import end_of_run, run_of

_TOKEN = re.compile(
    r'(?P<line>\n)|(?P<quote>")|(?P<mark>[{}\[\]:,])|(?P<comment>//[^\n]*+|/\*[\s\S]*?\*/)'
    r'|(?P<word>[^\s{}\[\]:,"/]++)|(?P<wrong>\S)'
)
_TO_QUOTE = run_of(r'[^"\\\n]++|\\.')
_LONGEST_ROW = 300


@dataclass(slots=True)
class _Level:
    """An object or list that is open; `plain`: it holds nothing but plain values."""

    path: Path
    line: int
    start: int
    first_leaf: int
    is_list: bool
    count: int = 0
    key: str | None = None
    plain: bool = True


def read_json(text: str) -> Outline:
    """Its keys and values; of several documents, one after another, as of a list of them.
    Raises Unreadable: it is no JSON.
    """
    reader = _Reader(text)
    for token in _tokens(text):
        reader.take(*token)
    if reader.open or not reader.documents:
        raise Unreadable("it ends too early")
    return reader.outline


def _tokens(text: str) -> Iterator[tuple[str, str, int, int]]:
    """Of each its kind, its text, where it starts and where it ends."""
    at = 0
    while token := _TOKEN.search(text, at):
        kind, at = token.lastgroup or "wrong", token.end()
        if kind == "quote":
            end = end_of_run(_TO_QUOTE, text, at)
            kind, at = ("string", end + 1) if text.startswith('"', end) else ("wrong", at)
        yield kind, text[token.start() : at], token.start(), at


class _Reader:
    def __init__(self, text: str) -> None:
        self.outline = Outline(comments=("//", "/*"))
        self.open: list[_Level] = []
        self.documents = 0
        self._text = text
        self._line = 1

    def take(self, kind: str, found: str, start: int, end: int) -> None:
        if kind == "line":
            self._line += 1
        elif kind == "comment":
            self._line += found.count("\n")
        elif kind == "wrong":
            raise Unreadable(f"line {self._line}: {found!r} has no place in JSON")
        elif found == ",":
            if self.open:
                self.open[-1].key = None
        elif kind == "mark" and found in "}]":
            self._close(found, end)
        elif found != ":":
            self._value(kind, found, start, end)

    def _value(self, kind: str, found: str, start: int, end: int) -> None:
        level = self.open[-1] if self.open else None
        if level and not level.is_list and level.key is None:
            if kind == "mark":
                raise Unreadable(f"line {self._line}: {found!r} where a key should be")
            level.key = one_name(_plain(kind, found))
            self.outline.add_key((*level.path, level.key), self._line)
            return
        if level is None and self.documents and kind != "mark":
            raise Unreadable(f"line {self._line}: something follows the end")
        path = self._place(level)
        if kind != "mark":
            quoted = kind == "string"
            leaf = Leaf(path, one_line_value(_plain(kind, found)), self._line, self._line, start + quoted, end - quoted)
            self.outline.add(leaf)
            return
        if level:
            level.plain = False
        if len(self.open) >= DEEPEST:
            raise Unreadable("nested too deep")
        if path and (not level or level.is_list):
            self.outline.add_key(path, self._line)
        self.open.append(_Level(path, self._line, start, len(self.outline.leaves), is_list=found == "["))

    def _place(self, level: _Level | None) -> Path:
        if level is None:
            self.documents += 1
            return (f"[{self.documents - 1}]",) if self.documents > 1 else ()
        if not level.is_list:
            return (*level.path, level.key or "")
        level.count += 1
        return (*level.path, f"[{level.count - 1}]")

    def _close(self, mark: str, end: int) -> None:
        if not self.open or self.open[-1].is_list != (mark == "]"):
            raise Unreadable(f"line {self._line}: {mark!r} closes nothing")
        level = self.open.pop()
        in_one_line = level.line == self._line and end - level.start <= _LONGEST_ROW
        if level.is_list and level.plain and level.count > 1 and in_one_line:  # its values are one value
            del self.outline.leaves[level.first_leaf :]
            row = Leaf(level.path, self._text[level.start : end], level.line, level.line, level.start, end)
            self.outline.add(row)


def _plain(kind: str, found: str) -> str:
    if kind != "string":
        return found
    try:
        return str(json.loads(found, strict=False))
    except ValueError:
        return found[1:-1]
