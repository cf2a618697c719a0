"""Configuration files: sections as they stand, and each value as a sentence of its own (DOCUMENT_QA 4.4)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from services.documents.config_sections import ConfigSection, sections
from services.documents.extensions import extension
from services.documents.indented_outline import read_indented
from services.documents.ini_outline import read_ini
from services.documents.json_outline import read_json
from services.documents.outlines import Leaf, Outline, Unreadable, dotted, words
from services.documents.redacting import Values
from services.documents.toml_outline import read_toml
from services.documents.units import Chunk, ChunkType
from services.documents.xml_outline import read_xml
from services.documents.yaml_outline import read_yaml

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
