"""Searches a library by words and by meaning, and keeps the passages of its sources up to date."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncGenerator, Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, Protocol

from clock import now
from model.bounded import Bounded
from services.knowledge.cache import hash_text
from services.knowledge.index_file import IndexEntry
from services.knowledge.library import Library, Source, SourceUnavailable, bare_name, is_unchanged
from services.knowledge.topic_files import read_topic
from services.search import (
    ENGLISH,
    NOTHING,
    Hit,
    Level,
    PassageStore,
    PreparedSource,
    QueryVector,
    SearchResult,
    StoredPassage,
    find,
    language_of,
    passages,
    retrieval,
    words_to_search,
)
from services.search.embedding import Embedder, EmbeddingFailed, Match, Matcher, PackagedEmbedder
from services.search.text import Article, read
from services.storage import in_thread
from services.telemetry import number_of

_TELLING, _TELLING_CHARS = 3, 500
"""How many passages, and characters of them, tell the language of a source."""


def _by_size(sources: Sequence[Source]) -> Iterator[list[Source]]:
    """Yield the sources in turn, together so many that preparing them takes a moment: whoever stops waiting for it
    loses no more than that.
    """
    some: list[Source] = []
    for source in sources:
        some.append(source)
        if sum(len(each.text) for each in some) > _CHARS_AT_ONCE:
            yield some
            some = []
    if some:
        yield some


def prepare_sources(sources: Sequence[Source], hashes: Mapping[str, str]) -> list[PreparedSource]:
    """Prepare each source for search. `hashes`: of their texts, by source id."""
    return [prepare_source(source, hashes[source.id]) for source in sources]


def prepare_source(source: Source, text_hash: str) -> PreparedSource:
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


log = logging.getLogger(__name__)

REFRESH_SECONDS = 60.0
"""For so long a changed file may be found by its old text."""
_AT_ONCE = 32
"""Sources that are loaded before some are written, and passages that are embedded."""
_CHARS_AT_ONCE = 200_000
"""Of sources that are prepared between two writes."""
_LOOKED_UP = 1_000
_FEW = 300
"""Passages that a question waits for where nothing embeds them beside it: some seconds."""
_KEPT_ANSWERS = 64
_CLOSELY, _NEAR = 8, 2.0
"""So many passages are compared word by word, and what that counts beside their score. Of 134 questions about nine
documentations the first passage then has the words of the answer for 84 (76 without; 77 with half, 79 with 1, 85 with
4).
"""
_MEANING_CHARS = 1_200
"""Of a question, turned into a vector: more than the packaged model reads."""
_NAMESPACES = ("team:", "kb:")


class Search(Protocol):
    async def find(self, query: str) -> SearchResult:
        """Find the passages of a library that fit `query`, best first."""
        ...

    async def section(self, kept: StoredPassage) -> Sequence[StoredPassage]:
        """Return all passages of the section that a passage belongs to, in order."""
        ...

    async def passages_of(self, source_id: str, query: str) -> Sequence[str]:
        """Return the texts of the passages of one source that fit `query`, best first."""
        ...

    async def rerank(self, hits: Sequence[Hit], query: str) -> Sequence[Hit]:
        """Return `hits` with the first few reordered by how well they match `query` word by word."""
        ...


@dataclass(slots=True)
class LibrarySearch:
    """A `Search` over `library` that updates its passage stores when sources change.

    Attributes:
        team, kb: where the passages of its two namespaces are kept.
        embedder: None: words only.
        alone: nothing else keeps the passages up to date, so that a question waits for a few vectors.
        beside: what is searched as well, as if it were one library, and kept up to date by itself: for the library of
            one server the shared one.
    """

    library: Library
    team: PassageStore
    kb: PassageStore
    embedder: Embedder | None = None
    alone: bool = True
    beside: LibrarySearch | None = None
    _index: Sequence[IndexEntry] = ()
    _read_at: float = float("-inf")
    _ids: frozenset[str] = frozenset()
    _begun: tuple[int, ...] = (0, 0)
    _failing: set[PassageStore] = field(default_factory=set[PassageStore])
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _found: Bounded[str, tuple[Hashable, SearchResult]] = field(default_factory=lambda: Bounded(_KEPT_ANSWERS))

    @property
    def stores(self) -> tuple[PassageStore, PassageStore]:
        """The two stores that this search keeps up to date."""
        return self.team, self.kb

    @property
    def searched(self) -> tuple[PassageStore, ...]:
        """All stores that are searched: its own and those of `beside`."""
        return self.stores if self.beside is None else (*self.stores, *self.beside.stores)

    @property
    def findable(self) -> frozenset[str]:
        """The ids of the sources that may be found, as of the last refresh."""
        return self._ids if self.beside is None else self._ids | self.beside.findable

    @property
    def state(self) -> Hashable:
        """Changes with whatever a search depends on: the stored passages, and the sources that may be found."""
        return tuple(store.version for store in self.searched), self.findable

    @property
    def needs_rebuilding(self) -> bool:
        """True if one of its stores was emptied since the last refresh, so that it has to be filled again."""
        return self._begun != self._beginnings or (self.beside is not None and self.beside.needs_rebuilding)

    async def find(self, query: str) -> SearchResult:
        await self.refresh()
        # The gate and the selection of one question search for the same. A result is given again for as long as the
        # state is the one that its search began with.
        state = self.state
        known = self._found.get(query)
        if known is not None and known[0] == state:
            return known[1]
        found, whole = await self._find(query, self.findable)
        if whole:
            self._found[query] = state, found
        return found

    async def section(self, kept: StoredPassage) -> Sequence[StoredPassage]:
        if self.beside is not None and kept.source_id in self.beside.findable:
            return await self.beside.section(kept)
        store = self.team if kept.source_id.startswith("team:") else self.kb
        return await in_thread(store.section, kept.source_id, kept.section)

    async def load(self, source_id: str) -> Source:
        """Return the whole text of a source that may be found. Raises SourceUnavailable."""
        if self.beside is not None and source_id in self.beside.findable:
            return await self.beside.load(source_id)
        return await self.library.load(source_id)

    async def passages_of(self, source_id: str, query: str) -> Sequence[str]:
        await self.refresh()
        return [hit.passage.text for hit in (await self.find_among(query, frozenset({source_id}))).hits]

    async def find_among(self, query: str, among: Collection[str]) -> SearchResult:
        """Like `find`, but only among these sources, and without refreshing first."""
        found, _ = await self._find(query, self.findable & frozenset(among))
        return found

    async def find_in(self, namespace: Literal["team", "kb"], query: str, meaning: QueryVector | None) -> Sequence[Hit]:
        """Return the passages of one namespace that fit `query`, best first, without refreshing first. `meaning`: the
        vector of the query, by this search's embedder; None: words only.
        """

        def look_up() -> SearchResult:
            return find(self._of(namespace), query, meaning, self.findable)

        found = await in_thread(look_up)
        while self.needs_rebuilding:  # as it was read
            await self.refresh()
            found = await in_thread(look_up)
        return found.hits

    async def rerank(self, hits: Sequence[Hit], query: str) -> Sequence[Hit]:
        """Reorder the first few hits word by word; unchanged where the embedder cannot match words, or outside of
        English.
        """
        text = words_to_search(query)[:_MEANING_CHARS]
        near = [hit for hit in hits[:_CLOSELY] if hit.cosine is not None]
        if not near or not isinstance(self.embedder, Matcher) or language_of(text) != ENGLISH:
            return hits
        try:
            matches = await self.embedder.match(text, [hit.passage.with_heading for hit in near])
        except EmbeddingFailed as error:
            log.warning("passages stay in the order of the search: %s", error)
            return hits
        worth = {hit: hit.score + _NEAR * match.near for hit, match in zip(near, matches, strict=True)}
        return [*sorted(near, key=lambda hit: -worth[hit]), *hits[len(near) :]]

    async def refresh(self) -> None:
        """Update the passages of changed sources, if the index has changed or a minute has passed.

        Where passages cannot be written, search goes on with those that there are. This is logged once, and tried again
        a minute later.
        """
        if self.beside is not None:
            await self.beside.refresh()
        index = await self.library.index()
        if self._is_fresh(index):
            return
        async with self._turn:
            while not self._is_fresh(index):
                self._begun = self._beginnings  # a file may be lost meanwhile
                await self._bring_up_to_date(index)
                self._index, self._read_at, self._ids = index, now(), frozenset(entry.id for entry in index)
        if self.alone:
            await self.embed(only_if_fewer_than=_FEW)

    @asynccontextmanager
    async def team_passages_dropped(self) -> AsyncGenerator[None]:
        """Drop all passages of team topics, run the block, then read the topics again. Raises OSError: the file cannot
        be deleted.
        """
        async with self._turn:
            await in_thread(self.team.empty_file)
            yield
        await self.refresh()
        try:
            await self._write(self.team, self.team.forget_unused_vectors)
        except (sqlite3.Error, OSError) as error:
            self._cannot_write(self.team, error)

    async def unembedded(self) -> int:
        """Return how many passages have no vector yet."""
        if self.embedder is None:
            return 0
        return sum([await in_thread(store.count_unembedded, self.embedder.id) for store in self.stores])

    async def embed(
        self, *, only_if_fewer_than: int | None = None, on_done: Callable[[int], object] | None = None
    ) -> int:
        """Compute the missing vectors of passages, and return how many were computed; none if `only_if_fewer_than` or
        more are missing. `on_done`: called after each batch with the number of vectors in it.
        """
        if self.embedder is None:
            return 0
        done = 0
        for store in self.stores:
            try:
                async for count in self._embedded(store, self.embedder, only_if_fewer_than):
                    done += count
                    if on_done is not None:
                        on_done(count)
            except EmbeddingFailed as error:
                log.warning("search goes by words only: %s", error)
                break
            except (sqlite3.Error, OSError) as error:
                self._cannot_write(store, error)
        return done

    def close(self) -> None:
        for store in self.stores:
            store.close()

    @property
    def _beginnings(self) -> tuple[int, ...]:
        return tuple(store.times_emptied for store in self.stores)

    def _is_fresh(self, index: Sequence[IndexEntry]) -> bool:
        recent = index is self._index and now() - self._read_at < REFRESH_SECONDS
        return recent and self._begun == self._beginnings

    async def _find(self, query: str, among: frozenset[str]) -> tuple[SearchResult, bool]:
        """Return the result, and whether it is complete (with vectors, if there is an embedder) and may be cached."""
        text = words_to_search(query)
        if not text:
            return NOTHING, True
        meaning = await self._meaning(text)
        found, team = await in_thread(partial(self._looked_up, text, meaning, among))
        while self.needs_rebuilding:  # as it was read
            await self.refresh()
            found, team = await in_thread(partial(self._looked_up, text, meaning, among))
        whole = meaning is not None or self.embedder is None
        return await self._with_answers_of_team(found, team, text, meaning), whole

    def _looked_up(
        self, text: str, meaning: QueryVector | None, among: frozenset[str]
    ) -> tuple[SearchResult, SearchResult]:
        """What is found in all, its confidence that of the documents; and what among the team's answers. Each of the
        two is weighed by itself: what is rare in a handful of answers need not be in a thousand pages. Blocking.
        """
        team = find(self._of("team"), text, meaning, among)
        if not team.hits:
            return find(self.searched, text, meaning, among), team
        documents = find(self._of("kb"), text, meaning, among)
        whole = find(self.searched, text, meaning, among) if documents.hits else team
        return documents._replace(hits=whole.hits, documents=documents.hits), team

    def _of(self, namespace: Literal["team", "kb"]) -> list[PassageStore]:
        every = [self] if self.beside is None else [self, self.beside]
        return [each.team if namespace == "team" else each.kb for each in every]

    async def _with_answers_of_team(
        self, found: SearchResult, team: SearchResult, text: str, meaning: QueryVector | None
    ) -> SearchResult:
        hits = retrieval.team_candidates(team)
        if not hits:
            return found
        matches: Sequence[Match] = ()
        if meaning is not None and meaning.calibrated and isinstance(self.embedder, Matcher):
            try:
                given = [hit.passage.with_heading for hit in hits]
                matches = await self.embedder.match(text[:_MEANING_CHARS], given)
            except EmbeddingFailed as error:
                log.warning("the team's answers are looked up by their words only: %s", error)
        answers = retrieval.judge_team_answers(hits, matches)
        best = answers[0]
        surer = best.confidence > found.confidence and best.level is not Level.SILENCE
        if best.level is Level.ANSWER or (surer and found.level is not Level.ANSWER):
            found = found._replace(confidence=max(best.confidence, found.confidence), level=best.level)
        return found._replace(team_answers=tuple(answers))

    async def _meaning(self, text: str) -> QueryVector | None:
        if self.embedder is None:
            return None
        try:
            vectors = await self.embedder.embed([text[:_MEANING_CHARS]])
        except EmbeddingFailed as error:
            log.warning("a question is looked up by its words only: %s", error)
            return None
        calibrated = self.embedder.id == PackagedEmbedder.ID and language_of(text) == ENGLISH
        return QueryVector(vectors[0], self.embedder.id, calibrated)

    async def _bring_up_to_date(self, index: Sequence[IndexEntry]) -> None:
        for store, namespace in zip(self.stores, _NAMESPACES, strict=True):
            entries = [entry for entry in index if entry.id.startswith(namespace)]
            try:
                await self._update(store, entries)
            except (sqlite3.Error, OSError) as error:
                self._cannot_write(store, error)

    async def _update(self, store: PassageStore, entries: Sequence[IndexEntry]) -> None:
        known = await in_thread(store.sources)
        wanted = {entry.id: entry for entry in entries}
        due = await in_thread(lambda: [i for i in wanted if i not in known or not is_unchanged(known[i][0])])
        gone = [source_id for source_id in known if source_id not in wanted]
        if gone:
            await self._write(store, partial(store.change, (), drop=gone))
        changed = 0
        for start in range(0, len(due), _AT_ONCE):
            sources = [await self._load(wanted[source_id]) for source_id in due[start : start + _AT_ONCE]]
            hashes = {source.id: hash_text(source.text) for source in sources}
            same = {s.id: s.stamp for s in sources if s.id in known and known[s.id][1] == hashes[s.id]}
            new = [source for source in sources if source.id not in same]
            if same:
                await self._write(store, partial(store.change, (), stamps=same))
            for some in _by_size(new):
                cuts = await in_thread(prepare_sources, some, hashes)
                await self._write(store, partial(store.change, cuts))
                changed += len(cuts)
        if changed or gone:
            await self._write(store, store.forget_unused_vectors)
            log.info("search: %s prepared, %d gone", number_of(changed, "source"), len(gone))

    async def _embedded(
        self, store: PassageStore, embedder: Embedder, only_if_fewer_than: int | None
    ) -> AsyncGenerator[int]:
        """How many passages got their vectors, each time that some did."""
        if only_if_fewer_than is not None:
            left = await in_thread(store.unembedded, embedder.id, only_if_fewer_than)
            if len(left) >= only_if_fewer_than:
                return
        # Looking for them costs a walk through all passages: not for each few of them.
        while left := await in_thread(store.unembedded, embedder.id, _LOOKED_UP):
            for start in range(0, len(left), _AT_ONCE):
                some = left[start : start + _AT_ONCE]
                vectors = await embedder.embed([text for _, text in some])
                rows = {key: vector for (key, _), vector in zip(some, vectors, strict=True)}
                await self._write(store, partial(store.store_vectors, embedder.id, rows))
                yield len(some)

    async def _write(self, store: PassageStore, work: Callable[[], None]) -> None:
        """Raises sqlite3.Error, OSError."""
        await in_thread(work)
        if store in self._failing:
            self._failing.discard(store)
            log.info("%s can be written again", store.path)

    def _cannot_write(self, store: PassageStore, error: sqlite3.Error | OSError) -> None:
        """Once, until it can be written again."""
        if store not in self._failing:
            self._failing.add(store)
            log.warning("%s; search goes on with what is in it", store.trouble(error))

    async def _load(self, entry: IndexEntry) -> Source:
        """Of a source that cannot be read the description: selecting it reports why."""
        try:
            return await self.library.load(entry.id)
        except SourceUnavailable:
            return Source(entry.id, entry.description)
