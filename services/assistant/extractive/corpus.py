"""All sources of a library, cut into passages and indexed for search."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from clock import now
from services.assistant.extractive.excerpting import Excerpts, excerpts_of
from services.assistant.extractive.quoting import RankedPassage
from services.knowledge import IndexEntry, Library, Source, SourceUnavailable
from services.search import Fit, Passage, Postings, Query, rank, terms

_REFRESH_SECONDS = 60.0
"""For so long a changed file may be ranked by its old text; what is quoted is always read anew."""
_MAX_CHARS = 4_000_000
"""Of all sources together: about four seconds of work, once, off the event loop. The rest is found by description."""


class Corpus:
    """The passages of a library, read when a question needs them.

    Attributes:
        postings: of all passages; tell how common words are.
    """

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
