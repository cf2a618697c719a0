"""Cuts sources into passages that can be quoted, and caches them for the next question."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

from services.knowledge import Source
from services.search import Passage, Postings, passages, terms
from services.storage import in_thread

_CACHED_CHARS = 10_000_000


class Content(NamedTuple):
    text: str
    by_team: bool


class Excerpts(NamedTuple):
    """The passages of a source, and their words."""

    passages: list[Passage]
    postings: Postings


class ExcerptCache:
    """The latest excerpts, of texts with at most `max_chars` characters together. Not for several threads."""

    def __init__(self, max_chars: int) -> None:
        self._max_chars = max_chars
        self._chars = 0
        self._cached: OrderedDict[Content, Excerpts] = OrderedDict()

    def get(self, content: Content) -> Excerpts | None:
        if content in self._cached:
            self._cached.move_to_end(content)
        return self._cached.get(content)

    def put(self, content: Content, excerpts: Excerpts) -> None:
        if content not in self._cached:
            self._chars += len(content.text)
        self._cached[content] = excerpts
        self._cached.move_to_end(content)
        while self._chars > self._max_chars and len(self._cached) > 1:
            oldest, _ = self._cached.popitem(last=False)
            self._chars -= len(oldest.text)


_cache = ExcerptCache(_CACHED_CHARS)


async def excerpts_of(sources: Sequence[Source]) -> dict[str, Excerpts]:
    """The excerpts of `sources` by id. New ones are cut off the event loop: a megabyte takes about a second."""
    contents = {source.id: Content(source.text, source.id.startswith("team:")) for source in sources}
    found = {content: cached for content in contents.values() if (cached := _cache.get(content)) is not None}
    missing = [content for content in dict.fromkeys(contents.values()) if content not in found]
    for content, made in zip(missing, await in_thread(_cut_each, missing) if missing else (), strict=True):
        _cache.put(content, made)
        found[content] = made
    return {source_id: found[content] for source_id, content in contents.items()}


def _cut_each(contents: Sequence[Content]) -> list[Excerpts]:
    return [cut(content) for content in contents]


def cut(content: Content) -> Excerpts:
    found = team_answers(content.text) if content.by_team else passages(content.text)
    # A heading says more about its passage than any sentence in it.
    return Excerpts(found, Postings(terms(passage.heading) * 2 + terms(passage.text) for passage in found))


def team_answers(text: str) -> list[Passage]:
    """One passage for each block of a topic file: what the team answered, under what users asked.

    Only `Team:` turns are quoted, as users may be mistaken.
    """
    found: list[Passage] = []
    for block in text.split("--- QA ---\n"):
        asked: list[str] = []
        answered: list[str] = []
        turns: list[str] | None = None
        for line in block.split("\n"):
            text = line[len("User: ") :]
            if line.startswith("User: "):
                turns = asked
            elif line.startswith("Team: "):
                turns = answered
            elif line.startswith("  "):
                text = line.removeprefix("  ")
            else:
                continue  # headers and empty lines belong to no turn
            if turns is not None:
                turns.append(text)
        if answered:
            found.append(Passage("\n".join(asked), "\n".join(answered)))
    return found
