"""Searches a library by words and by meaning, and keeps the passages of its sources up to date."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncGenerator, Callable, Collection, Generator, Hashable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, Protocol, TypeVar

from clock import now
from model.bounded import BoundedDict
from model.source_ids import DOCUMENT, TOPIC, bare_name, is_topic
from services.knowledge.cache import hash_text
from services.knowledge.index_file import IndexEntry
from services.knowledge.library import Library, Source, SourceUnavailable, is_unchanged
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

T = TypeVar("T")

_LANGUAGE_PASSAGES, _LANGUAGE_CHARS = 3, 500
"""The number of passages, and of their characters, from which the language of a source is detected."""


def _split_by_size(sources: Sequence[Source]) -> Iterator[list[Source]]:
    """Yield groups of sources that take a moment to prepare: a caller that is cancelled loses at most one group."""
    group: list[Source] = []
    for source in sources:
        group.append(source)
        if sum(len(each.text) for each in group) > _BATCH_CHARS:
            yield group
            group = []
    if group:
        yield group


def prepare_sources(sources: Sequence[Source], hashes: Mapping[str, str]) -> list[PreparedSource]:
    """Prepare each source for search. `hashes`: the hashes of their texts, by source id."""
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
        language=language_of("\n".join(passage.text for passage in found[:_LANGUAGE_PASSAGES])[:_LANGUAGE_CHARS]),
        passages=found,
        sections=article.sections,
    )


def article_of(source: Source) -> Article:
    return read_topic(source.text) if is_topic(source.id) else read(bare_name(source.id), source.text)


log = logging.getLogger(__name__)

REFRESH_SECONDS = 60.0
"""The seconds for which search may find a changed file by its old text."""
_BATCH = 32
"""The number of sources that are loaded, and of passages that are embedded, between two writes."""
_BATCH_CHARS = 200_000
"""The length of the sources that are prepared between two writes."""
_MAX_UNEMBEDDED = 1_000
_FEW_PASSAGES = 300
"""If fewer passages than these lack a vector, a question waits, some seconds, until they have one; if more do, it goes
on without (`LibrarySearch.embeds_on_refresh`).
"""
_KEPT_RESULTS = 64
_MAX_RERANKED, _MATCH_WEIGHT = 8, 2.0
"""The number of passages that are compared word by word, and the weight of that beside their score. For 84 of 134
questions about nine documentations, the first passage then has the words of the answer (76 without; 77 with a weight of
0.5, 79 with 1, 85 with 4).
"""
_QUERY_CHARS = 1_200
"""The length of a question that is embedded: more than the packaged model reads."""
_NAMESPACES = (TOPIC, DOCUMENT)


class Search(Protocol):
    async def find(self, query: str) -> SearchResult:
        """Find the passages of a library that match `query`, best first."""
        ...

    async def section(self, passage: StoredPassage) -> Sequence[StoredPassage]:
        """Return all passages of the section that a passage belongs to, in order."""
        ...

    async def passages_of(self, source_id: str, query: str) -> Sequence[str]:
        """Return the texts of the passages of one source that match `query`, best first."""
        ...

    async def rerank(self, hits: Sequence[Hit], query: str) -> Sequence[Hit]:
        """Return `hits` with the first few reordered by how well they match `query` word by word."""
        ...


@dataclass(slots=True)
class LibrarySearch:
    """A `Search` over `library` that updates its passage stores when sources change.

    Attributes:
        team, kb: the passages of its two namespaces.
        embedder: None: search by words only.
        embeds_on_refresh: compute a few missing vectors before a search, because no other task does.
        shared_search: the search over the shared library, which is searched as well as that of one server. It keeps
            itself up to date.
    """

    library: Library
    team: PassageStore
    kb: PassageStore
    embedder: Embedder | None = None
    embeds_on_refresh: bool = True
    shared_search: LibrarySearch | None = None
    _index: Sequence[IndexEntry] = ()
    _refreshed_at: float = float("-inf")
    _ids: frozenset[str] = frozenset()
    _known_times_emptied: tuple[int, ...] = (0, 0)
    _failing: set[PassageStore] = field(default_factory=set[PassageStore])
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _results: BoundedDict[str, tuple[Hashable, SearchResult]] = field(
        default_factory=lambda: BoundedDict(_KEPT_RESULTS)
    )

    @property
    def stores(self) -> tuple[PassageStore, PassageStore]:
        """The two stores that this search keeps up to date."""
        return self.team, self.kb

    @property
    def searched_stores(self) -> tuple[PassageStore, ...]:
        """All stores that are searched: its own and the shared ones."""
        return self.stores if self.shared_search is None else (*self.stores, *self.shared_search.stores)

    @property
    def findable_ids(self) -> frozenset[str]:
        """The ids of the sources that may be found, as of the last refresh."""
        return self._ids if self.shared_search is None else self._ids | self.shared_search.findable_ids

    @property
    def state(self) -> Hashable:
        """A value that changes with the stored passages and with the sources that may be found."""
        return tuple(store.version for store in self.searched_stores), self.findable_ids

    @property
    def needs_rebuilding(self) -> bool:
        """True if a store was emptied since the last refresh, and has to be filled again."""
        return self._known_times_emptied != self._times_emptied or (
            self.shared_search is not None and self.shared_search.needs_rebuilding
        )

    async def find(self, query: str) -> SearchResult:
        await self.refresh()
        # The gate and the selection of one question search for the same text. A result is valid while the state is the
        # one that its search began with.
        state = self.state
        known = self._results.get(query)
        if known is not None and known[0] == state:
            return known[1]
        found, is_complete = await self._search(query, self.findable_ids)
        if is_complete:
            self._results[query] = state, found
        return found

    async def section(self, passage: StoredPassage) -> Sequence[StoredPassage]:
        if self.shared_search is not None and passage.source_id in self.shared_search.findable_ids:
            return await self.shared_search.section(passage)
        store = self.team if is_topic(passage.source_id) else self.kb
        return await in_thread(store.section, passage.source_id, passage.section)

    async def load(self, source_id: str) -> Source:
        """Load the whole text of a source that may be found. Raises SourceUnavailable."""
        if self.shared_search is not None and source_id in self.shared_search.findable_ids:
            return await self.shared_search.load(source_id)
        return await self.library.load(source_id)

    async def passages_of(self, source_id: str, query: str) -> Sequence[str]:
        await self.refresh()
        return [hit.passage.text for hit in (await self.find_among(query, frozenset({source_id}))).hits]

    async def find_among(self, query: str, among: Collection[str]) -> SearchResult:
        """Like `find`, but only among these sources, and without refreshing first."""
        found, _ = await self._search(query, self.findable_ids & frozenset(among))
        return found

    async def find_in(self, namespace: Literal["team", "kb"], query: str, vector: QueryVector | None) -> Sequence[Hit]:
        """Return the passages of one namespace that match `query`, best first, without refreshing first. `vector`: the
        query's, from this search's embedder; None: search by words only.
        """
        found = await self._look_up(lambda: find(self._stores_of(namespace), query, vector, self.findable_ids))
        return found.hits

    async def rerank(self, hits: Sequence[Hit], query: str) -> Sequence[Hit]:
        """Reorder the first few hits word by word, if the embedder can match words and the query is English."""
        text = words_to_search(query)[:_QUERY_CHARS]
        near = [hit for hit in hits[:_MAX_RERANKED] if hit.cosine is not None]
        if not near or not isinstance(self.embedder, Matcher) or language_of(text) != ENGLISH:
            return hits
        try:
            matches = await self.embedder.match(text, [hit.passage.with_heading for hit in near])
        except EmbeddingFailed as error:
            log.warning("passages stay in the order of the search: %s", error)
            return hits
        worth = {hit: hit.score + _MATCH_WEIGHT * match.near for hit, match in zip(near, matches, strict=True)}
        return [*sorted(near, key=lambda hit: -worth[hit]), *hits[len(near) :]]

    async def refresh(self) -> None:
        """Update the passages of changed sources, if the index has changed or a minute has passed.

        If passages cannot be written, search uses the stored ones. This is logged once, and tried again after a minute.
        """
        if self.shared_search is not None:
            await self.shared_search.refresh()
        index = await self.library.index()
        if self._is_fresh(index):
            return
        async with self._lock:
            while not self._is_fresh(index):
                self._known_times_emptied = self._times_emptied  # a file may be lost meanwhile
                await self._bring_up_to_date(index)
                self._index, self._refreshed_at, self._ids = index, now(), frozenset(entry.id for entry in index)
        if self.embeds_on_refresh:
            await self.embed(only_if_fewer_than=_FEW_PASSAGES)

    @asynccontextmanager
    async def team_passages_dropped(self) -> AsyncGenerator[None]:
        """Drop all passages of team topics during the block, then read them again. Raises OSError: they stay."""
        async with self._lock:
            await in_thread(self.team.empty_file)
            yield
        await self.refresh()
        with self._logging_trouble(self.team):
            await self._write(self.team, self.team.forget_unused_vectors)

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
                with self._logging_trouble(store):
                    async for count in self._embed_store(store, self.embedder, only_if_fewer_than):
                        done += count
                        if on_done is not None:
                            on_done(count)
            except EmbeddingFailed as error:
                log.warning("search goes by words only: %s", error)
                break
        return done

    def close(self) -> None:
        for store in self.stores:
            store.close()

    @property
    def _times_emptied(self) -> tuple[int, ...]:
        return tuple(store.times_emptied for store in self.stores)

    def _is_fresh(self, index: Sequence[IndexEntry]) -> bool:
        recent = index is self._index and now() - self._refreshed_at < REFRESH_SECONDS
        return recent and self._known_times_emptied == self._times_emptied

    async def _search(self, query: str, among: frozenset[str]) -> tuple[SearchResult, bool]:
        """Return the result, and whether it is complete (with vectors, if there is an embedder) and may be cached."""
        text = words_to_search(query)
        if not text:
            return NOTHING, True
        vector = await self._embed_query(text)
        found, team = await self._look_up(partial(self._search_stores, text, vector, among))
        return await self._add_team_answers(found, team, text, vector), vector is not None or self.embedder is None

    async def _look_up(self, look_up: Callable[[], T]) -> T:
        """Run a search in a thread; again if a store has turned out to be lost, and was emptied."""
        found = await in_thread(look_up)
        while self.needs_rebuilding:
            await self.refresh()
            found = await in_thread(look_up)
        return found

    def _search_stores(
        self, text: str, vector: QueryVector | None, among: frozenset[str]
    ) -> tuple[SearchResult, SearchResult]:
        """Search all stores, then the team's topics alone. The confidence of the first result is that of the documents.
        Each is weighed by itself: a word that is rare in a few answers may be frequent in a thousand pages. Blocking.
        """
        team = find(self._stores_of("team"), text, vector, among)
        if not team.hits:
            return find(self.searched_stores, text, vector, among), team
        documents = find(self._stores_of("kb"), text, vector, among)
        whole = find(self.searched_stores, text, vector, among) if documents.hits else team
        return documents._replace(hits=whole.hits, documents=documents.hits), team

    def _stores_of(self, namespace: Literal["team", "kb"]) -> list[PassageStore]:
        every = [self] if self.shared_search is None else [self, self.shared_search]
        return [each.team if namespace == "team" else each.kb for each in every]

    async def _add_team_answers(
        self, found: SearchResult, team: SearchResult, text: str, vector: QueryVector | None
    ) -> SearchResult:
        hits = retrieval.team_candidates(team)
        if not hits:
            return found
        matches: Sequence[Match] = ()
        if vector is not None and vector.calibrated and isinstance(self.embedder, Matcher):
            try:
                texts = [hit.passage.with_heading for hit in hits]
                matches = await self.embedder.match(text[:_QUERY_CHARS], texts)
            except EmbeddingFailed as error:
                log.warning("the team's answers are looked up by their words only: %s", error)
        answers = retrieval.judge_team_answers(text, hits, matches)
        best = answers[0]
        surer = best.confidence > found.confidence and best.level is not Level.SILENCE
        if best.level is Level.ANSWER or (surer and found.level is not Level.ANSWER):
            found = found._replace(confidence=max(best.confidence, found.confidence), level=best.level)
        return found._replace(team_answers=tuple(answers))

    async def _embed_query(self, text: str) -> QueryVector | None:
        if self.embedder is None:
            return None
        try:
            vectors = await self.embedder.embed([text[:_QUERY_CHARS]])
        except EmbeddingFailed as error:
            log.warning("a question is looked up by its words only: %s", error)
            return None
        calibrated = self.embedder.id == PackagedEmbedder.ID and language_of(text) == ENGLISH
        return QueryVector(vectors[0], self.embedder.id, calibrated)

    async def _bring_up_to_date(self, index: Sequence[IndexEntry]) -> None:
        for store, namespace in zip(self.stores, _NAMESPACES, strict=True):
            entries = [entry for entry in index if entry.id.startswith(namespace)]
            with self._logging_trouble(store):
                await self._update(store, entries)

    async def _update(self, store: PassageStore, entries: Sequence[IndexEntry]) -> None:
        known = await in_thread(store.sources)
        wanted = {entry.id: entry for entry in entries}
        due = await in_thread(lambda: [i for i in wanted if i not in known or not is_unchanged(known[i][0])])
        gone = [source_id for source_id in known if source_id not in wanted]
        if gone:
            await self._write(store, partial(store.change, (), drop=gone))
        changed = 0
        for start in range(0, len(due), _BATCH):
            sources = [await self._load(wanted[source_id]) for source_id in due[start : start + _BATCH]]
            hashes = {source.id: hash_text(source.text) for source in sources}
            same = {s.id: s.stamp for s in sources if s.id in known and known[s.id][1] == hashes[s.id]}
            new = [source for source in sources if source.id not in same]
            if same:
                await self._write(store, partial(store.change, (), stamps=same))
            for group in _split_by_size(new):
                prepared = await in_thread(prepare_sources, group, hashes)
                await self._write(store, partial(store.change, prepared))
                changed += len(prepared)
        if changed or gone:
            await self._write(store, store.forget_unused_vectors)
            log.info("search: %s prepared, %d gone", number_of(changed, "source"), len(gone))

    async def _embed_store(
        self, store: PassageStore, embedder: Embedder, only_if_fewer_than: int | None
    ) -> AsyncGenerator[int]:
        """Compute missing vectors; yield the number of each batch."""
        if only_if_fewer_than is not None:
            left = await in_thread(store.unembedded, embedder.id, only_if_fewer_than)
            if len(left) >= only_if_fewer_than:
                return
        # Each lookup reads all passages, so it fetches many at once.
        while left := await in_thread(store.unembedded, embedder.id, _MAX_UNEMBEDDED):
            for start in range(0, len(left), _BATCH):
                some = left[start : start + _BATCH]
                vectors = await embedder.embed([text for _, text in some])
                rows = {key: vector for (key, _), vector in zip(some, vectors, strict=True)}
                await self._write(store, partial(store.store_vectors, embedder.id, rows))
                yield len(some)

    async def _write(self, store: PassageStore, work: Callable[[], None]) -> None:
        """Run a write in a thread. Raises sqlite3.Error, OSError."""
        await in_thread(work)
        if store in self._failing:
            self._failing.discard(store)
            log.info("%s can be written again", store.path)

    @contextmanager
    def _logging_trouble(self, store: PassageStore) -> Generator[None]:
        """Log that a store cannot be written: once, until it can be written again."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            if store not in self._failing:
                self._failing.add(store)
                log.warning("%s; search goes on with what is in it", store.trouble(error))

    async def _load(self, entry: IndexEntry) -> Source:
        """Load a source. If it cannot be read, return its description as the text: selecting it reports why."""
        try:
            return await self.library.load(entry.id)
        except SourceUnavailable:
            return Source(entry.id, entry.description)
