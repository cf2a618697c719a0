"""The protocol of an embedder, and one that asks an OpenAI-compatible endpoint."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

import clock

Vectors = NDArray[np.float32]
"""One row per text, or a single row."""


class EmbeddingFailed(Exception):
    """There are no vectors for these texts; the message is one line that says what to do."""


class Embedder(Protocol):
    @property
    def id(self) -> str:
        """Identifies the model and how it is run. Vectors of different ids are never compared."""
        ...

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """One row per text, each of length 1. The same text gives the same row. Raises EmbeddingFailed."""
        ...

    async def close(self) -> None: ...


BATCH = 64
MAX_RETRIES = 2
MAX_CHARS = 8000
"""Of one text: many models refuse longer ones."""


@dataclass(frozen=True, slots=True)
class EmbeddingEndpoint:
    base_url: str
    model: str
    api_key: str = field(default="", repr=False)
    timeout_seconds: float = 30.0


class EndpointEmbedder:
    """An `Embedder`. Nothing is imported or dialled before the first call.

    `http_client` makes the client of the SDK, with a time-out in seconds; it blocks. None: the SDK's own.
    """

    def __init__(self, endpoint: EmbeddingEndpoint, http_client: Callable[[float], Any] | None = None) -> None:
        self._endpoint = endpoint
        self._http_client = http_client
        self._client: Any = None
        self._errors: tuple[type[Exception], ...] = ()

    @property
    def id(self) -> str:
        return f"{self._endpoint.model} at {self._endpoint.base_url}"

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        batches = [list(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH)]
        return np.concatenate([await self._embed(batch) for batch in batches])

    async def close(self) -> None:
        if self._client is not None:
            client, self._client = self._client, None
            await clock.real_time(client.close)

    async def _embed(self, batch: list[str]) -> Vectors:
        await asyncio.to_thread(self._open)  # the import takes a second
        try:
            # Empty texts are refused.
            given = [text[:MAX_CHARS].strip() or "-" for text in batch]
            answer = await clock.real_time(
                lambda: self._client.embeddings.create(model=self._endpoint.model, input=given, encoding_format="float")
            )
            rows = sorted(answer.data, key=lambda row: row.index)
            vectors = np.array([row.embedding for row in rows], dtype=np.float32)
        except (*self._errors, ValueError, TypeError, AttributeError) as error:
            reason = type(error).__name__
            raise EmbeddingFailed(f"{self.id} gave no embeddings ({reason}); check that it runs") from None
        if vectors.ndim != 2 or len(vectors) != len(batch):  # noqa: PLR2004 (rows of numbers)
            raise EmbeddingFailed(f"{self.id} gave {len(vectors)} embeddings for {len(batch)} texts; try another model")
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return (vectors / np.maximum(norms, 1e-12)).astype(np.float32)

    def _open(self) -> None:
        if self._client is not None:
            return
        openai = cast("Any", importlib.import_module("openai"))
        self._errors = (openai.OpenAIError,)
        made, seconds = openai.DefaultAsyncHttpxClient, self._endpoint.timeout_seconds
        self._client = openai.AsyncOpenAI(
            base_url=self._endpoint.base_url,
            api_key=self._endpoint.api_key or "none",  # the SDK requires one
            max_retries=MAX_RETRIES,
            timeout=seconds,
            http_client=made(timeout=seconds) if self._http_client is None else self._http_client(seconds),
        )
