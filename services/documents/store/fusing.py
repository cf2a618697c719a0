"""How keyword and vector search become one order (DOCUMENT_QA 5.4).

Two arms under the same filter, each giving its best; over their union both scores are spread between 0 and 1 and
added up with a weight for each kind of chunk. What holds an identifier of the question literally goes before all else.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from services.documents.store.frames import KINDS, Frame
from services.documents.store.protocol import Weights
from services.documents.units import ChunkType

Floats = NDArray[np.float32]
Places = NDArray[np.int64]
Mask = NDArray[np.bool_]


def bm25(held: list[tuple[Places, Floats]], lengths: Floats, k1: float, b: float) -> tuple[Floats, Floats]:
    """For every chunk its score for the words, and the share of the words that it holds, rare ones counting more."""
    count = len(lengths)
    scores = np.zeros(count, dtype=np.float32)
    covered = np.zeros(count, dtype=np.float32)
    mean = float(lengths.mean()) if count else 1.0
    whole = 0.0
    norms = k1 * (1 - b + b * lengths / max(mean, 1.0))
    for places, times in held:
        rarity = float(np.log(1 + (count - len(places) + 0.5) / (len(places) + 0.5)))
        whole += rarity
        scores[places] += rarity * times * (k1 + 1) / (times + norms[places])
        covered[places] += rarity
    return scores, covered / whole if whole else covered


def best(scores: Floats, allowed: Places, depth: int, *, positive: bool) -> Places:
    """The places, among the allowed ones, of the `depth` highest scores; on a tie the earlier chunk."""
    if positive:
        allowed = allowed[scores[allowed] > 0]
    if len(allowed) > depth:
        near = np.partition(scores[allowed], len(allowed) - depth)[len(allowed) - depth]
        allowed = allowed[scores[allowed] >= near]
    order = np.lexsort((allowed, -scores[allowed]))
    return allowed[order][:depth]


def weights_of(frame: Frame, places: Places, weights: Weights, verbatim: Floats) -> Floats:
    """How much the vector counts, chunk by chunk."""
    by_kind = {ChunkType.WINDOW: weights.window, ChunkType.PATTERN: weights.pattern, ChunkType.LEAF: weights.leaf}
    table = np.array([by_kind.get(kind, weights.prose) for kind in KINDS], dtype=np.float32)
    return np.where(verbatim.max(initial=0.0) > 0, weights.identifier, table[frame.kinds[places]]).astype(np.float32)


def fuse(cosines: Floats | None, keywords: Floats, share: Floats, weight: Floats, bonus: float) -> Floats:
    """Rank scores over one union. `cosines`: None when there are no vectors; NaN for a chunk without one."""
    if cosines is None:
        return (_spread(keywords) + bonus * share).astype(np.float32)
    return (weight * _spread(cosines) + (1 - weight) * _spread(keywords) + bonus * share).astype(np.float32)


def _spread(scores: Floats) -> Floats:
    known = scores[~np.isnan(scores)]
    if not len(known):
        return np.zeros_like(scores)
    low, high = float(known.min()), float(known.max())
    if high == low:
        return np.where(np.isnan(scores) | (scores <= 0), 0.0, 1.0).astype(np.float32)
    return np.nan_to_num((scores - low) / (high - low), nan=0.0).astype(np.float32)
