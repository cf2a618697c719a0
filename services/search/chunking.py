"""Splits an article into passages, the units that are ranked and quoted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from services.search.text.article import Article, Block, BlockKind, Section

PASSAGE_CHARS = 1_000
"""About what the packaged model reads (256 tokens): the rest of a longer passage would be found by its words alone."""
_MOST_PASSAGES = 20_000
"""Of one source: a file of a few megabytes has fewer."""
_MIN_WORDS = 3
_ANNOUNCEMENT_CHARS = 300
_WORD = re.compile(r"[^\W\d_]{2,}")
_LINKED = re.compile(r"\[([^\[\]\n]*)\]\([^()\n]*\)")
_MANY_LINKS = 4
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s*(?=\S)")


class Passage(NamedTuple):
    """A part of one section, about `PASSAGE_CHARS` long.

    Attributes:
        section: the place of its section in the article.
        headings: of that section, the title of the document first.
        text: Markdown, as people read it.
        quotable: whether it may answer: not so for a list of links.
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

    A passage without a word of prose or code is left out.
    """
    found: list[Passage] = []
    for place, section in enumerate(article.sections):
        headings = tuple(dict.fromkeys((article.title, *section.headings) if article.title else section.headings))
        found += [
            Passage(place, headings, text, is_more_than_links(text)) for text in _texts(section) if has_words(text)
        ]
        if len(found) >= _MOST_PASSAGES:
            break
    return found[:_MOST_PASSAGES]


def is_more_than_links(text: str) -> bool:
    """Return whether the text is more than a list of links: at least as many words stand outside of links as in
    them.
    """
    linked = _LINKED.findall(text)
    return len(linked) < _MANY_LINKS or len(_WORD.findall(_LINKED.sub(" ", text))) >= len(
        _WORD.findall(" ".join(linked))
    )


def has_words(text: str) -> bool:
    return len(_WORD.findall(text, 0, 2_000)) >= _MIN_WORDS


def _texts(section: Section) -> Iterator[str]:
    held: list[str] = []
    size = 0
    for block in section.blocks:
        for piece in _pieces(block):
            # What announces a listing stays with it, up to half as much again.
            room = PASSAGE_CHARS * 3 // 2 if block.kind in {BlockKind.CODE, BlockKind.TABLE} else PASSAGE_CHARS
            if held and size + len(piece) > room and not (len(held) == 1 and _announces(held[0])):
                # A sentence that announces a list or a listing goes with it: without that, neither says anything.
                announced = held.pop() if _announces(held[-1]) else None
                yield "\n\n".join(held)
                held = [announced] if announced else []
                size = len(announced) + 2 if announced else 0
            held.append(piece)
            size += len(piece) + 2
    if held:
        yield "\n\n".join(held)


def _announces(text: str) -> bool:
    """Return whether it says what comes next, or is its title."""
    return len(text) <= _ANNOUNCEMENT_CHARS and text.endswith((":", "：", "**"))


def _pieces(block: Block) -> Iterator[str]:
    """A block, or of a long one pieces of whole items, lines or sentences; each piece of code is fenced."""
    if len(block.text) <= PASSAGE_CHARS * 3 // 2:
        yield block.text
    elif block.kind in {BlockKind.CODE, BlockKind.TABLE} and block.text.startswith("```"):
        opening, _, rest = block.text.partition("\n")
        yield from (
            f"{opening}\n{lines}\n```" for lines in _joined(rest.removesuffix("```").rstrip().split("\n"), "\n")
        )
    elif block.kind is BlockKind.LIST:
        yield from _closed(_joined(_items(block.text), "\n"))
    else:
        yield from _joined([part for part in _SENTENCE_END.split(block.text) if part], " ")


def _items(text: str) -> list[str]:
    """Each with all of its lines. Those of code are not indented."""
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


def _closed(pieces: Iterator[str]) -> Iterator[str]:
    """Code that was cut in two has a fence in each piece."""
    opening = ""
    for each in pieces:
        piece = f"{opening}\n{each}" if opening else each
        fences = [line for line in piece.split("\n") if line.startswith("```")]
        opening = fences[-1] if len(fences) % 2 else ""
        yield f"{piece}\n```" if opening else piece


def _joined(parts: list[str], between: str) -> Iterator[str]:
    held = ""
    for part in parts:
        for start in range(0, max(len(part), 1), PASSAGE_CHARS * 2):
            piece = part[start : start + PASSAGE_CHARS * 2]
            if held and len(held) + len(piece) > PASSAGE_CHARS:
                yield held
                held = ""
            held = f"{held}{between}{piece}" if held else piece
    if held:
        yield held
