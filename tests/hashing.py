"""Vectors made of hashes of words, close only for texts that share words: quick, for tests and measurements."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from services.search.embedding import Vectors
from services.search.tokenizer import smallest_tokens


class HashingEmbedder:
    """An `Embedder` without a model."""

    def __init__(self, dimensions: int = 256) -> None:
        self._dimensions = dimensions

    @property
    def id(self) -> str:
        return f"hashing-{self._dimensions}"

    async def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), self._dimensions), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in smallest_tokens(text):
                place, sign = _place(word, self._dimensions)
                vectors[row, place] += sign
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return (vectors / np.where(norms > 0, norms, 1)).astype(np.float32)

    async def close(self) -> None:
        pass


@lru_cache(maxsize=65_536)
def _place(word: str, dimensions: int) -> tuple[int, float]:
    digest = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "big")
    return digest % dimensions, 1.0 if digest >> 63 else -1.0
