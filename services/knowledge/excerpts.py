"""Fits sources into a prompt: short ones whole, long ones as an outline and the passages that match the question
best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby

from services.knowledge.library import Source, bare_name
from services.knowledge.library_search import Search, article_of
from services.knowledge.topic_files import MARKER, block_texts
from services.search import Passage, passages, rank
from services.search.text import Article, is_html
from services.storage import in_thread

EXCERPT_CHARS = 3_000
"""Of a longer source an excerpt of so many characters is given, even where the whole would fit. For 48 of 50 questions
about uv and flask the excerpt of a right page holds what answers them (2,000: 46); the pages are four times as long.
"""
_OF_FEW = {1: 6_000, 2: 3_750}
"""The same for so few sources. Of 290 questions about ten documentations, a right page and the one that search ranks
first then hold what answers 277, in 6,150 characters on average; with 3,750 for one, 274. Neighbours of the passages,
or those whose headings fit, in the place of others: fewer.
"""
_MORE_CHARS = 3_000
"""For sections that are asked for by their headings, besides what else an excerpt shows."""
_GAP = "[…]"
_CONTENTS = "Contents:\n"
_PAIR = f"{MARKER}\n"
"""Begins each conversation of a topic of the team."""
_AT_ONCE_CHARS = 10_000
"""So much text is prepared in a few milliseconds, on the event loop."""
_PREPARED = 32
"""Sources that are kept prepared: the same few are asked about again and again."""
_OUTLINE_SHARE = 0.12
"""Of the room of an excerpt; the rest is for its passages."""
_LONG_OUTLINE_SHARE = 0.25
"""Where that is enough for the title only: a model asks for sections by the headings that it sees."""


async def within(
    sources: Sequence[Source], query: str, search: Search, max_chars: int, headings: Sequence[str] = ()
) -> list[Source]:
    """Return `sources` as a model is given them: parsed, and together at most `max_chars` characters long. A source
    that is too long becomes an excerpt: its outline, then the sections with these `headings` and the passages that fit
    `query` best, in the order of the document.
    """
    chars = sum(len(source.text) for source in sources)
    if chars <= _AT_ONCE_CHARS and not any(is_html(bare_name(source.id)) for source in sources):
        articles = [_shown(source) for source in sources]  # a thread would cost more
    else:
        articles = await in_thread(lambda: [_shown(source) for source in sources])
    pairs = list(zip(sources, articles, strict=True))
    wholes = [source.text if article is None else article.markdown for source, article in pairs]
    excerpted = _OF_FEW.get(len(sources), EXCERPT_CHARS) + (_MORE_CHARS if headings else 0)
    enough = [
        len(whole) if article is None else min(len(whole), excerpted)
        for whole, article in zip(wholes, articles, strict=True)
    ]
    given: list[Source] = []
    for (source, article), whole, room in zip(pairs, wholes, shares(enough, max_chars), strict=True):
        title = "" if article is None else article.title
        if len(whole) <= room:
            given.append(replace(source, text=whole, title=title))
            continue
        if article is None:
            cut = await in_thread(best_pairs, whole, query, room)
        else:
            cut = excerpt(article, await search.passages_of(source.id, query), room, headings)
        given.append(replace(source, text=cut, title=title, is_excerpt=True))
    return given


async def with_sections(
    sources: Sequence[Source],
    shown: Sequence[Source],
    query: str,
    search: Search,
    max_chars: int,
    headings: Sequence[str],
) -> list[Source] | None:
    """Return `sources` with the sections that have these `headings`; None if there are none or `shown` has them all."""

    def lacks_some() -> bool:
        wanted = {heading.strip().casefold() for heading in headings}
        texts = {source.id: source.text for source in shown}
        articles = ((source.id, _shown(source)) for source in sources)
        return any(
            passage.text not in texts[source_id]
            for source_id, article in articles
            if article is not None
            for passage in passages(article)
            if wanted & _path(article, passage)
        )

    if not await in_thread(lacks_some):
        return None
    return await within(sources, query, search, max_chars, headings)


def shares(sizes: Sequence[int], room: int) -> list[int]:
    """Divide `room` among texts of these sizes: each gets what it needs, or an equal part of what the smaller ones
    leave.
    """
    given = [0] * len(sizes)
    left = room
    for number, at in enumerate(sorted(range(len(sizes)), key=sizes.__getitem__)):
        given[at] = min(sizes[at], left // (len(sizes) - number))
        left -= given[at]
    return given


def excerpt(article: Article, best: Sequence[str], room: int, headings: Sequence[str] = ()) -> str:
    """Return an excerpt of at most `room` characters. `best`: the texts of matching passages, best first; sections with
    one of the `headings`, and what is below them, come before.
    """
    contents = article.contents(int(room * _OUTLINE_SHARE) - len(_CONTENTS))
    if "\n" not in contents:
        contents = article.contents(int(room * _LONG_OUTLINE_SHARE) - len(_CONTENTS))
    left = room - len(_CONTENTS) - len(contents) - 2
    cut = passages(article)
    places = {passage.text: place for place, passage in enumerate(cut)}
    chosen: set[int] = set()
    headed: set[int] = set()
    wanted = {heading.strip().casefold() for heading in headings}
    below = [place for place, passage in enumerate(cut) if wanted & _path(article, passage)] if wanted else []
    own = [place for place in below if _path(article, cut[place], last=True) & wanted]
    for place in dict.fromkeys([*own, *below, *(places[text] for text in best if text in places)]):
        section = cut[place].section
        needs = len(cut[place].text) + 2 + len(_GAP) + 2
        if section not in headed:
            needs += len(article.sections[section].heading) + 2
        if needs > left:
            continue
        chosen.add(place)
        headed.add(section)
        left -= needs
    if not chosen:
        return article.markdown[:room]
    body = _laid_out(article, cut, sorted(chosen))
    return f"{_CONTENTS}{contents}\n\n{body}" if contents else body


def _path(article: Article, passage: Passage, *, last: bool = False) -> set[str]:
    path = article.sections[passage.section].headings
    return {heading.casefold() for heading in (path[-1:] if last else path)}


def _laid_out(article: Article, cut: Sequence[Passage], chosen: Sequence[int]) -> str:
    parts: list[str] = []
    last = -1
    for section, places in groupby(chosen, key=lambda place: cut[place].section):
        for at, place in enumerate(places):
            if place > last + 1:
                parts.append(_GAP)
            if at == 0 and article.sections[section].headings:
                parts.append(article.sections[section].heading)
            parts.append(cut[place].text)
            last = place
    return "\n\n".join(parts)


def best_pairs(topic: str, query: str, room: int) -> str:
    """Return the conversations of a topic file that fit `query` best, whole and in their order, at most `room`
    characters. Blocking.
    """
    if not topic.startswith(_PAIR):
        return topic[:room]
    pairs = [f"{_PAIR}{pair}\n" for pair in block_texts(topic.removesuffix("\n")) if pair]
    chosen: set[int] = set()
    left = room
    for place in rank(pairs, query):
        if len(pairs[place]) <= left:
            chosen.add(place)
            left -= len(pairs[place])
    return "".join(pairs[place] for place in sorted(chosen)) or topic[:room]


@lru_cache(maxsize=_PREPARED)
def _shown(source: Source) -> Article | None:
    """None: the source is shown as it is, like the team's topics, whose form the prompts explain."""
    if source.id.startswith("team:"):
        return None
    article = article_of(source)
    return article if article.sections else None
