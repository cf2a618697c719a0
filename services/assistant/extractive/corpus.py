"""All sources of a library, cut into passages and ready to be searched."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from clock import now
from services.assistant.extractive.excerpting import Excerpts, cut, kept_cuts
from services.knowledge import IndexEntry, Library, Source, SourceUnavailable
from services.search import Fit, Passage, Postings, Query, rank, terms
from services.storage import in_thread

_READ_AGAIN_SECONDS = 60.0
"""How long a changed file may go unnoticed in choosing; what is quoted is always read anew."""
_MOST_CHARS = 4_000_000
"""Of all sources together: about four seconds of work, once, off the event loop. Of the rest the descriptions count."""


@dataclass(frozen=True, slots=True)
class RankedPassage:
    source_id: str
    passage: Passage
    fit: Fit


class _Contents:
    """One state of the library."""

    def __init__(self, passages: list[tuple[str, Passage]], corpora: Iterable[Postings]) -> None:
        self.passages = passages
        """With their source ids."""
        self.corpus = Postings.joined(corpora)
        self._last: tuple[Query, list[Fit]] | None = None

    def ranked(self, query: Query) -> list[Fit]:
        """All passages, best first. The gate and the selection of one question ask the same."""
        if self._last is None or self._last[0] is not query:
            self._last = (query, rank(query, [self.corpus]))
        return self._last[1]


class Corpus:
    def __init__(self, library: Library) -> None:
        self._library = library
        self._index: Sequence[IndexEntry] = ()
        self._read_at = float("-inf")
        self._contents = _Contents([], ())
        self._reading = asyncio.Lock()

    @property
    def corpus(self) -> Postings:
        """Tells how common words are."""
        return self._contents.corpus

    async def search(self, query: Query, among: Iterable[str] | None = None) -> list[RankedPassage]:
        """Sources by their best passage, best first; of `among` only, where it is given."""
        await self.refresh()
        contents = self._contents
        wanted = None if among is None else frozenset(among)
        best: dict[str, RankedPassage] = {}
        for fit in contents.ranked(query):
            source_id, passage = contents.passages[fit.place]
            if source_id not in best and (wanted is None or source_id in wanted):
                best[source_id] = RankedPassage(source_id, passage, fit)
        return list(best.values())

    async def refresh(self) -> None:
        """Read the library again if the index has changed, or some time has passed."""
        index = await self._library.index()
        if self._is_fresh(index):
            return
        async with self._reading:
            if self._is_fresh(index):
                return
            self._contents = await self._read(index)
            self._index, self._read_at = index, now()

    def _is_fresh(self, index: Sequence[IndexEntry]) -> bool:
        return index is self._index and now() - self._read_at < _READ_AGAIN_SECONDS

    async def _read(self, index: Sequence[IndexEntry]) -> _Contents:
        texts: list[tuple[IndexEntry, Source | None]] = []
        room = _MOST_CHARS
        for entry in index:
            source = await self._load(entry.id) if room > 0 else None
            room -= 0 if source is None else len(source.text)
            texts.append((entry, source))
        cuts = await cut_all([source for _, source in texts if source is not None])
        passages: list[tuple[str, Passage]] = []
        corpora: list[Postings] = []
        for entry, source in texts:
            piece = _described(entry) if source is None else cuts[source.id]
            passages.extend((entry.id, passage) for passage in piece.passages)
            corpora.append(piece.corpus)
        return _Contents(passages, corpora)

    async def _load(self, source_id: str) -> Source | None:
        try:
            return await self._library.load(source_id)
        except SourceUnavailable:
            return None  # whoever selects it hears why


async def cut_all(sources: Sequence[Source]) -> dict[str, Excerpts]:
    """The cuts of `sources` by id. What is new is cut off the event loop: a large source takes a second."""
    kept = {source.id: kept_cuts.get(source.content) for source in map(_Keyed, sources)}
    missing = [source for source in map(_Keyed, sources) if kept[source.id] is None]
    made = await in_thread(_cut_each, missing) if missing else []
    for source, piece in zip(missing, made, strict=True):
        kept_cuts.keep(source.content, piece)
        kept[source.id] = piece
    return {source_id: piece for source_id, piece in kept.items() if piece is not None}


class _Keyed:
    def __init__(self, source: Source) -> None:
        self.id = source.id
        self.content = (source.text, source.id.startswith("team:"))


def _cut_each(sources: list[_Keyed]) -> list[Excerpts]:
    return [cut(source.content) for source in sources]


def _described(entry: IndexEntry) -> Excerpts:
    passage = Passage(entry.id.partition(":")[2], entry.description)
    return Excerpts([passage], Postings([terms(passage.heading) + terms(passage.text)]))
