"""The keys and values of a YAML file, from the parser's events: nothing is built, so that no alias can grow."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, cast

import yaml

from services.documents.reading.decoding import lines_of
from services.documents.reading.outlines import DEEPEST, Leaf, Outline, Path, Unreadable, one_line_value, one_name

# The C parser is ten times faster; wheels bring it.
_LOADER = cast("type[yaml.SafeLoader]", getattr(yaml, "CSafeLoader", yaml.SafeLoader))
_ASSIGNMENT = re.compile(r"([A-Za-z_][\w.-]{0,99})=(.*)", re.DOTALL)
_LONGEST_FLOW = 300
_BREAKS = dict.fromkeys(map(ord, "\x85\u2028\u2029"), " ")  # lines end here for YAML, and for nobody else


def read_yaml(text: str) -> Outline:
    """Its keys and values. Raises Unreadable: it is no YAML."""
    text = text.translate(_BREAKS)
    reader = _Reader(text)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            reader.take(event)
    except (yaml.YAMLError, RecursionError) as error:
        raise Unreadable(str(error)) from None
    return reader.outline


@dataclass(slots=True)
class _Level:
    """A mapping or list that is open."""

    path: Path
    is_list: bool
    count: int = 0
    key: str | None = None


class _Reader:
    def __init__(self, text: str) -> None:
        self.outline = Outline()
        self._text = text
        self._lines = text.split("\n")
        self._n_lines = max(1, len(lines_of(text)))
        self._starts: list[int] = list(accumulate((len(line) + 1 for line in self._lines), initial=0))
        self._levels: list[_Level] = []
        self._documents = 0
        self._flow: tuple[int, list[Leaf], Any] | None = None

    def take(self, event: Any) -> None:
        if isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            self._open(event)
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self._close(event)
        elif isinstance(event, yaml.ScalarEvent):
            self._scalar(event, event.value)
        elif isinstance(event, yaml.AliasEvent):
            self._scalar(event, f"*{event.anchor}")

    def _open(self, event: Any) -> None:
        if len(self._levels) >= DEEPEST:
            raise Unreadable("nested too deep")
        path = self._place(event)
        is_list = isinstance(event, yaml.SequenceStartEvent)
        if is_list and event.flow_style and self._flow is None:
            self._flow = len(self._levels), [], event
        self._levels.append(_Level(path, is_list=is_list))

    def _close(self, event: Any) -> None:
        level = self._levels.pop()
        if self._flow is None or self._flow[0] != len(self._levels):
            return
        _, leaves, start = self._flow
        self._flow = None
        first, last = start.start_mark, event.end_mark
        shown = self._text[self._offset(first) : self._offset(last)] if first.line == last.line else ""
        plain = leaves and all(leaf.path[:-1] == level.path for leaf in leaves)
        if plain and 0 < len(shown) <= _LONGEST_FLOW and len(leaves) > 1:
            leaves = [Leaf(level.path, shown, first.line + 1, first.line + 1, *self._span(start, event))]
        for leaf in leaves:
            self.outline.add(leaf)

    def _scalar(self, event: Any, value: str) -> None:
        level = self._levels[-1] if self._levels else None
        # A value that is left out at the end of the file stands behind its last line.
        line: int = min(event.start_mark.line + 1, self._n_lines)
        if level and not level.is_list and level.key is None:
            level.key = one_name(value)
            self.outline.add_key((*level.path, level.key), line)
            return
        path = self._place(event)
        last: int = min(event.end_mark.line + (1 if event.end_mark.column else 0), self._n_lines)
        while last > line and not self._lines[last - 1].strip():
            last -= 1
        start, end = self._span(event, event)
        if level and level.is_list and (found := _ASSIGNMENT.fullmatch(value)):
            path, value = (*level.path, found[1]), found[2]
            start = self._text.find("=", start, end) + 1 or start
        leaf = Leaf(path, one_line_value(value), line, max(line, last), start, end)
        if self._flow is None:
            self.outline.add(leaf)
        elif len(self._flow[1]) < _LONGEST_FLOW:
            self._flow[1].append(leaf)
        else:  # too long to be shown as one value
            for waiting in (*self._flow[1], leaf):
                self.outline.add(waiting)
            self._flow = None

    def _span(self, first: Any, last: Any) -> tuple[int, int]:
        start, end = self._offset(first.start_mark), self._offset(last.end_mark)
        while end > start and self._text[end - 1].isspace():
            end -= 1
        quoted = end - start > 1 and self._text[start] in "\"'" and self._text[end - 1] == self._text[start]
        return start + quoted, end - quoted

    def _offset(self, mark: Any) -> int:
        line: int = mark.line
        column: int = mark.column
        return self._starts[line] + column

    def _place(self, event: Any) -> Path:
        """The path of a value that begins here."""
        if not self._levels:
            return (f"[{self._documents - 1}]",) if self._documents > 1 else ()
        level = self._levels[-1]
        if level.is_list:
            level.count += 1
            path = (*level.path, f"[{level.count - 1}]")
            line: int = event.start_mark.line + 1
            if isinstance(event, yaml.CollectionStartEvent) and not self._flow:
                self.outline.add_key(path, line)
            return path
        # A mapping as the key of a mapping: named by its place.
        path = (*level.path, level.key if level.key is not None else "?")
        level.key = None if level.key is not None else "?"
        return path
