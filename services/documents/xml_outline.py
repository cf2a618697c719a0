"""The elements of an XML file, with expat and without entities: a file that declares any is not read this way."""

from __future__ import annotations

from xml.parsers import expat

from services.documents.outlines import DEEPEST, Leaf, Outline, Path, Unreadable, one_line_value, one_name


def read_xml(text: str) -> Outline:
    """Its elements, attributes and texts.

    Raises:
        Unreadable: it is no XML, is nested too deep, or declares entities.
    """
    reader = _Reader()
    try:
        reader.parser.Parse(text.encode("utf-8", "replace"), True)
    except expat.ExpatError as error:
        raise Unreadable(str(error)) from None
    return reader.outline


class _Reader:
    def __init__(self) -> None:
        self.outline = Outline(comments=("<!--",))
        self.parser = expat.ParserCreate("utf-8")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._begin
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.EntityDeclHandler = self._entity
        self._path: Path = ()
        self._texts: list[list[str]] = []
        self._lines: list[int] = []

    def _begin(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._path) >= DEEPEST:
            raise Unreadable("nested too deep")
        line = self.parser.CurrentLineNumber
        name = one_name(name)
        called = next((attributes[key] for key in ("name", "id", "key") if attributes.get(key)), "")
        self._path = (*self._path, f"{name}({one_line_value(called)[:60]})" if called else name)
        self.outline.add_key(self._path, line)
        self._texts.append([])
        self._lines.append(line)
        # Where in the tag an attribute stands is not told; expat reports the line of the tag.
        for key, value in attributes.items():
            self.outline.add(Leaf((*self._path, one_name(key)), one_line_value(value), line, line))

    def _end(self, _: str) -> None:
        text = "".join(self._texts.pop())
        line = self._lines.pop()
        if text.strip():
            self.outline.add(Leaf(self._path, one_line_value(text), line, self.parser.CurrentLineNumber))
        self._path = self._path[:-1]

    def _text(self, text: str) -> None:
        if self._texts:
            self._texts[-1].append(text)

    def _entity(self, *_: object) -> None:
        raise Unreadable("entities are declared")
