"""Splits an article into passages, the units that are ranked and quoted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from services.search.text.article import Article, Block, BlockKind, Section

PASSAGE_CHARS = 1_000
"""About what the packaged model reads (256 tokens): the rest of a longer passage would be found by its words alone."""
_MOST_PASSAGES = 20_000
"""The most passages of one source: a file of a few megabytes has fewer."""
_MIN_WORDS = 3
_ANNOUNCEMENT_CHARS = 300
_WORD = re.compile(r"[^\W\d_]{2,}")
_LINK = re.compile(r"\[([^\[\]\n]*)\]\([^()\n]*\)")
_MANY_LINKS = 4
_SENTENCE = re.compile(r".+?(?:[.!?](?=\s)|[。！？]|\Z)\s*", re.DOTALL)
"""A sentence with the white space behind it. A `.` within a word, as in `docs.example.com`, ends none."""


class Passage(NamedTuple):
    """A part of one section, about `PASSAGE_CHARS` long.

    Attributes:
        section: the index of its section in the article.
        headings: of that section, the title of the document first.
        text: Markdown, as people read it.
        quotable: False for a list of links: it is found, but never shown as an answer.
    """

    section: int
    headings: tuple[str, ...]
    text: str
    quotable: bool = True

    @property
    def heading(self) -> str:
        return " › ".join(self.headings)

    @property
    def with_heading(self) -> str:
        """The text that is embedded: the headings and the passage, which hardly ever repeats them."""
        return f"{self.heading}\n{self.text}" if self.headings else self.text


def passages(article: Article) -> list[Passage]:
    """Split an article into passages: whole blocks, as many as fit; a table or a listing stays with the text before it.

    A passage of fewer than three words is left out.
    """
    found: list[Passage] = []
    for number, section in enumerate(article.sections):
        headings = tuple(dict.fromkeys((article.title, *section.headings) if article.title else section.headings))
        found += [
            Passage(number, headings, text, is_more_than_links(text))
            for text in _passage_texts(section)
            if has_words(text)
        ]
        if len(found) >= _MOST_PASSAGES:
            break
    return found[:_MOST_PASSAGES]


def is_more_than_links(text: str) -> bool:
    """Return False for a list of links: four or more, with more words in them than outside."""
    links = _LINK.findall(text)
    return len(links) < _MANY_LINKS or len(_WORD.findall(_LINK.sub(" ", text))) >= len(_WORD.findall(" ".join(links)))


def has_words(text: str) -> bool:
    return len(_WORD.findall(text, 0, 2_000)) >= _MIN_WORDS


def _passage_texts(section: Section) -> Iterator[str]:
    pieces: list[str] = []
    size = 0
    for block in section.blocks:
        # A listing stays with the text before it, up to half as much again.
        room = PASSAGE_CHARS * 3 // 2 if block.kind in {BlockKind.CODE, BlockKind.TABLE} else PASSAGE_CHARS
        for piece in _split_block(block):
            if pieces and size + len(piece) > room and not (len(pieces) == 1 and _announces_next(pieces[0])):
                # A sentence that announces a list or a listing stays with it: neither makes sense alone.
                announcement = pieces.pop() if _announces_next(pieces[-1]) else None
                yield "\n\n".join(pieces)
                pieces = [announcement] if announcement else []
                size = len(announcement) + 2 if announcement else 0
            pieces.append(piece)
            size += len(piece) + 2
    if pieces:
        yield "\n\n".join(pieces)


def _announces_next(text: str) -> bool:
    return len(text) <= _ANNOUNCEMENT_CHARS and text.endswith((":", "：", "**"))


def _split_block(block: Block) -> Iterator[str]:
    """Split a long block into pieces of whole items, lines or sentences; each piece of code is fenced."""
    if len(block.text) <= PASSAGE_CHARS * 3 // 2:
        yield block.text
    elif block.kind in {BlockKind.CODE, BlockKind.TABLE} and block.text.startswith("```"):
        opening, _, rest = block.text.partition("\n")
        yield from (
            f"{opening}\n{lines}\n```" for lines in _join_to_size(rest.removesuffix("```").rstrip().split("\n"), "\n")
        )
    elif block.kind is BlockKind.LIST:
        yield from _close_fences(_join_to_size(_list_items(block.text), "\n"))
    else:
        yield from filter(None, map(str.strip, _join_to_size(_SENTENCE.findall(block.text), "")))


def _list_items(text: str) -> list[str]:
    """Split a list into items, each with all of its lines. Lines of code are not indented."""
    items: list[str] = []
    fence = ""
    for line in text.split("\n"):
        if items and (fence or line.startswith((" ", "\t", "```")) or not line.strip()):
            items[-1] += f"\n{line}"
        else:
            items.append(line)
        if fence:
            fence = "" if line.strip() == fence else fence
        elif line.startswith("```"):
            fence = line[: len(line) - len(line.lstrip("`"))]
    return items


def _close_fences(pieces: Iterator[str]) -> Iterator[str]:
    """Fence both halves of code that was cut in two."""
    opening = ""
    for each in pieces:
        piece = f"{opening}\n{each}" if opening else each
        fences = [line for line in piece.split("\n") if line.startswith("```")]
        opening = fences[-1] if len(fences) % 2 else ""
        yield f"{piece}\n```" if opening else piece


def _join_to_size(parts: list[str], separator: str) -> Iterator[str]:
    """Join parts to texts of `PASSAGE_CHARS`; a part of more than twice that is cut."""
    joined = ""
    for part in parts:
        for start in range(0, max(len(part), 1), PASSAGE_CHARS * 2):
            piece = part[start : start + PASSAGE_CHARS * 2]
            if joined and len(joined) + len(piece) > PASSAGE_CHARS:
                yield joined
                joined = ""
            joined = f"{joined}{separator}{piece}" if joined else piece
    if joined:
        yield joined
