"""Configuration files: sections cut along the keys, and each value as a sentence of its own."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

from services.documents.limits import extension
from services.documents.prepared import Chunk, ChunkType
from services.documents.reading.outlines import (
    KeyPath,
    Outline,
    Unreadable,
    dotted,
    read_indented,
    read_ini,
    read_json,
    read_toml,
    read_xml,
    read_yaml,
    words,
)
from services.documents.reading.redacting import Redacted

MAX_EMBEDDED = 2000
MAX_LEAVES = 20_000
SMALL_CHARS = 600  # a top-level key up to this size stays whole
LARGE_CHARS = 1500  # what is larger is cut at the next level

_READERS: dict[str, tuple[Callable[[str], Outline], ...]] = {
    ".json": (read_json, read_indented),
    ".yaml": (read_yaml, read_indented),
    ".yml": (read_yaml, read_indented),
    ".toml": (read_toml, read_ini),
    ".xml": (read_xml, read_indented),
    **dict.fromkeys((".ini", ".cfg", ".conf", ".env", ".properties"), (read_ini,)),
}


def outline_of(filename: str, text: str) -> Outline:
    """Read the keys and values of `text` with the reader for its name, or with the first reader that can."""
    for read in _READERS.get(extension(filename), (read_json, read_toml, read_yaml, read_ini)):
        try:
            return read(text)
        except Unreadable:
            continue
    return Outline()


def config_chunks(lines: Sequence[str], outline: Outline, redacted: Redacted) -> list[Chunk]:
    """Return a chunk of each section of the redacted `lines`, then of each value in `outline`, redacted here."""
    chunks: list[Chunk] = []
    for section in _sections(lines, outline):
        heading = redacted.part(" › ".join(section.parent)) if section.parent else None
        text = "\n".join([*([] if heading is None else [heading]), *lines[section.first - 1 : section.last]])
        path = redacted.part(dotted(section.parent)) or None
        chunks.append(
            Chunk(len(chunks), ChunkType.SECTION, text, section.first, section.last, heading=heading, key_path=path)
        )
    starts = [chunk.line_start for chunk in chunks]
    for count, leaf in enumerate(outline.leaves[:MAX_LEAVES]):
        chunk = Chunk(
            len(chunks),
            ChunkType.LEAF,
            redacted.part(f"{words(leaf.path, redacted.names)} = {redacted.value_of(leaf)}".strip()),
            leaf.line_start,
            leaf.line_end,
            embedded=count < MAX_EMBEDDED,
            key_path=redacted.part(dotted(leaf.path)) or None,
            section_index=max(0, bisect_right(starts, leaf.line_start) - 1),
        )
        chunks.append(chunk)
    return chunks


class _Section(NamedTuple):
    parent: KeyPath
    first: int
    last: int


@dataclass(slots=True)
class _Node:
    """A key with the lines that belong to it."""

    path: KeyPath
    first: int
    last: int = 0
    children: list[_Node] = field(default_factory=list["_Node"])


def _sections(lines: Sequence[str], outline: Outline) -> Iterator[_Section]:
    """Yield sections; every line is in exactly one. Depth first, without recursion: a file may be nested deep."""
    sizes = list(accumulate((len(line) + 1 for line in lines), initial=0))
    waiting = [_tree(lines, outline)]
    while waiting:
        node = waiting.pop()
        most = SMALL_CHARS if len(node.path) == 1 else LARGE_CHARS
        if not node.children or (node.path and sizes[node.last] - sizes[node.first - 1] <= most):
            yield from _pieces(node, sizes)
            continue
        groups = list(_group_values(node.children, sizes))
        node.children[0].first = node.first
        waiting += [_join(group) for group in reversed(groups)]


def _join(group: list[_Node]) -> _Node:
    return group[0] if len(group) == 1 else _Node(group[0].path, group[0].first, group[-1].last)


def _group_values(children: list[_Node], sizes: Sequence[int]) -> Iterator[list[_Node]]:
    """Group children: plain values side by side stay together unless they are large; so do small parts of a list."""
    group: list[_Node] = []
    for child in children:
        plain = not child.children or child.path[-1].startswith("[")
        if group and (not plain or sizes[child.last] - sizes[group[0].first - 1] > LARGE_CHARS):
            yield group
            group = []
        group.append(child)
        if not plain:
            yield group
            group = []
    if group:
        yield group


def _pieces(node: _Node, sizes: Sequence[int]) -> Iterator[_Section]:
    """Cut a single large value at line ends."""
    start = node.first
    for number in range(start + 1, node.last + 1):
        if sizes[number] - sizes[start - 1] > LARGE_CHARS:
            yield _Section(node.path[:-1], start, number - 1)
            start = number
    yield _Section(node.path[:-1], start, node.last)


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
        first = line
        while first - 1 > begun and lines[first - 2].lstrip().startswith(outline.comment_marks):
            first -= 1  # comments directly above a key belong to it
        node = _Node(path, first)
        open_nodes[-1].children.append(node)
        open_nodes.append(node)
        begun = line
    root.last = len(lines)
    waiting = [root]
    while waiting:
        node = waiting.pop()
        end = node.last
        for child in reversed(node.children):
            child.last = end
            end = child.first - 1
        waiting += node.children
    return root
