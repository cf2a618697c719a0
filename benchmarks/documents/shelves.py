"""The documents of the suites, in a store of their own, with the tools on top."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.documents.suites import CONFIG, DOCS, Question, Suites
from services.documents.asking.passages import CitedPassage
from services.documents.asking.rewriting import ConversationContext, Rewriter
from services.documents.asking.synthesis import ExtractiveSynthesiser, Material
from services.documents.limits import FileLimits
from services.documents.reading.preparing import prepare
from services.documents.store.chroma import chroma_store
from services.documents.store.collection_files import Folders
from services.documents.store.document_store import DocumentStore, embed_document, sqlite_store
from services.documents.store.protocol import Collection, NewDocument, Origin
from services.documents.tools.core import AnswerCache, DocumentQATool
from services.documents.tools.libraries import CASE_EVIDENCE, GLOBAL_KB, QAResult
from services.documents.tools.scopes import FileShelf, PublishedShelf
from services.knowledge.index_file import IndexEntry
from services.knowledge.library import Source
from services.knowledge.library_search import LibrarySearch
from services.search.embedding import Embedder, PackagedEmbedder, is_model_installed
from services.search.passage_store import PassageStore
from tests.hashing import HashingEmbedder

MIB = 1024 * 1024
DOCS_K = 10
CONFIG_CASE = "900"


@dataclass(frozen=True, slots=True)
class Asked:
    result: QAResult
    passages: tuple[CitedPassage, ...]
    seconds: float


class Listening(ExtractiveSynthesiser):
    """Quotes, and keeps what it was given."""

    def __init__(self) -> None:
        self.passages: tuple[CitedPassage, ...] = ()

    async def answer(self, material: Material) -> str:
        self.passages = material.found.passages
        return await super().answer(material)


class Articles:
    """A `Library` of the articles in a suite."""

    def __init__(self, articles: Mapping[str, bytes]) -> None:
        self._texts = {f"kb:{name}": data.decode() for name, data in articles.items()}
        self._entries = [IndexEntry(source_id, source_id) for source_id in self._texts]

    async def index(self) -> Sequence[IndexEntry]:
        return self._entries

    async def load(self, source_id: str) -> Source:
        return Source(source_id, self._texts[source_id])


class Scripted:
    """Rewrites as a perfect model would."""

    def __init__(self, rewrites: Mapping[str, str]) -> None:
        self._rewrites = rewrites

    async def rewrite(self, question: str, turns: tuple[tuple[str, str], ...]) -> str:
        return self._rewrites[f"{turns[-1][0]}\n{question}"]


@dataclass(slots=True)
class Costs:
    """What taking documents in costs, summed up."""

    n_bytes: int = 0
    lexical_seconds: float = 0.0
    dense_seconds: float = 0.0
    chunks: int = 0
    on_disk: int = 0


@dataclass(slots=True)
class Shelves:
    store: DocumentStore
    search: LibrarySearch
    """Of the articles."""
    embedder: Embedder
    cases: dict[str, str]
    """For each file the thread it was posted in."""
    costs: dict[str, Costs] = field(default_factory=dict[str, Costs])
    cache: AnswerCache = field(default_factory=AnswerCache)
    _listening: Listening = field(default_factory=Listening)
    _answered: dict[tuple[str, str], tuple[CitedPassage, ...]] = field(
        default_factory=dict[tuple[str, str], tuple[CitedPassage, ...]]
    )
    """What an answer was made of: one from the cache does not tell."""

    def tools(self, rewriter: Rewriter | None = None) -> dict[str, DocumentQATool]:
        case = DocumentQATool(
            config=CASE_EVIDENCE,
            shelf=FileShelf(self.store),
            cache=self.cache,
            embedder=self.embedder,
            synthesiser=self._listening,
            rewriter=rewriter,
        )
        return {"case": case, "docs": replace(case, config=GLOBAL_KB, shelf=PublishedShelf(self.search))}

    async def ask(
        self,
        tools: Mapping[str, DocumentQATool],
        question: Question,
        context: ConversationContext | None = None,
        *,
        thread: str | None = None,
    ) -> Asked:
        self._listening.passages = ()
        case = "" if question.suite == DOCS else thread or self._case_of(question)
        begun = time.perf_counter()
        if question.suite == DOCS:
            result = await tools["docs"].answer_question(question.text, None, DOCS_K, context)
        else:
            result = await tools["case"].answer_question(question.text, case, 5, context)
        seconds = time.perf_counter() - begun
        if not result.cached:
            self._answered[case, result.answer] = self._listening.passages
        return Asked(result, self._answered.get((case, result.answer), ()), seconds)

    def _case_of(self, question: Question) -> str:
        return CONFIG_CASE if question.suite == CONFIG else self.cases[question.file]


async def fill_shelves(suites: Suites, folder: Path, chroma: str | None = None) -> Shelves:
    """Take everything in: what was in `folder` from an earlier run is used again.

    `chroma`: the address of an empty server of Chroma, in which everything lies instead.
    """
    store = sqlite_store(Folders(folder, folder)) if chroma is None else chroma_store(chroma, folder)
    if chroma is not None and await store.list_collections():
        raise SystemExit(f"the Chroma at {chroma} holds documents already: name an empty one")
    embedder: Embedder = PackagedEmbedder(workers=2) if is_model_installed() else HashingEmbedder()
    search = LibrarySearch(Articles(suites.articles), PassageStore(None), PassageStore(None), embedder)
    shelves = Shelves(store, search, embedder, {})
    for number, (name, data) in enumerate(suites.logs.items(), start=1):
        shelves.cases[name] = str(number)
        await _take_in(shelves, Collection(f"case_{number}", "case", str(number)), "logs", {name: data})
    configs = Collection(f"case_{CONFIG_CASE}", "case", CONFIG_CASE)
    await _take_in(shelves, configs, "configs", suites.configs)
    await search.refresh()
    await search.embed()
    return shelves


async def _take_in(shelves: Shelves, collection: Collection, kind: str, files: Mapping[str, bytes]) -> None:
    costs = shelves.costs.setdefault(kind, Costs())
    for name, data in files.items():
        begun = time.perf_counter()
        prepared = prepare(name, data, limits=FileLimits())
        (document,) = await shelves.store.add(collection, [NewDocument(Origin(name), prepared)])
        lexical = time.perf_counter()
        await embed_document(shelves.store, shelves.embedder, collection.name, document.doc_id)
        costs.n_bytes += len(data)
        costs.lexical_seconds += lexical - begun
        costs.dense_seconds += time.perf_counter() - lexical
        costs.chunks += document.n_chunks
    described = await shelves.store.describe(collection.name)
    costs.on_disk += 0 if described is None else described.n_bytes
