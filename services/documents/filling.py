"""Giving a document its vectors, after it can be searched by words."""

from __future__ import annotations

import logging

from services.documents.store.protocol import DocumentStore
from services.search.embedding import Embedder, EmbeddingFailed

log = logging.getLogger(__name__)

AT_ONCE = 64
"""Chunks between two writes: what a crash or a closed thread leaves unembedded."""


async def fill(store: DocumentStore, embedder: Embedder | None, name: str, doc_id: str) -> bool:
    """Embed what has no vector yet. True: the document is `ready`.

    False: it is gone meanwhile, or there is no embedder: then it stays searchable by words.

    Raises:
        StoreUnavailable: the store cannot be used.
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
            log.warning("%s: a document is searched by words only: %s", name, error)
            return False
        found = {chunk.chunk_index: vector for chunk, vector in zip(some, vectors, strict=True)}
        if not await store.embed(name, doc_id, embedder.id, found):
            return False
    return True
