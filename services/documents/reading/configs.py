"""Configuration files: sections as they stand, and each value as a sentence of its own (DOCUMENT_QA 4.4)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from services.documents.extensions import extension
from services.documents.reading.json_outline import read_json
from services.documents.reading.line_outlines import read_indented, read_ini
from services.documents.reading.outlines import Leaf, Outline, Path, Unreadable, dotted, words
from services.documents.reading.redacting import Values
from services.documents.reading.toml_outline import read_toml
from services.documents.reading.xml_outline import read_xml
from services.documents.reading.yaml_outline import read_yaml
from services.documents.units import Chunk, ChunkType

MOST_EMBEDDED = 2000
MOST_LEAVES = 20_000

Reader = Callable[[str], Outline]
_READERS: dict[str, tuple[Reader, ...]] = {
    ".json": (read_json, read_indented),
    ".yaml": (read_yaml, read_indented),
    ".yml": (read_yaml, read_indented),
    ".toml": (read_toml, read_ini),
    ".xml": (read_xml, read_indented),
}
_ANY: tuple[Reader, ...] = (read_json, read_toml, read_yaml, read_ini)


@dataclass(frozen=True, slots=True)
class Config:
    chunks: tuple[Chunk, ...]
    flags: tuple[str, ...] = ()


def outline_of(filename: str, text: str) -> Outline:
    """The keys and values of `text`, read as its name says, or as well as it goes."""
    ending = extension(filename)
    named = ending in (".ini", ".cfg", ".conf", ".env", ".properties")
    for read in _READERS.get(ending, (read_ini,) if named else _ANY):
        try:
            return read(text)
        except Unreadable:
            continue
    return Outline()


def config_chunks(lines: Sequence[str], outline: Outline, values: Values) -> Config:
    """`lines` are redacted; the keys and values in `outline` are not yet: `values` does it."""
    cut = sections(lines, outline)
    starts = [section.first for section in cut]
    chunks = [_section(index, section, lines, values.text) for index, section in enumerate(cut)]
    for count, leaf in enumerate(outline.leaves[:MOST_LEAVES]):
        shown_by = max(0, bisect_right(starts, leaf.line_start) - 1)
        text = values.text(f"{words(leaf.path, values.names)} = {values.shown(leaf)}".strip())
        chunks.append(
            _leaf(len(chunks), leaf, values.text(dotted(leaf.path)), shown_by, text, embedded=count < MOST_EMBEDDED)
        )
    flags: tuple[str, ...] = ()
    if outline.n_values > MOST_LEAVES:
        flags = (f"of {outline.n_values} values the first {MOST_LEAVES} can be asked for one by one",)
    return Config(tuple(chunks), flags)


def _section(index: int, section: ConfigSection, lines: Sequence[str], redacted: Callable[[str], str]) -> Chunk:
    parent = redacted(dotted(section.parent)) or None
    header = [redacted(" › ".join(section.parent))] if section.parent else []
    return Chunk(
        index,
        ChunkType.SECTION,
        "\n".join([*header, *lines[section.first - 1 : section.last]]),
        section.first,
        section.last,
        heading=header[0] if header else None,
        key_path=parent,
    )


def _leaf(index: int, leaf: Leaf, key_path: str, shown_by: int, text: str, *, embedded: bool) -> Chunk:
    return Chunk(
        index,
        ChunkType.LEAF,
        text,
        leaf.line_start,
        leaf.line_end,
        embedded=embedded,
        key_path=key_path or None,
        shown_by=shown_by,
    )


SMALL_CHARS = 600
"""A top-level key up to this size stays whole."""
LARGE_CHARS = 1500
"""What is larger is cut at the next level."""


class ConfigSection(NamedTuple):
    parent: Path
    path: Path
    """Of the first key in it; its parent's where there is none."""
    first: int
    last: int


@dataclass(slots=True)
class _Node:
    path: Path
    first: int
    last: int = 0
    children: list[_Node] = field(default_factory=list["_Node"])


def sections(lines: Sequence[str], outline: Outline) -> list[ConfigSection]:
    cutter = _Cutter(lines)
    return list(cutter.cut(_tree(lines, outline)))


def _tree(lines: Sequence[str], outline: Outline) -> _Node:
    root = _Node((), 1)
    open_nodes = [root]
    begun = 0
    for path, line in outline.keys:
        # Of several keys in one line, the first is the one that lines can be cut at.
        if line <= begun:
            continue
        while len(open_nodes) > 1 and open_nodes[-1].path != path[: len(open_nodes[-1].path)]:
            open_nodes.pop()
        node = _Node(path, _with_remarks(lines, line, begun, outline.comments))
        open_nodes[-1].children.append(node)
        open_nodes.append(node)
        begun = line
    _set_ends(root, len(lines))
    return root


def _with_remarks(lines: Sequence[str], line: int, begun: int, comments: tuple[str, ...]) -> int:
    """Comments directly above a key belong to it."""
    first = line
    while first - 1 > begun and lines[first - 2].lstrip().startswith(comments):
        first -= 1
    return first


def _set_ends(root: _Node, last: int) -> None:
    root.last = last
    waiting = [root]
    while waiting:
        node = waiting.pop()
        end = node.last
        for child in reversed(node.children):
            child.last = end
            end = child.first - 1
        waiting += node.children


class _Cutter:
    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._offsets = [0]
        for line in lines:
            self._offsets.append(self._offsets[-1] + len(line) + 1)

    def cut(self, root: _Node) -> Iterator[ConfigSection]:
        """Depth first, without recursion: a file may be nested as deep as it likes."""
        waiting = [(root, root.first)]
        while waiting:
            node, first = waiting.pop()
            if not node.children or (node.path and self._fits(node, first)):
                yield from self._pieces(node.path[:-1], node.path, first, node.last)
                continue
            inner: list[tuple[_Node, int]] = []
            for group in self._grouped(node.children):
                start = first if group is node.children or group[0] is node.children[0] else group[0].first
                inner.append((group[0] if len(group) == 1 else _Node(group[0].path, start, group[-1].last), start))
            waiting += reversed(inner)

    def _fits(self, node: _Node, first: int) -> bool:
        return self._size(first, node.last) <= (SMALL_CHARS if len(node.path) == 1 else LARGE_CHARS)

    def _grouped(self, children: list[_Node]) -> Iterator[list[_Node]]:
        """Plain values side by side stay together, as long as they are not large; so do small parts of a list."""
        group: list[_Node] = []
        for child in children:
            plain = not child.children or child.path[-1].startswith("[")
            if group and (not plain or self._size(group[0].first, child.last) > LARGE_CHARS):
                yield group
                group = []
            group.append(child)
            if not plain:
                yield group
                group = []
        if group:
            yield group

    def _pieces(self, parent: Path, path: Path, first: int, last: int) -> Iterator[ConfigSection]:
        """At line ends, where a single value is too large."""
        start = first
        for number in range(first, last + 1):
            if number > start and self._size(start, number) > LARGE_CHARS:
                yield ConfigSection(parent, path, start, number - 1)
                start = number
        yield ConfigSection(parent, path, start, last)

    def _size(self, first: int, last: int) -> int:
        return self._offsets[last] - self._offsets[first - 1]
