"""All sources of a library, cut into passages and indexed for search."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from clock import now
from services.knowledge import IndexEntry, Library, Source, SourceUnavailable
from services.search import Fit, Passage, Postings, Query, passages, rank, terms
from services.storage import in_thread

_CACHED_CHARS = 10_000_000


class Content(NamedTuple):
    text: str
    by_team: bool


class Excerpts(NamedTuple):
    """The passages of a source, and their words."""

    passages: list[Passage]
    postings: Postings


class RankedPassage(NamedTuple):
    source_id: str
    passage: Passage
    fit: Fit


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
    for content, made in zip(
        missing, await in_thread(lambda: [cut(each) for each in missing]) if missing else (), strict=True
    ):
        _cache.put(content, made)
        found[content] = made
    return {source_id: found[content] for source_id, content in contents.items()}


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


_REFRESH_SECONDS = 60.0
"""For so long a changed file may be ranked by its old text; what is quoted is always read anew."""
_MAX_CHARS = 4_000_000
"""Of all sources together: about four seconds of work, once, off the event loop. The rest is found by description."""


class Corpus:
    """The passages of a library, read when a question needs them. `postings` tell how common words are."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._index: Sequence[IndexEntry] = ()
        self._read_at = float("-inf")
        self._passages: list[tuple[str, Passage]] = []
        self.postings = Postings(())
        self._last: tuple[Query, list[Fit]] | None = None
        self._reading = asyncio.Lock()

    async def search(self, query: Query, among: Iterable[str] | None = None) -> list[RankedPassage]:
        """Sources by their best passage, best first. `among`: the ids to search; None for all."""
        await self.refresh()
        wanted = None if among is None else frozenset(among)
        best: dict[str, RankedPassage] = {}
        for fit in self._ranked(query):
            source_id, passage = self._passages[fit.place]
            if source_id not in best and (wanted is None or source_id in wanted):
                best[source_id] = RankedPassage(source_id, passage, fit)
        return list(best.values())

    async def refresh(self) -> None:
        """Read the library again if the index has changed, or after a minute."""
        index = await self._library.index()
        if self._is_fresh(index):
            return
        async with self._reading:
            if not self._is_fresh(index):
                self._passages, self.postings = await self._read(index)
                self._index, self._read_at, self._last = index, now(), None

    def _is_fresh(self, index: Sequence[IndexEntry]) -> bool:
        return index is self._index and now() - self._read_at < _REFRESH_SECONDS

    def _ranked(self, query: Query) -> list[Fit]:
        # The gate and the selection of one question search for the same.
        if self._last is None or self._last[0] is not query:
            self._last = (query, rank(query, [self.postings]))
        return self._last[1]

    async def _read(self, index: Sequence[IndexEntry]) -> tuple[list[tuple[str, Passage]], Postings]:
        sources: dict[str, Source] = {}
        room = _MAX_CHARS
        for entry in index:
            source = await self._load(entry.id) if room > 0 else None
            if source is not None:
                sources[entry.id] = source
                room -= len(source.text)
        cuts = await excerpts_of(list(sources.values()))
        found = [(entry.id, cuts[entry.id] if entry.id in sources else _described(entry)) for entry in index]
        passages = [(source_id, passage) for source_id, excerpts in found for passage in excerpts.passages]
        return passages, Postings.joined(excerpts.postings for _, excerpts in found)

    async def _load(self, source_id: str) -> Source | None:
        try:
            return await self._library.load(source_id)
        except SourceUnavailable:
            return None  # selecting it reports why


def _described(entry: IndexEntry) -> Excerpts:
    passage = Passage(entry.id.partition(":")[2], entry.description)
    return Excerpts([passage], Postings([terms(passage.heading) + terms(passage.text)]))
