"""Ranks a few texts in memory by BM25."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from services.search import scoring
from services.search.languages import language_of
from services.search.scoring import Postings
from services.search.words import terms

MOST_TERMS = 64


def ranked(texts: Sequence[str], query: str) -> list[int]:
    """Return the positions of all `texts`, the best for `query` first; on a tie the earlier one. Blocking: about a
    megabyte of text a second.
    """
    if not texts:
        return []
    language = language_of(query)
    counted = [Counter(terms(text, language)) for text in texts]
    held: list[Postings] = []
    for word in dict.fromkeys(terms(query, language)[:MOST_TERMS]):
        places = [place for place, counts in enumerate(counted) if word in counts]
        times = np.array([counted[place][word] for place in places], dtype=np.float32)
        held.append(Postings(np.array(places, dtype=np.int64), times))
    lengths = np.array([counts.total() for counts in counted], dtype=np.float32)
    scores, _ = scoring.bm25(held, lengths, imagined=scoring.IMAGINED)
    return [int(place) for place in np.lexsort((np.arange(len(texts)), -scores))]
