"""Documents cut to a length from which they can still be described: whole, or their outline and beginnings."""

from __future__ import annotations

import re
from collections.abc import Iterator

from services.search.text import Article, Block, BlockKind, Section

OUTLINE_SHARE = 3
"""Of the room for a long document, at most one part in so many goes to its headings."""
_LEAST_CHARS = 60
"""A shorter beginning of a section says nothing."""
_FEW_WORDS = 60
"""Of prose beside links: with more of it, a page has something to say even if it is full of links."""

_LINK = re.compile(r"!?\[(?P<label>[^\[\]]*)\]\([^()\s]*(?:\s[^()]*)?\)|<?https?://[^\s<>]+>?")
_WORD = re.compile(r"\w+")


def summary_text(article: Article, max_chars: int) -> str:
    """The article in at most `max_chars` characters: whole, or its headings and the beginning of each section.

    Long sections have longer beginnings, in proportion. The sections are in their order.
    """
    whole = article.markdown.strip()
    if len(whole) <= max_chars:
        return whole
    outline = article.contents(max_chars // OUTLINE_SHARE)
    parts = [f"Outline:\n{outline}"] if outline else []
    room = max_chars - sum(map(len, parts)) - len("\n\nBeginnings of its sections:\n\n")
    beginnings = "\n\n".join(_beginnings(article, room))
    if beginnings:
        parts.append(f"Beginnings of its sections:\n\n{beginnings}")
    return "\n\n".join(parts)[:max_chars]


def plain_article(text: str) -> Article:
    """Text without a form of its own: a section for each paragraph."""
    paragraphs = (paragraph.strip("\n") for paragraph in text.split("\n\n"))
    sections = (Section((), "", (Block(BlockKind.PROSE, each),)) for each in paragraphs if each.strip())
    return Article("", tuple(sections))


def says_nothing(article: Article) -> bool:
    """True if a page has no content of its own: only a title, a table of contents, or a list of links."""
    words = linked = 0
    for section in article.sections:
        for block in section.blocks:
            if block.kind in {BlockKind.CODE, BlockKind.TABLE}:
                return False
            links = [match["label"] or "link" for match in _LINK.finditer(block.text)]
            linked += sum(_words(label) or 1 for label in links)
            words += _words(_LINK.sub(" ", block.text))
    return not words or (linked >= words and words < _FEW_WORDS)


def _words(text: str) -> int:
    return sum(1 for _ in _WORD.finditer(text))


def _beginnings(article: Article, max_chars: int) -> Iterator[str]:
    """Of so many sections that each gets a beginning worth reading: the longest."""
    longest = sorted((section for section in article.sections if section.text), key=lambda each: -len(each.text))
    rooms: dict[Section, int] = {}
    total = 0
    for section in longest:
        total += len(section.text)
        frame = len(section.heading) + 4  # the empty lines around it
        if max_chars * len(section.text) // total - frame < _LEAST_CHARS:
            total -= len(section.text)
            break
        rooms[section] = frame
    for section in article.sections:
        if section in rooms:
            beginning = _cut(section.text, max_chars * len(section.text) // total - rooms[section])
            yield f"{section.heading}\n\n{beginning}".strip()


def _cut(text: str, max_chars: int) -> str:
    """The beginning of `text`, up to the end of a line, else of a word."""
    if len(text) <= max_chars:
        return text
    kept = text[: max_chars - 2]
    for end in ("\n", " "):
        before = kept.rpartition(end)[0].rstrip()
        if len(before) >= max_chars // 2:
            return f"{before} …"
    return f"{kept} …"
