"""What a model is given of its sources: whole while they fit together, else an outline and the best sections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from services.knowledge.library import Source
from services.knowledge.searching import Search, article_of
from services.search import passages, ranked
from services.search.text import Article, Section
from services.storage import in_thread

_GAP = "[…]"
_PAIR = "--- QA ---\n"
"""Begins each conversation of a topic of the team."""
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
        if article is None:
            cut = await in_thread(best_pairs, whole, query, room)
        else:
            best = await search.sections_of(source.id, query)
            cut = await in_thread(excerpt, article, best, query, room)
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


def excerpt(article: Article, best: Sequence[int], query: str, room: int) -> str:
    """`best`: the places of the sections that fit `query`, best first; empty: the first ones. At most `room`
    characters. Blocking: a section that is too long itself is read again for its best part.
    """
    outline = _outline(article, int(room * _OUTLINE_SHARE))
    left = room - len(outline) - len(_GAP) - 4
    chosen: dict[int, str] = {}
    for place in dict.fromkeys(each for each in best or range(len(article.sections)) if each < len(article.sections)):
        section = article.sections[place]
        if len(_section(section)) > left and chosen:
            continue
        chosen[place] = _part(section, query, max(left, 0))
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


def best_pairs(topic: str, query: str, room: int) -> str:
    """Whole conversations of a topic file, those first that fit `query`; in their order, at most `room` characters.
    Blocking.
    """
    if not topic.startswith(_PAIR):
        return topic[:room]
    pairs = [f"{_PAIR}{pair}" for pair in topic.split(_PAIR) if pair]
    chosen: set[int] = set()
    left = room
    for place in ranked(pairs, query):
        if len(pairs[place]) <= left:
            chosen.add(place)
            left -= len(pairs[place])
    return "".join(pairs[place] for place in sorted(chosen)) or topic[:room]


def _shown(source: Source) -> Article | None:
    """None: the source is shown as it is, like the team's topics, whose form the prompts explain."""
    if source.id.startswith("team:"):
        return None
    article = article_of(source)
    return article if article.sections else None


def _section(section: Section, text: str | None = None) -> str:
    """`text`: what of the section is shown; None: all of it."""
    text = section.text if text is None else text
    if not section.headings:
        return text
    return f"{'#' * min(len(section.headings), 6)} {section.headings[-1]}\n\n{text}".rstrip()


def _part(section: Section, query: str, room: int) -> str:
    """The section if it fits, else from its best passage on."""
    whole = _section(section)
    if len(whole) <= room:
        return whole
    texts = [passage.text for passage in passages(Article("", (section,)))]
    if not texts:
        return whole[:room]
    first = ranked(texts, query)[0]
    return _section(section, "\n\n".join([_GAP] * (first > 0) + texts[first:]))[:room].rstrip()


def _outline(article: Article, room: int) -> str:
    headings = [section.headings for section in article.sections if section.headings]
    text = ""
    for line in ("Contents:", *(f"{'  ' * (len(path) - 1)}- {path[-1]}" for path in headings)):
        if len(text) + len(line) + 1 > room:
            break
        text += f"{line}\n"
    return text.rstrip()
