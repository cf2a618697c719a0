"""A `Search` that finds what a test says, and the real one over a library in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from services.knowledge.library import Library
from services.knowledge.library_search import LibrarySearch, Search
from services.search.passage_store import PassageStore, StoredPassage
from services.search.retrieval import NOTHING, Hit, Level, SearchResult, TeamAnswer, TeamAnswerSignals

CONFIDENCE = {Level.ANSWER: 0.9, Level.POINT: 0.3, Level.SILENCE: 0.0}


@dataclass
class ScriptedSearch(Search):
    """Finds the same for every query, unless `by_word` holds a word of the query."""

    found: SearchResult = NOTHING
    by_word: Mapping[str, SearchResult] = field(default_factory=dict[str, SearchResult])
    asked: list[str] = field(default_factory=list[str])

    async def find(self, query: str) -> SearchResult:
        self.asked.append(query)
        return next((found for word, found in self.by_word.items() if word in query), self.found)

    async def section(self, passage: StoredPassage) -> Sequence[StoredPassage]:
        return [passage]

    async def rerank(self, hits: Sequence[Hit], query: str) -> Sequence[Hit]:
        return hits

    async def passages_of(self, source_id: str, query: str) -> Sequence[str]:
        found = await self.find(query)
        return [hit.passage.text for hit in found.hits if hit.source_id == source_id]


def passage(
    source_id: str,
    text: str = "Some text.",
    *headings: str,
    title: str = "",
    permalink: str = "",
    anchor: str = "",
    section: int = 0,
) -> StoredPassage:
    return StoredPassage(source_id, title, permalink, section, headings, anchor, text)


def found(*passages: StoredPassage, level: Level = Level.ANSWER, confidence: float | None = None) -> SearchResult:
    """A search that found `passages`, the best first; those of topics are answers of the team that are as sure."""
    hits = tuple(Hit(kept, 1.0 - 0.1 * rank, None, 1.0) for rank, kept in enumerate(passages))
    sure = CONFIDENCE[level] if confidence is None else confidence
    documents = tuple(hit for hit in hits if not hit.source_id.startswith("team:"))
    signals = TeamAnswerSignals(1.0, 0.1)
    taught = tuple(TeamAnswer(hit, sure, level, signals) for hit in hits if hit not in documents)
    return SearchResult(hits, sure, level, None, documents, sure if documents else 0.0, taught)


def by_words(library: Library) -> LibrarySearch:
    """The search of the program, with passages in memory and without vectors."""
    return LibrarySearch(library, PassageStore(None), PassageStore(None))
