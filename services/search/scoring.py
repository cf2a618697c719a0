"""Scores texts against a query: BM25 for words, scaled cosines for meaning; ranks a few texts in memory."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from services.search.languages import language_of
from services.search.tokenizer import terms

Floats = NDArray[np.float32]
Positions = NDArray[np.int64]

K1, B = 1.2, 0.75
"""The usual values (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009)."""
IMAGINED_TEXTS = 12
"""Texts without any of the words, added to the count of real ones: in a small library every word is in a large
share of the texts, and would weigh next to nothing.
"""


class Postings(NamedTuple):
    """The positions of the texts with a word, and how often it is in each."""

    positions: Positions
    times: Floats


def stored_postings(connection: sqlite3.Connection, word: str, numbers: Positions) -> Postings:
    """Read the postings of a word from FTS5's vocabulary `words_found`. `numbers`: the rows of all texts, in order."""
    rows = connection.execute(
        "SELECT doc, count(*) FROM words_found WHERE term = ? GROUP BY doc ORDER BY doc", (word,)
    ).fetchall()
    table = np.array(rows, dtype=np.int64).reshape(-1, 2)
    return Postings(np.searchsorted(numbers, table[:, 0]), table[:, 1].astype(np.float32))


def stored_vectors(blobs: Sequence[bytes]) -> Floats:
    """Return stored vectors as rows."""
    vectors = np.frombuffer(b"".join(blobs), dtype=np.float32)
    return vectors.reshape(len(blobs), -1) if blobs else np.zeros((0, 0), dtype=np.float32)


def rarity(holders: int, texts: int) -> float:
    """Return the weight of a word (BM25's inverse document frequency)."""
    return float(np.log(1 + (texts - holders + 0.5) / (holders + 0.5)))


def bm25(
    postings: Sequence[Postings], lengths: Floats, *, k1: float = K1, b: float = B, imagined: int = 0
) -> tuple[Floats, Floats]:
    """Return for each text its BM25 score and its share of the query's words, rare ones counting more."""
    count = len(lengths)
    scores = np.zeros(count, dtype=np.float32)
    covered = np.zeros(count, dtype=np.float32)
    mean = float(lengths.mean()) if count else 1.0
    norms = k1 * (1 - b + b * lengths / max(mean, 1.0))
    total = 0.0
    for positions, times in postings:
        weight = rarity(len(positions), count + imagined)
        total += weight
        scores[positions] += weight * times * (k1 + 1) / (times + norms[positions])
        covered[positions] += weight
    return scores, covered / total if total else covered


def scaled_to_one(scores: Floats) -> Floats:
    """Scale scores to between 0 and 1, so that scores of two kinds can be added; NaN becomes 0."""
    known = scores[~np.isnan(scores)]
    if not len(known):
        return np.zeros_like(scores)
    low, high = float(known.min()), float(known.max())
    if high == low:
        return np.where(np.isnan(scores) | (scores <= 0), 0.0, 1.0).astype(np.float32)
    return np.nan_to_num((scores - low) / (high - low), nan=0.0).astype(np.float32)


def best_positions(scores: Floats, allowed: Positions, depth: int, *, positive: bool) -> Positions:
    """Return the positions of the `depth` highest scores among the allowed ones; on a tie the earlier one first."""
    if positive:
        allowed = allowed[scores[allowed] > 0]
    if len(allowed) > depth:
        cutoff = np.partition(scores[allowed], len(allowed) - depth)[len(allowed) - depth]
        allowed = allowed[scores[allowed] >= cutoff]
    order = np.lexsort((allowed, -scores[allowed]))
    return allowed[order][:depth]


_MAX_TERMS = 64


def rank(texts: Sequence[str], query: str) -> list[int]:
    """Return the positions of all `texts`, the best first, on a tie the earlier one. Blocking: about 1 s a megabyte."""
    if not texts:
        return []
    language = language_of(query)
    word_counts = [Counter(terms(text, language)) for text in texts]
    postings: list[Postings] = []
    for word in dict.fromkeys(terms(query, language)[:_MAX_TERMS]):
        positions = [position for position, counts in enumerate(word_counts) if word in counts]
        times = np.array([word_counts[position][word] for position in positions], dtype=np.float32)
        postings.append(Postings(np.array(positions, dtype=np.int64), times))
    lengths = np.array([counts.total() for counts in word_counts], dtype=np.float32)
    scores, _ = bm25(postings, lengths, imagined=IMAGINED_TEXTS)
    return [int(position) for position in np.lexsort((np.arange(len(texts)), -scores))]
