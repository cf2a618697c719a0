"""Whoever turns text into vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
"""One row a text, or one row."""


class EmbeddingFailed(Exception):
    """There are no vectors for these texts: one readable line that says what to do."""


class Embedder(Protocol):
    @property
    def id(self) -> str:
        """Names the model and how it is run: vectors of different ids are never compared."""
        ...

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """One row a text, each of length 1. The same text gives the same row.

        Raises:
            EmbeddingFailed: there are none.
        """
        ...

    async def close(self) -> None: ...
