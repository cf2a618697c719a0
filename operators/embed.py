"""A file that can be searched by words, until it can be searched by meaning as well."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any

from operators.chunk import IngestResult
from services.documents import fill
from services.documents.store import DocumentStore, StoreUnavailable, naming
from services.search.embedding import Embedder

log = logging.getLogger(__name__)


def embed(store: DocumentStore, embedder: Embedder) -> Callable[[IngestResult], Coroutine[Any, Any, IngestResult]]:
    """Give a file its vectors. Where there are none to be had, it stays searchable by words."""

    async def embedded(filed: IngestResult) -> IngestResult:
        if filed.document is not None:
            name = naming.case(str(filed.filing.candidate.case_id))
            try:
                await fill(store, embedder, name, filed.document.doc_id)
            except StoreUnavailable as error:
                log.warning("evidence: %s: by words only: %s", name, error)
        return filed

    return embedded
