"""Compares a text with a query word by word. Pure arithmetic.

Each word of the query is compared with the word of the text that is nearest in meaning, by the vectors that the
packaged model gives of words (late interaction: Khattab and Zaharia, "ColBERT", 2020).

One vector for a whole text says what it is about. Whether it has what is asked for, an error, a version, a function,
only the single words tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from services.search.embedding.endpoint import Vectors

Ids = NDArray[np.int64]

VOCABULARY = 30_522
_FIRST_WORD = 1_996
"""BERT's vocabulary has special tokens and single characters first, then pieces of words, the most frequent first."""
_MISSED = 0.6
"""A word whose nearest one is farther away counts as missing, by so much as it is."""


class Words(NamedTuple):
    """The word pieces of a text: their numbers in the vocabulary, and a vector of length 1 for each."""

    ids: Ids
    vectors: Vectors


class Match(NamedTuple):
    """The result of comparing a text with a query word by word.

    Attributes:
        near: the mean likeness of the query's words with the nearest of the text, rare ones counting more: 0 to 1.
        missing: by how much words are missing, in all; 0 and more.
    """

    near: float
    missing: float


@runtime_checkable
class Matcher(Protocol):
    async def match(self, query: str, texts: Sequence[str]) -> Sequence[Match]:
        """Compare each text with the query word by word. Raises EmbeddingFailed."""
        ...


def matched(query: Words, text: Words) -> Match:
    if not len(query.ids) or not len(text.ids):
        return Match(0.0, 0.0)
    nearest = (query.vectors @ text.vectors.T).max(axis=1)
    worth = np.log(np.maximum(query.ids - _FIRST_WORD + 2, 2)) / np.log(VOCABULARY)  # 0 to 1
    return Match(
        near=float(np.average(nearest, weights=np.maximum(worth, 1e-3))),
        missing=float((worth**3 * np.maximum(_MISSED - nearest, 0)).sum()),
    )
