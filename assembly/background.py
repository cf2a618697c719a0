"""Work beside the graph: documents get their vectors."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from services.documents import fill
from services.documents.store import DocumentStore, StoreUnavailable
from services.search.embedding import Embedder

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Background:
    """Runs work beside the graph, such as computing vectors of documents, and cancels it at the end."""

    store: DocumentStore
    embedder: Embedder | None
    tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]], init=False)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def embed_soon(self, name: str, doc_id: str) -> None:
        """Give a document its vectors, by the names of its collection and its own."""
        if self.embedder is not None:
            self.start(self._embed(name, doc_id))

    async def _embed(self, name: str, doc_id: str) -> None:
        try:
            await fill(self.store, self.embedder, name, doc_id)
        except StoreUnavailable as error:
            log.warning("%s: keyword search only for a document: %s", name, error)

    async def close(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
