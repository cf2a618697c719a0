"""The elements of an XML file, with expat and without entities: a file that declares any is not read this way."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from xml.parsers import expat

from services.documents.reading.outlines import DEEPEST, Leaf, Outline, Path, Unreadable, one_line_value, one_name
from services.redaction import end_of_run, run_of

_TAG_NAME = re.compile(r"<[^\s/>\"'=]++")
_TO_END_OF_TAG = run_of(r"[^>\"']++|\"[^\"]*+\"|'[^']*+'")
_ATTRIBUTE = re.compile(r"\s([^\s=\"'<>/]++)\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)')")
_NAMING = frozenset({"name", "key", "id"})


def read_xml(text: str) -> Outline:
    """Its elements, attributes and texts. Raises Unreadable: it is no XML, is nested too deep, or declares entities."""
    reader = _Reader(text)
    try:
        reader.parser.Parse(reader.data, True)
    except expat.ExpatError as error:
        raise Unreadable(str(error)) from None
    return reader.outline


@dataclass(slots=True)
class _Element:
    """One that is open: its line, where its text begins, and what an element in it calls it."""

    line: int
    begin: int
    texts: list[str] = field(default_factory=list[str])
    called: str = ""


class _Reader:
    def __init__(self, text: str) -> None:
        self.outline = Outline(comments=("<!--",))
        self.data = text.encode("utf-8", "replace")
        self.parser = expat.ParserCreate("utf-8")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._begin
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.EntityDeclHandler = self._entity
        self._source = text
        self._path: Path = ()
        self._open: list[_Element] = []
        self._at = (0, 0)
        """How far the file was read: in bytes, in characters."""

    def _begin(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._path) >= DEEPEST:
            raise Unreadable("nested too deep")
        line = self.parser.CurrentLineNumber
        name = one_name(name)
        called = next((attributes[key] for key in ("name", "id", "key") if attributes.get(key)), "")
        self._path = (*self._path, f"{name}({one_line_value(called)[:60]})" if called else name)
        self.outline.add_key(self._path, line)
        start = self._tag_begins()
        behind_tag = self._behind_tag(start)
        self._open.append(_Element(line, behind_tag))
        spans = {
            found[1]: found.span(2 if found[2] is not None else 3)
            for found in _ATTRIBUTE.finditer(self._source, start, behind_tag)
        }
        # expat reports the line of the tag; the attribute may be further down. They come in the order of the file.
        read, below = start, line
        for key, value in attributes.items():
            begin, end = spans.get(key, (read, read))
            first = below + self._source.count("\n", read, begin)
            read, below = end, first + self._source.count("\n", begin, end)
            leaf = Leaf((*self._path, one_name(key)), one_line_value(value), first, below, begin, end, called)
            self.outline.add(leaf)

    def _end(self, _: str) -> None:
        start = self._tag_begins()
        element = self._open.pop()
        text = "".join(element.texts)
        if text.strip():
            last = self.parser.CurrentLineNumber
            # An empty `<a/>` has no text; its end is reported where it begins.
            begin, end = element.begin, max(element.begin, start)
            begin += len(self._source[begin:end]) - len(self._source[begin:end].lstrip())
            parent = self._open[-1] if self._open else None
            called = "" if parent is None else parent.called
            self.outline.add(Leaf(self._path, one_line_value(text), element.line, last, begin, end, called))
            if parent is not None and self._path[-1].lower() in _NAMING:
                parent.called = one_line_value(text)
        self._path = self._path[:-1]

    def _text(self, text: str) -> None:
        if self._open:
            self._open[-1].texts.append(text)

    def _entity(self, *_: object) -> None:
        raise Unreadable("entities are declared")

    def _behind_tag(self, start: int) -> int:
        """Where the tag that begins at `start` ends; `start`, if there is none."""
        name = _TAG_NAME.match(self._source, start)
        end = end_of_run(_TO_END_OF_TAG, self._source, name.end()) if name else start
        return end + 1 if name and self._source.startswith(">", end) else start

    def _tag_begins(self) -> int:
        """Where in the text the tag begins that is being read. Asked for in the order of the file."""
        read, at = self._at
        here = self.parser.CurrentByteIndex
        self._at = here, at + len(self.data[read:here].decode("utf-8", "replace"))
        return self._at[1]
