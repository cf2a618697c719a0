"""Reads the bytes of a file into a document for a store, in another process; and embeds stored documents."""

from __future__ import annotations

import logging

from clock import WorkRunner
from services.conversations import phrases
from services.documents.limits import FileLimits, FileRefused
from services.documents.reading import DocumentRedactors
from services.documents.reading_work import prepare_document
from services.documents.store.document_store import DocumentStore
from services.documents.store.protocol import NewDocument, Origin
from services.search.embedding import Embedder, EmbeddingFailed


async def ingest(
    run: WorkRunner,
    origin: Origin,
    data: bytes,
    *,
    limits: FileLimits,
    title: str | None = None,
    redactors: DocumentRedactors,
) -> NewDocument:
    """Read `data` into a document: `prepare_document`, executed by `run`. The text is in `rows` only; `prepared`
    has neither text nor chunks.

    Raises:
        FileRefused: the file is too large, of a kind that is not accepted, or not text.
        WorkStopped: reading takes too long or too much memory.
    """
    return await run(prepare_document, origin, data, limits, title, redactors)


def refusal_text(refused: FileRefused, language: str = "en") -> str:
    """Return one line for people that says why a file is refused and what to do, in a language (ISO 639-1)."""
    said = phrases(language)
    return " ".join(said.say(sentence, **refused.values) for sentence in refused.sentences)


log = logging.getLogger(__name__)

AT_ONCE = 64  # chunks that are embedded between two writes: a crash loses no more


async def embed_document(store: DocumentStore, embedder: Embedder | None, name: str, doc_id: str) -> bool:
    """Embed the chunks of a document that have no vector yet. Returns True if the document is `ready` then.

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
