"""The search scopes of document tools: for one asker, the files of a collection, or published text."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from services.documents.askers_files import with_distinct_names
from services.documents.asking.passages import CitedPassage, Findings, Scope
from services.documents.asking.plan import Plan, Position
from services.documents.asking.retrieving import (
    KEYWORDS_ONLY,
    Ranking,
    Vector,
    retrieve,
    sort_by_score,
    spread_by_document,
)
from services.documents.asking.rewriting import ResolvedQuestion
from services.documents.store.document_store import DocumentStore
from services.documents.store.protocol import Document
from services.documents.tools.libraries import KBConfig, PublishedReader, Status, ToolContext
from services.knowledge import LibrarySearch
from services.search import Hit, QueryVector
from services.telemetry import add_people

RARE_AMONG_HITS = 2
"""A name in more of the hits is a common word."""


@dataclass(frozen=True, slots=True)
class FileScope:
    """The documents of one collection.

    Attributes:
        visible: all that the asker may see, searchable or not; `documents`: those to search.
        version: changes with every change of the content.
        posters: who posted each file of somebody else than the asker and the team, by its name.
    """

    config: KBConfig
    scope: Scope
    visible: tuple[Document, ...]
    version: Hashable
    posters: Mapping[str, int]

    @property
    def name(self) -> str:
        """The name of the collection, by which cached answers are dropped."""
        return self.scope.name

    @property
    def documents(self) -> tuple[Document, ...]:
        return self.scope.documents

    async def retrieve(self, plan: Plan, resolved: ResolvedQuestion, k: int, vector: Vector) -> Findings:
        """Return at most `k` passages for a question, best first, or why there are none. Raises StoreUnavailable."""
        anchored = await _anchored(self.scope, resolved)
        if anchored is not None:
            return anchored
        ranking = Ranking(
            self.config.weights,
            spread=self.config.spread,
            exact_paths=self.config.exact_paths,
            mode=self.config.search_mode,
        )
        return await retrieve(self.scope, plan, k, ranking, vector)


@dataclass(frozen=True, slots=True)
class FileShelf:
    """Files and runbooks, in collections of a document store."""

    store: DocumentStore

    async def open(
        self, config: KBConfig, scope_id: str, filters: Mapping[str, str], asker: ToolContext | None
    ) -> FileScope | Status:
        """Open the search scope of an asker, or return why there is none. `asker` None: do not check the guild. Raises
        StoreUnavailable, and ValueError as `KBConfig.get_collection_name`.
        """
        name = config.get_collection_name(scope_id)
        described = await self.store.describe(name)
        if described is None:
            return Status.NOT_INDEXED
        if asker is not None and described.collection.guild_id not in {None, asker.guild_id}:
            return Status.DENIED
        documents = with_distinct_names(described.documents, None if asker is None else asker.asker_id)
        posters: dict[str, int] = {}
        if asker is not None and asker.files is not None:
            documents = asker.files.choose(documents)
            posters = {doc.filename: min(doc.poster_ids) for doc in documents if not asker.files.is_trusted(doc)}
        if not documents:
            return Status.NOT_INDEXED
        add_people(user_id for doc in documents for user_id in doc.poster_ids)
        scope = Scope(self.store, name, _in_scope(documents, filters))
        # Which files there are, and under which names, depends on the asker.
        version = (described.version, *((doc.doc_id, doc.filename) for doc in documents))
        return FileScope(config, scope, documents, version, posters)


@dataclass(frozen=True, slots=True)
class PublishedScope:
    """Documentation, or the team's topics, in the search of sources, which are no documents of the store.

    Attributes:
        sources: the ids of the sources that can be found.
        scope_id: the team, if the library belongs to one.
    """

    config: KBConfig
    reader: PublishedReader
    search: LibrarySearch
    sources: Sequence[str]
    scope_id: str
    version: Hashable
    documents: tuple[Document, ...] = field(default=(), init=False)
    visible: tuple[Document, ...] = field(default=(), init=False)
    posters: Mapping[str, int] = field(default_factory=dict[str, int], init=False)

    @property
    def name(self) -> str:
        return self.config.name

    async def retrieve(self, plan: Plan, resolved: ResolvedQuestion, k: int, vector: Vector) -> Findings:
        """As `FileScope.retrieve`."""
        del resolved  # published text is not cited by lines, to which a follow-up could refer
        embedded = await vector()
        meaning = None if embedded is None else QueryVector(*embedded, calibrated=False)
        hits = await self.search.find_in(self.reader.namespace, plan.text, meaning)
        shares = _verbatim(plan.identifiers, [hit.passage.with_heading for hit in hits])
        best: dict[Hashable, tuple[Hit, float]] = {}  # of each unit
        for hit, share in sorted(zip(hits, shares, strict=True), key=lambda pair: -pair[1]):
            best.setdefault(self.reader.unit(hit.passage), (hit, share))
        ordered = spread_by_document(list(best.values()), lambda pair: pair[0].source_id)
        passages = [await self._passage(hit, verbatim=share == 1) for hit, share in ordered[:k]]
        words_only = bool(hits) and all(hit.cosine is None for hit in hits)
        names = tuple(source.partition(":")[2] for source in self.sources)
        notes = (KEYWORDS_ONLY,) if words_only else ()
        return Findings(tuple(sort_by_score(plan, passages)), notes=notes, searched_files=names)

    async def _passage(self, hit: Hit, *, verbatim: bool) -> CitedPassage:
        metadata = {"team_name": self.scope_id, **self.reader.about(hit.passage)}
        return CitedPassage(
            doc_id=hit.source_id,
            source=self.config.extract_source_name(metadata),
            text=await self.reader.text(self.search, hit.passage),
            line_start=0,
            line_end=0,
            matched=(),
            chunk_id=f"{hit.source_id}#{hit.passage.section}",
            metadata=metadata,
            has_numbers=False,
            score=hit.cosine,
            relevance=1.0 if verbatim else hit.coverage if hit.cosine is None else hit.cosine,
        )


def _verbatim(identifiers: Sequence[str], texts: Sequence[str]) -> list[float]:
    """Return for each text the share of the selective names that it contains literally, ignoring letter case."""
    folded = [text.casefold() for text in texts]
    names = [name.casefold() for name in identifiers]
    telling = [name for name in names if 0 < sum(name in text for text in folded) <= RARE_AMONG_HITS]
    return [sum(name in text for name in telling) / max(len(telling), 1) for text in folded]


@dataclass(frozen=True, slots=True)
class PublishedShelf:
    """Published text in the search of one server, or of all."""

    search: LibrarySearch

    async def open(
        self, config: KBConfig, scope_id: str, filters: Mapping[str, str], asker: ToolContext | None
    ) -> PublishedScope | Status:
        """As `FileShelf.open`."""
        del filters, asker
        config.get_collection_name(scope_id)
        await self.search.refresh()
        published = config.published
        assert published is not None, "other libraries are on other shelves"  # noqa: S101 (tells the type checker)
        sources = sorted(source for source in self.search.findable_ids if source.startswith(f"{published.namespace}:"))
        if not sources:
            return Status.NOT_INDEXED
        return PublishedScope(config, published, self.search, sources, scope_id, (id(self.search), self.search.state))


SearchScope = FileScope | PublishedScope
"""The part of a document library that one asker may search now."""
Shelf = FileShelf | PublishedShelf
"""Where the document library of a tool is kept."""


def _in_scope(documents: tuple[Document, ...], filters: Mapping[str, str]) -> tuple[Document, ...]:
    """Return the documents to search."""

    def fits(doc: Document) -> bool:
        facts = {**doc.origin.extra, "filename": doc.filename}
        return all(facts.get(name) == value for name, value in filters.items())

    return tuple(doc for doc in documents if doc.current and doc.state.searchable and fits(doc))


async def _anchored(scope: Scope, resolved: ResolvedQuestion) -> Findings | None:
    """Return the cited lines, or their neighbours, for a follow-up question. None: they do not exist any more."""
    known = {doc.doc_id for doc in scope.documents}
    anchors = [anchor for anchor in resolved.anchors if anchor.doc_id in known]
    if not anchors:
        return None
    if resolved.position is None:
        passages = [
            await scope.with_context(anchor.doc_id, range(anchor.line_start, last + 1))
            for anchor in anchors
            if anchor.line_start <= (last := min(anchor.line_end, scope.document(anchor.doc_id).n_lines))
        ]
        return Findings(tuple(passages), exact=True)
    anchor = anchors[0]
    line = anchor.line_end if resolved.position is Position.NEXT else anchor.line_start
    return await scope.passage_beside(anchor.doc_id, line, resolved.position, resolved.side_lines)
