"""Keeping the permanent libraries searchable: the team's topics, and the documentation (DOCUMENT_QA 8.3).

Only what has changed is taken in again, told by its content. A library that is being updated goes on answering from its
old revision until the new one stands beside it, and is then swapped in one step.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Mapping
from collections.abc import Collection as AnyOf
from dataclasses import dataclass, replace
from pathlib import Path

from services.documents.extensions import accepted
from services.documents.filling import fill
from services.documents.limits import FileLimits, FileRefused
from services.documents.reading import prepare, topic_chunks
from services.documents.store import naming
from services.documents.store.protocol import Collection, Document, DocumentStore, NewDocument, Origin
from services.documents.store.schema import embedded_text, to_embed
from services.documents.units import DocumentKind, Prepared
from services.knowledge import Library, SourceUnavailable, belongs_to
from services.search.embedding import Embedder, EmbeddingFailed
from services.storage import in_thread

log = logging.getLogger(__name__)

_NAMESPACE = "kb:"
_HEADING = re.compile(r"^(?:#{1,2}\s+(?P<marked>\S.*?)\s*#*|(?P<plain>\S.*)\n[=\-~*]{3,})$", re.MULTILINE)
_MAX_LINES = 1_000_000
_TITLE_CHARS = 100


@dataclass(frozen=True, slots=True)
class Wanted:
    """A document that the library should hold."""

    origin: Origin
    data: bytes
    prepare: Callable[[], Prepared]


@dataclass(frozen=True, slots=True)
class Indexed:
    """What one update did."""

    added: int = 0
    kept: int = 0
    dropped: int = 0
    refused: int = 0


async def index_team(
    store: DocumentStore,
    embedder: Embedder | None,
    topics_dir: Path,
    *,
    team_id: str,
    guild_id: int | None = None,
    team_name: str = "",
    internal: AnyOf[str] = (),
) -> Indexed:
    """Bring `team_<team_id>_kb` up to date with the topic files. `internal`: names of topics for the team only,
    with the files that go on from them.

    A folder that cannot be read changes nothing.

    Raises:
        StoreUnavailable: the store cannot be used.
    """
    try:
        texts = await in_thread(_topic_files, topics_dir)
    except OSError as error:
        log.warning("%s: the team's topics cannot be read (%s); what is indexed stays", topics_dir, error.strerror)
        return Indexed()
    wanted = [
        _topic(name, data, team_name or team_id, internal=belongs_to(name, internal)) for name, data in texts.items()
    ]
    collection = Collection(naming.team(team_id), "team", team_id, guild_id)
    return await bring_up_to_date(store, embedder, collection, wanted)


async def index_global(
    store: DocumentStore, embedder: Embedder | None, library: Library, *, max_source_bytes: int = 2_000_000
) -> Indexed:
    """Bring `global_kb` up to date with the sources of the knowledge base.

    A source that cannot be loaded now keeps what is indexed of it.

    Raises:
        StoreUnavailable: the store cannot be used.
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
    return await bring_up_to_date(store, embedder, Collection(naming.GLOBAL, "global"), wanted, unsure)


async def bring_up_to_date(
    store: DocumentStore,
    embedder: Embedder | None,
    collection: Collection,
    wanted: list[Wanted],
    unsure: AnyOf[str] = (),
) -> Indexed:
    """Add what is new, drop what is gone, keep what is as it was. `unsure`: names that are left alone."""
    described = await store.describe(collection.name)
    held = {doc.filename: doc for doc in (described.documents if described else ()) if doc.state.searchable}
    hashes = {each.origin.filename: hashlib.sha256(each.data).hexdigest() for each in wanted}
    new = [each for each in wanted if not _same(held.get(each.origin.filename), each, hashes)]
    gone = [doc.doc_id for name, doc in held.items() if name not in hashes and name not in unsure]
    changed = [held[each.origin.filename].doc_id for each in new if each.origin.filename in held]
    docs = await _prepared(new)
    if docs or gone:
        # At first there is nothing to be kept alive: what has words only is better than nothing.
        beside = [doc if not held else await _embedded(doc, embedder) for doc in docs]
        await store.revise(collection, beside, [*gone, *changed])
    await _fill(store, embedder, collection.name)
    result = Indexed(len(docs), len(wanted) - len(new), len(gone), len(new) - len(docs))
    if docs or gone:
        log.info(
            "%s: documents: %d indexed, %d kept, %d dropped", collection.name, result.added, result.kept, result.dropped
        )
    return result


async def _fill(store: DocumentStore, embedder: Embedder | None, name: str) -> None:
    described = await store.describe(name)
    wanted = "" if embedder is None else embedder.id
    for doc in described.documents if described else ():
        if doc.is_unfinished(wanted) and not await fill(store, embedder, name, doc.doc_id):
            return  # without an embedder now, the rest would fail as well


async def _prepared(wanted: list[Wanted]) -> list[NewDocument]:
    docs: list[NewDocument] = []
    for each in wanted:
        try:
            docs.append(NewDocument(each.origin, await in_thread(each.prepare)))
        except FileRefused as error:
            log.warning("%s is not indexed: %s", each.origin.filename, error)
    return docs


async def _embedded(doc: NewDocument, embedder: Embedder | None) -> NewDocument:
    if embedder is None:
        return doc
    texts = [embedded_text(doc.origin, chunk) for chunk in to_embed(doc.prepared)]
    try:
        return replace(doc, vectors=await embedder.embed(texts), embedder_id=embedder.id)
    except EmbeddingFailed as error:
        log.warning("%s is searched by words only: %s", doc.origin.filename, error)
        return doc


def _same(held: Document | None, wanted: Wanted, hashes: Mapping[str, str]) -> bool:
    return (
        held is not None
        and held.sha256 == hashes[wanted.origin.filename]
        and dict(held.origin.extra) == dict(wanted.origin.extra)
    )


def _topic_files(folder: Path) -> dict[str, bytes]:
    """By topic; hidden files are somebody's unfinished work."""
    if not folder.exists():
        return {}
    files = sorted(path for path in folder.iterdir() if path.suffix == ".txt" and not path.name.startswith("."))
    return {path.stem: path.read_bytes() for path in files}


def _topic(topic: str, data: bytes, team_name: str, *, internal: bool) -> Wanted:
    extra = {"topic": topic, "team_name": team_name, **({"internal": "true"} if internal else {})}
    origin = Origin(f"{topic}.txt", extra=extra)

    def made() -> Prepared:
        text = data.decode(errors="replace")
        lines = text.removesuffix("\n").split("\n")
        return Prepared(
            filename=origin.filename,
            kind=DocumentKind.TEAM_TOPIC,
            confidence=1.0,
            sha256=hashlib.sha256(data).hexdigest(),
            size=len(data),
            text=text,
            n_lines=len(lines),
            chunks=tuple(topic_chunks(lines, topic)),
        )

    return Wanted(origin, data, made)


def _article(name: str, text: str, max_bytes: int) -> Wanted:
    data = text.encode()
    title = _title(name, text)
    origin = Origin(name, extra={"kb_article_id": name, "title": title, "category": _category(name)})
    is_page = name.startswith(("http://", "https://"))
    taken_as = name if accepted(name) and not is_page else "page.md"
    limits = FileLimits(max_file_bytes=max(max_bytes, len(data)), max_lines=_MAX_LINES)

    def made() -> Prepared:
        return replace(prepare(taken_as, data, limits=limits), filename=name)

    return Wanted(origin, data, made)


def _title(name: str, text: str) -> str:
    heading = _HEADING.search(text[:4000])
    found = (heading["marked"] or heading["plain"]) if heading else name.rsplit("/", 1)[-1]
    return " ".join(found.split())[:_TITLE_CHARS] or name


def _category(name: str) -> str:
    """The folder, or the site."""
    if name.startswith(("http://", "https://")):
        return name.split("/")[2]
    return name.rpartition("/")[0]
