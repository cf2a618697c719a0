"""The seam for turning text into vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
"""One row per text, or a single row."""


class EmbeddingFailed(Exception):
    """There are no vectors for these texts; the message is one line that says what to do."""


class Embedder(Protocol):
    @property
    def id(self) -> str:
        """The model and how it is run: vectors of different ids are never compared."""
        ...

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """One row per text, each of length 1. The same text gives the same row.

        Raises:
            EmbeddingFailed: the texts cannot be embedded.
        """
        ...

    async def close(self) -> None: ...
