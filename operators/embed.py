"""A file that can be searched by words, until it can be searched by meaning as well."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any

from operators.chunk import Filed
from services.documents.embedding.protocol import Embedder, EmbeddingFailed
from services.documents.store import naming
from services.documents.store.protocol import DocumentStore, StoreUnavailable

AT_ONCE = 64
"""Passages whose vectors are written together: often enough to lose little, seldom enough to disturb no search."""

log = logging.getLogger(__name__)


def embed(store: DocumentStore, embedder: Embedder) -> Callable[[Filed], Coroutine[Any, Any, Filed]]:
    """Embed what waits for it in a file. Where that fails, the file stays searchable by words."""

    async def embedded(filed: Filed) -> Filed:
        if filed.document is None:
            return filed
        name, doc_id = naming.case(str(filed.filing.offer.case_id)), filed.document.doc_id
        try:
            await embed_document(store, embedder, name, doc_id)
        except (EmbeddingFailed, StoreUnavailable) as error:
            log.warning("evidence: attachment %d: by words only: %s", filed.filing.offer.attachment.id, error)
        return filed

    return embedded


async def embed_document(store: DocumentStore, embedder: Embedder, name: str, doc_id: str) -> None:
    """Raises EmbeddingFailed, StoreUnavailable."""
    waiting = await store.unembedded(name, doc_id)
    for start in range(0, len(waiting), AT_ONCE):
        batch = waiting[start : start + AT_ONCE]
        vectors = await embedder.embed([each.text for each in batch])
        rows = {each.chunk_index: row for each, row in zip(batch, vectors, strict=True)}
        if not await store.embed(name, doc_id, embedder.id, rows):
            return  # it was deleted meanwhile
