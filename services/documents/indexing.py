"""Keeping documents searchable: their vectors, the team's topics and the documentation.

A document is indexed again only when its content has changed. A library that is being updated answers from its old
revision until the new one is complete, and is then swapped in one step.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections.abc import Callable
from collections.abc import Collection as AnyOf
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from services.documents.limits import DocumentKind, FileLimits, FileRefused, Prepared, accepted
from services.documents.reading import DocumentRedactors, prepare, topic_chunks
from services.documents.store import protocol
from services.documents.store.document_store import DocumentStore
from services.documents.store.protocol import Collection, Document, NewDocument, Origin
from services.documents.store.schema import embedded_text, to_embed
from services.knowledge import Library, SourceUnavailable, bare_name, belongs_to
from services.search.embedding import Embedder, EmbeddingFailed
from services.storage import in_thread

log = logging.getLogger(__name__)

AT_ONCE = 64  # chunks that get vectors between two writes: at most so many are embedded in vain at a crash

_NAMESPACE = "kb:"
_HEADING = re.compile(r"^(?:#{1,2}[^\S\n]++(?P<marked>\S.*+)|(?P<plain>\S.*+)\n[=\-~*]{3,}+)$", re.MULTILINE)
_MAX_LINES = 1_000_000
_TITLE_CHARS = 100
_PUBLISHED = DocumentRedactors(published=True)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A document that a collection should hold."""

    origin: Origin
    sha256: str
    prepare: Callable[[], Prepared]


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexed:
    """Counts of one update: documents added, kept, dropped and refused."""

    added: int = 0
    kept: int = 0
    dropped: int = 0
    refused: int = 0


async def fill(store: DocumentStore, embedder: Embedder | None, name: str, doc_id: str) -> bool:
    """Embed the chunks of a document that have no vector yet. Returns whether the document is `ready` then.

    False: the document was deleted meanwhile, or the embedder is missing or fails (then it stays searchable by words).
    Raises StoreUnavailable: the store cannot be used.
    """
    if embedder is None:
        return False
    left = await store.unembedded(name, doc_id, embedder.id)
    if not left:
        return await store.embed(name, doc_id, embedder.id, {})
    for start in range(0, len(left), AT_ONCE):
        some = left[start : start + AT_ONCE]
        try:
            vectors = await embedder.embed([chunk.text for chunk in some])
        except EmbeddingFailed as error:
            log.warning("%s: keyword search only for a document: %s", name, error)
            return False
        found = {chunk.chunk_index: vector for chunk, vector in zip(some, vectors, strict=True)}
        if not await store.embed(name, doc_id, embedder.id, found):
            return False
    return True


async def index_team(
    store: DocumentStore,
    embedder: Embedder | None,
    topics_dir: Path,
    *,
    shared_dir: Path | None = None,
    team_id: str,
    guild_id: int | None = None,
    team_name: str = "",
    internal: AnyOf[str] = (),
    turn: asyncio.Lock | None = None,
) -> Indexed:
    """Update the team's collection from the topic files. `shared_dir`: topics that other servers share with this team,
    if it has its own topics besides. `internal`: topics for the team only, with the files that continue them.
    `turn`: a lock held from reading the files until they are stored. If a folder cannot be read, nothing changes.
    Raises StoreUnavailable: the store cannot be used.
    """
    collection = Collection(protocol.team(team_id), "team", team_id, guild_id)
    async with turn or nullcontext():
        try:
            texts = await in_thread(_topic_files, topics_dir)
            shared = {} if shared_dir is None else await in_thread(_topic_files, shared_dir)
        except OSError as error:
            path, why = error.filename or topics_dir, error.strerror
            log.warning("%s: the team's topics cannot be read (%s); what is indexed stays", path, why)
            return Indexed()
        name = team_name or team_id
        wanted = [
            _topic(topic, data, name, folder, internal=belongs_to(topic, internal))
            for folder, found in (("", texts), ("shared/", shared))
            for topic, data in found.items()
        ]
        done = await _revised(store, embedder, collection, wanted)
    await _filled(store, embedder, collection.name)
    return done


async def drop_topics(store: DocumentStore, forget_answers: Callable[[str], object] | None = None) -> int:
    """Delete all collections of team topics, whatever the team's name was; the next `index_team` makes them again.
    `forget_answers`: called with the name of each deleted collection. Returns the number of collections. Raises
    StoreUnavailable.
    """
    names = await store.list_collections(protocol.TEAM_PREFIX)
    for name in names:
        await store.delete_collection(name)
        if forget_answers is not None:
            forget_answers(name)
    return len(names)


async def index_global(
    store: DocumentStore,
    embedder: Embedder | None,
    library: Library,
    *,
    max_source_bytes: int = 2_000_000,
    guild_id: int | None = None,
) -> Indexed:
    """Update `global_kb` from the sources of the knowledge base. `guild_id`: update that server's collection instead;
    `library` holds its own sources, too. A source that cannot be loaded stays as indexed.
    Raises StoreUnavailable: the store cannot be used.
    """
    wanted: list[Wanted] = []
    unsure: set[str] = set()
    for entry in await library.index():
        if not entry.id.startswith(_NAMESPACE):
            continue
        name = entry.id.removeprefix(_NAMESPACE)
        try:
            source = await library.load(entry.id)
        except SourceUnavailable as error:
            log.warning("%s is not indexed: %s", entry.id, error)
            unsure.add(name)
            continue
        wanted.append(_article(name, source.text, max_source_bytes))
    collection = Collection(protocol.documentation(guild_id), "global", guild_id=guild_id)
    done = await _revised(store, embedder, collection, wanted, unsure)
    await _filled(store, embedder, collection.name)
    return done


async def _revised(
    store: DocumentStore,
    embedder: Embedder | None,
    collection: Collection,
    wanted: list[Wanted],
    unsure: AnyOf[str] = (),
) -> Indexed:
    """Add new documents, drop those that are gone, keep unchanged ones. `unsure`: names that are left alone."""
    name = collection.name
    held = {doc.filename: doc for doc in await store.documents(name) if doc.state.searchable}
    new = [each for each in wanted if not _is_same(held.get(each.origin.filename), each)]
    gone = held.keys() - {each.origin.filename for each in wanted} - set(unsure)
    changed = [held[each.origin.filename].doc_id for each in new if each.origin.filename in held]
    docs: list[NewDocument] = []
    for each in new:
        try:
            doc = NewDocument(each.origin, await in_thread(each.prepare))
        except FileRefused as error:
            log.warning("%s is not indexed: %s", each.origin.filename, error)
            continue
        # The first time nothing is there to answer meanwhile: better searchable by words at once.
        docs.append(await _embedded(doc, embedder) if held else doc)
    if docs or gone:
        await store.revise(collection, docs, [*(held[filename].doc_id for filename in sorted(gone)), *changed])
    result = Indexed(added=len(docs), kept=len(wanted) - len(new), dropped=len(gone), refused=len(new) - len(docs))
    if docs or gone:
        log.info("%s: documents: %d indexed, %d kept, %d dropped", name, result.added, result.kept, result.dropped)
    return result


async def _filled(store: DocumentStore, embedder: Embedder | None, name: str) -> None:
    """Embed the chunks of a collection that have no vector."""
    for doc in await store.documents(name):
        unfinished = doc.is_unfinished("" if embedder is None else embedder.id)
        if unfinished and not await fill(store, embedder, name, doc.doc_id):
            break  # without an embedder now, the rest would fail as well


async def _embedded(doc: NewDocument, embedder: Embedder | None) -> NewDocument:
    if embedder is None:
        return doc
    texts = [embedded_text(doc.origin, chunk) for chunk in to_embed(doc.prepared)]
    try:
        return replace(doc, vectors=await embedder.embed(texts), embedder_id=embedder.id)
    except EmbeddingFailed as error:
        log.warning("%s: keyword search only: %s", doc.origin.filename, error)
        return doc


def _is_same(held: Document | None, wanted: Wanted) -> bool:
    return held is not None and held.sha256 == wanted.sha256 and dict(held.origin.extra) == dict(wanted.origin.extra)


def _topic_files(folder: Path) -> dict[str, bytes]:
    """Read the topic files of a folder, by topic. Hidden files are unfinished and skipped."""
    if not folder.exists():
        return {}
    files = sorted(path for path in folder.iterdir() if path.suffix == ".txt" and not path.name.startswith("."))
    return {path.stem: path.read_bytes() for path in files}


def _topic(topic: str, data: bytes, team_name: str, folder: str = "", *, internal: bool) -> Wanted:
    extra = {"topic": topic, "team_name": team_name, **({"internal": "true"} if internal else {})}
    origin, sha256 = Origin(f"{folder}{topic}.txt", extra=extra), hashlib.sha256(data).hexdigest()

    def made() -> Prepared:
        text = data.decode(errors="replace")
        lines = text.removesuffix("\n").split("\n")
        return Prepared(
            filename=origin.filename,
            kind=DocumentKind.TEAM_TOPIC,
            confidence=1.0,
            sha256=sha256,
            size=len(data),
            text=text,
            n_lines=len(lines),
            chunks=tuple(topic_chunks(lines, topic)),
        )

    return Wanted(origin, sha256, made)


def _article(name: str, text: str, max_bytes: int) -> Wanted:
    data = text.encode()
    filename, name = name, bare_name(f"{_NAMESPACE}{name}")
    is_page = name.startswith(("http://", "https://"))
    category = name.split("/")[2] if is_page else name.rpartition("/")[0]  # the site, or the folder
    origin = Origin(filename, extra={"kb_article_id": name, "title": _title(name, text), "category": category})
    taken_as = name if accepted(name) and not is_page else "page.md"
    limits = FileLimits(max_file_bytes=max(max_bytes, len(data)), max_lines=_MAX_LINES)

    def made() -> Prepared:
        return replace(prepare(taken_as, data, limits=limits, redactors=_PUBLISHED), filename=filename)

    return Wanted(origin, hashlib.sha256(data).hexdigest(), made)


def _title(name: str, text: str) -> str:
    heading = _HEADING.search(text[:4000])
    # Marks may stand behind a heading as well.
    found = (heading["plain"] or heading["marked"].rstrip("# \t")) if heading else name.rsplit("/", 1)[-1]
    return " ".join(found.split())[:_TITLE_CHARS] or name
