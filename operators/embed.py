"""A file that can be searched by words, until it can be searched by meaning as well."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any

from operators.chunk import IngestResult
from services.documents import fill
from services.documents.store import DocumentStore, StoreUnavailable
from services.search.embedding import Embedder

log = logging.getLogger(__name__)


def embed(store: DocumentStore, embedder: Embedder) -> Callable[[IngestResult], Coroutine[Any, Any, IngestResult]]:
    """Give a file its vectors. Without them it stays searchable by words."""

    async def embedded(result: IngestResult) -> IngestResult:
        if result.document is not None:
            name = result.job.candidate.collection.name
            try:
                await fill(store, embedder, name, result.document.doc_id)
            except StoreUnavailable as error:
                log.warning("evidence: %s: keyword search only: %s", name, error)
        return result

    return embedded
