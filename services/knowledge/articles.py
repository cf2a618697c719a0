"""Prepares a source for search: parses it and cuts it into passages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from services.knowledge.library import Source
from services.knowledge.source_ids import bare_name
from services.knowledge.topic_texts import read_topic
from services.search import PreparedSource, language_of, passages
from services.search.text import Article, read

_TELLING, _TELLING_CHARS = 3, 500
"""How many passages, and characters of them, tell the language of a source."""


def cut_all(sources: Sequence[Source], hashes: Mapping[str, str]) -> list[PreparedSource]:
    """Prepare each source for search. `hashes`: of their texts, by source id."""
    return [cut(source, hashes[source.id]) for source in sources]


def cut(source: Source, text_hash: str) -> PreparedSource:
    """Parse a source and cut it into passages, with its language. Blocking: a megabyte takes a second or two."""
    article = article_of(source)
    found = passages(article)
    return PreparedSource(
        source_id=source.id,
        stamp=source.stamp,
        hash=text_hash,
        title=article.title,
        permalink=article.permalink,
        language=language_of("\n".join(passage.text for passage in found[:_TELLING])[:_TELLING_CHARS]),
        passages=found,
        sections=article.sections,
    )


def article_of(source: Source) -> Article:
    return read_topic(source.text) if source.id.startswith("team:") else read(bare_name(source.id), source.text)
