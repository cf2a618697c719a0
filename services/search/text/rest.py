"""Reads reStructuredText, as documentation for Sphinx uses it, into an article."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

from services.search.text.sections import Article, Block, BlockKind, Section

_UNREADABLE = re.compile(r"[\x00-\x08\x0e-\x1b\x7f\ufeff]")
"""Nobody can see them, and docutils marks escapes with NUL."""
_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1{2,1000}[ \t]*")
_MAX_TITLE_CHARS = 300


def read_rest(text: str) -> Article:
    """The sections of a reStructuredText, in the Markdown that Discord shows.

    Takes any text and raises nothing: what docutils cannot take comes out as paragraphs below its underlined titles. No
    file is read and no address opened, whatever the text asks for. Of documentation a megabyte needs about 2 seconds of
    one core; no text of that size more than 25. Threads may call it at the same time.
    """
    # With docutils this takes some 50 ms: only who has such a document pays for it.
    from services.search.text.rest_sections import read_tree  # noqa: PLC0415 (as above)

    readable = _UNREADABLE.sub("", text)
    try:
        return read_tree(readable)
    except Exception:  # noqa: BLE001 (docutils fails in many ways on what is not its language; RecursionError is one)
        return _as_paragraphs(readable)


def _as_paragraphs(text: str) -> Article:
    """Titles are lines above a line of one sign, and paragraphs are parted by empty lines."""
    parts: list[tuple[str, list[Block]]] = [("", [])]
    for is_text, group in groupby(text.splitlines(), key=lambda line: bool(line.strip())):
        for heading, paragraph in _titled(group) if is_text else ():
            if heading:
                parts.append((heading, []))
            if paragraph:
                parts[-1][1].append(Block(BlockKind.PROSE, paragraph))
    sections = (
        Section((heading,) if heading else (), "", tuple(blocks)) for heading, blocks in parts if heading or blocks
    )
    return Article(next((heading for heading, _ in parts if heading), ""), tuple(sections))


def _titled(lines: Iterable[str]) -> list[tuple[str, str]]:
    """A heading, or none, and the text below it, for the lines between two empty ones."""
    found: list[tuple[str, list[str]]] = [("", [])]
    for line in lines:
        if not _ADORNMENT.fullmatch(line.rstrip()):
            found[-1][1].append(line)
        elif found[-1][1] and len(found[-1][1][-1]) <= _MAX_TITLE_CHARS:
            found.append((found[-1][1].pop().strip(), []))
    return [(heading, "\n".join(body)) for heading, body in found]
