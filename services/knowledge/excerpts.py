"""What a model is given of its sources: whole while they fit together, else an outline and the best sections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from services.knowledge.library import Source
from services.knowledge.searching import Search, article_of
from services.search.text import Article, Section
from services.storage import in_thread

_GAP = "[…]"
_OUTLINE_SHARE = 0.15
"""Of the room of an excerpt; the rest is for its sections."""


async def within(sources: Sequence[Source], query: str, search: Search, max_chars: int) -> list[Source]:
    """`sources` as they are shown to a model: prepared, and together at most `max_chars` characters long. Those that
    are too long become excerpts: the sections that fit `query` best, in their order, below the outline.
    """
    articles = await in_thread(lambda: [_shown(source) for source in sources])
    wholes = [
        source.text if article is None else rendered(article) for source, article in zip(sources, articles, strict=True)
    ]
    rooms = shares([len(whole) for whole in wholes], max_chars)
    given: list[Source] = []
    for source, article, whole, room in zip(sources, articles, wholes, rooms, strict=True):
        title = "" if article is None else article.title
        if len(whole) <= room:
            given.append(replace(source, text=whole, title=title))
            continue
        best = await search.sections_of(source.id, query)
        cut = whole[:room] if article is None else excerpt(article, best, room)
        given.append(replace(source, text=cut, title=title, is_excerpt=True))
    return given


def shares(sizes: Sequence[int], room: int) -> list[int]:
    """How much of `room` each gets: what it needs, or else an equal part of what the smaller ones leave."""
    given = [0] * len(sizes)
    left = room
    for rank, at in enumerate(sorted(range(len(sizes)), key=sizes.__getitem__)):
        given[at] = min(sizes[at], left // (len(sizes) - rank))
        left -= given[at]
    return given


def rendered(article: Article) -> str:
    """Markdown: headings and what stands below them."""
    return "\n\n".join(_section(section) for section in article.sections)


def excerpt(article: Article, best: Sequence[int], room: int) -> str:
    """`best`: the places of the sections that fit, best first. At most `room` characters."""
    outline = _outline(article, int(room * _OUTLINE_SHARE))
    left = room - len(outline) - 2
    chosen: dict[int, str] = {}
    for place in dict.fromkeys(each for each in best if each < len(article.sections)):
        text = _section(article.sections[place])
        if len(text) > left and chosen:
            continue
        chosen[place] = text[: max(left, 0)]
        left -= len(chosen[place]) + len(_GAP) + 4
        if left <= 0:
            break
    parts, last = [outline] if outline else [], -1
    for place in sorted(chosen):
        if place > last + 1:
            parts.append(_GAP)
        parts.append(chosen[place])
        last = place
    return "\n\n".join(parts)[:room]


def _shown(source: Source) -> Article | None:
    """None: the source is shown as it is, like the team's topics, whose form the prompts explain."""
    if source.id.startswith("team:"):
        return None
    article = article_of(source)
    return article if article.sections else None


def _section(section: Section) -> str:
    if not section.headings:
        return section.text
    return f"{'#' * min(len(section.headings), 6)} {section.headings[-1]}\n\n{section.text}".rstrip()


def _outline(article: Article, room: int) -> str:
    lines = ["Contents:"]
    for section in article.sections:
        if section.headings:
            lines.append(f"{'  ' * (len(section.headings) - 1)}- {section.headings[-1]}")
    text = ""
    for line in lines:
        if len(text) + len(line) + 1 > room:
            break
        text += f"{line}\n"
    return text.rstrip()
