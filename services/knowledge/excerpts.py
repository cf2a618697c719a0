"""Fits sources into a prompt: short ones whole, long ones as an outline and the best matching passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby

from model.source_ids import bare_name, is_topic
from services.knowledge.library import Source
from services.knowledge.library_search import Search, article_of
from services.knowledge.topic_files import MARKER, block_texts
from services.search import Passage, passages, rank
from services.search.text import Article, is_html
from services.storage import in_thread

EXCERPT_CHARS = 3_000
"""The length of the excerpt of a longer source, even where the whole would fit. For 48 of 50 questions about uv and
flask, the excerpt of a right page holds the answer (with 2,000: 46); the pages are four times as long.
"""
_EXCERPT_CHARS_OF_FEW = {1: 6_000, 2: 3_750}
"""The length of excerpts by the number of sources, if there are few. Of 290 questions about ten documentations, a right
page and the one that search ranks first then answer 277, in 6,150 characters on average; with 3,750 for one, 274.
Neighbours of the passages, or passages whose headings fit, instead of others answer fewer.
"""
_SECTION_CHARS = 3_000
"""The characters added to an excerpt for sections that are requested by their headings."""
_GAP = "[…]"
_CONTENTS = "Contents:\n"
_PAIR = f"{MARKER}\n"
"""The line that begins each conversation of a topic of the team."""
_MAX_CHARS_ON_LOOP = 10_000
"""The length of text that is parsed on the event loop, in a few milliseconds."""
_KEPT_ARTICLES = 32
"""The number of parsed sources that are cached: the same few are asked about again and again."""
_OUTLINE_SHARE = 0.12
"""The share of an excerpt that the outline may take; the rest is for passages."""
_LONG_OUTLINE_SHARE = 0.25
"""The share where the other is enough for the title only: a model asks for sections by the headings that it sees."""


async def fit_sources(
    sources: Sequence[Source], query: str, search: Search, max_chars: int, headings: Sequence[str] = ()
) -> list[Source]:
    """Return `sources` as a model reads them: parsed, and together at most `max_chars` characters long. A source that
    is too long becomes an excerpt: its outline, the sections with these `headings`, and the passages that match `query`
    best, in the order of the document.
    """
    chars = sum(len(source.text) for source in sources)
    if chars <= _MAX_CHARS_ON_LOOP and not any(is_html(bare_name(source.id)) for source in sources):
        articles = [_article_unless_topic(source) for source in sources]  # a thread would cost more
    else:
        articles = await in_thread(lambda: [_article_unless_topic(source) for source in sources])
    full_texts = [
        source.text if article is None else article.markdown for source, article in zip(sources, articles, strict=True)
    ]
    excerpt_chars = _EXCERPT_CHARS_OF_FEW.get(len(sources), EXCERPT_CHARS) + (_SECTION_CHARS if headings else 0)
    enough = [
        len(whole) if article is None else min(len(whole), excerpt_chars)
        for whole, article in zip(full_texts, articles, strict=True)
    ]
    fitted: list[Source] = []
    shares = divide_room(enough, max_chars)
    for source, article, whole, room in zip(sources, articles, full_texts, shares, strict=True):
        title = "" if article is None else article.title
        if len(whole) <= room:
            fitted.append(replace(source, text=whole, title=title))
            continue
        if article is None:
            cut = await in_thread(best_pairs, whole, query, room)
        else:
            cut = excerpt(article, await search.passages_of(source.id, query), room, headings)
        fitted.append(replace(source, text=cut, title=title, is_excerpt=True))
    return fitted


async def fit_with_sections(
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
        articles = ((source.id, _article_unless_topic(source)) for source in sources)
        return any(
            passage.text not in texts[source_id]
            for source_id, article in articles
            if article is not None
            for passage in passages(article)
            if wanted.intersection(_folded_headings(article, passage))
        )

    if not await in_thread(lacks_some):
        return None
    return await fit_sources(sources, query, search, max_chars, headings)


def divide_room(sizes: Sequence[int], room: int) -> list[int]:
    """Divide `room` among texts of these sizes. Each gets its size, or an equal share of what smaller ones leave."""
    shares = [0] * len(sizes)
    left = room
    for done, at in enumerate(sorted(range(len(sizes)), key=sizes.__getitem__)):
        shares[at] = min(sizes[at], left // (len(sizes) - done))
        left -= shares[at]
    return shares


def excerpt(article: Article, best: Sequence[str], room: int, headings: Sequence[str] = ()) -> str:
    """Return an excerpt of at most `room` characters. `best`: the texts of matching passages, best first. Sections with
    one of the `headings`, and their subsections, take precedence over these.
    """
    contents = article.contents(int(room * _OUTLINE_SHARE) - len(_CONTENTS))
    if "\n" not in contents:
        contents = article.contents(int(room * _LONG_OUTLINE_SHARE) - len(_CONTENTS))
    left = room - len(_CONTENTS) - len(contents) - 2
    all_passages = passages(article)
    positions = {passage.text: position for position, passage in enumerate(all_passages)}
    chosen: set[int] = set()
    with_heading: set[int] = set()
    wanted = {heading.strip().casefold() for heading in headings}
    paths = [_folded_headings(article, passage) for passage in all_passages] if wanted else []
    named = [position for position, path in enumerate(paths) if wanted.intersection(path)]
    named_exactly = [position for position in named if paths[position][-1] in wanted]
    for position in dict.fromkeys([*named_exactly, *named, *(positions[text] for text in best if text in positions)]):
        section = all_passages[position].section
        needs = len(all_passages[position].text) + 2 + len(_GAP) + 2
        if section not in with_heading:
            needs += len(article.sections[section].heading) + 2
        if needs > left:
            continue
        chosen.add(position)
        with_heading.add(section)
        left -= needs
    if not chosen:
        return article.markdown[:room]
    body = _lay_out(article, all_passages, sorted(chosen))
    return f"{_CONTENTS}{contents}\n\n{body}" if contents else body


def _folded_headings(article: Article, passage: Passage) -> list[str]:
    return [heading.casefold() for heading in article.sections[passage.section].headings]


def _lay_out(article: Article, all_passages: Sequence[Passage], chosen: Sequence[int]) -> str:
    lines: list[str] = []
    last = -1
    for section, positions in groupby(chosen, key=lambda position: all_passages[position].section):
        for at, position in enumerate(positions):
            if position > last + 1:
                lines.append(_GAP)
            if at == 0 and article.sections[section].headings:
                lines.append(article.sections[section].heading)
            lines.append(all_passages[position].text)
            last = position
    return "\n\n".join(lines)


def best_pairs(topic: str, query: str, room: int) -> str:
    """Return the conversations of a topic file that match `query` best, in their order. Each is whole, and together
    they have at most `room` characters. Blocking.
    """
    if not topic.startswith(_PAIR):
        return topic[:room]
    pairs = [f"{_PAIR}{pair}\n" for pair in block_texts(topic.removesuffix("\n")) if pair]
    chosen: set[int] = set()
    left = room
    for position in rank(pairs, query):
        if len(pairs[position]) <= left:
            chosen.add(position)
            left -= len(pairs[position])
    return "".join(pairs[position] for position in sorted(chosen)) or topic[:room]


@lru_cache(maxsize=_KEPT_ARTICLES)
def _article_unless_topic(source: Source) -> Article | None:
    """Parse a source; None if a model reads it as it is, such as the team's topics, whose form the prompts explain."""
    if is_topic(source.id):
        return None
    article = article_of(source)
    return article if article.sections else None
