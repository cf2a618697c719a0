"""BM25: how well documents fit a few terms."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from services.search.questions import Query

# The usual values (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009).
_K1 = 1.2
_B = 0.75

_IMAGINED = 12
"""Documents without any of the terms, added to the count of real ones.

In a small library every term is in a large share of the documents, and no score would reach a threshold.
"""


class Postings:
    """An inverted index: for each term, the documents that hold it. `documents`: the terms of each.

    Attributes:
        lengths: the number of terms of each document.
        words: the number of terms of all documents.
        postings: for each term the places of the documents that hold it, and how often they do.
    """

    def __init__(self, documents: Iterable[Sequence[str]]) -> None:
        self.lengths: list[int] = []
        self.postings: dict[str, list[tuple[int, int]]] = {}
        for place, terms in enumerate(documents):
            self.lengths.append(len(terms))
            for term, count in Counter(terms).items():
                self.postings.setdefault(term, []).append((place, count))
        self.words = sum(self.lengths)

    @classmethod
    def joined(cls, corpora: Iterable[Postings]) -> Postings:
        """All documents of `corpora`, in order, so that a search costs one look-up per term."""
        whole = cls(())
        for corpus in corpora:
            offset = len(whole.lengths)
            whole.lengths.extend(corpus.lengths)
            whole.words += corpus.words
            for term, held in corpus.postings.items():
                whole.postings.setdefault(term, []).extend((offset + place, count) for place, count in held)
        return whole


class Fit(NamedTuple):
    """How well one document fits.

    Attributes:
        score: BM25, in units of what a term weighs that occurs nowhere else: the same in small libraries as in large.
        coverage: the share of the counted terms that the document holds, 0 to 1, rare terms weighing more.
        matches: the number of different counted terms that the document holds.
        place: of the document in what was ranked.
    """

    score: float
    coverage: float
    matches: int
    place: int


def rank(query: Query, corpora: Sequence[Postings], background: Postings | None = None) -> list[Fit]:
    """The documents of all corpora that hold a term of the query, best first; on a tie in their own order.

    A `Fit` counts its place through all corpora, in order. `background` tells how rare terms are if the corpora are a
    part of something larger.
    """
    lengths = [length for corpus in corpora for length in corpus.lengths]
    offsets = list(accumulate((len(corpus.lengths) for corpus in corpora), initial=0))
    measured = corpora if background is None or not background.lengths else [background]
    count = sum(len(corpus.lengths) for corpus in measured)
    mean = max(1.0, sum(corpus.words for corpus in measured) / max(1, count))
    total = max(count, len(lengths)) + _IMAGINED
    whole = 0.0
    scores: defaultdict[int, float] = defaultdict(float)
    covered: defaultdict[int, float] = defaultdict(float)
    matches: Counter[int] = Counter()
    for term, importance in query.weights.items():
        held = [corpus.postings.get(term, ()) for corpus in corpora]
        common = max(sum(map(len, held)), 0 if background is None else len(background.postings.get(term, ())))
        weight = importance * _rarity(common, total)
        counts = term in query.counted
        if counts:
            whole += weight
        for offset, holders in zip(offsets, held, strict=False):
            for local, often in holders:
                place = offset + local
                scores[place] += weight * often * (_K1 + 1) / (often + _K1 * (1 - _B + _B * lengths[place] / mean))
                if counts:
                    covered[place] += weight
                    matches[place] += 1
    unit = _rarity(0, total)
    fits = (Fit(score / unit, covered[place] / (whole or 1), matches[place], place) for place, score in scores.items())
    return sorted(fits, key=lambda fit: (-fit.score, fit.place))


def weigh(term: str, corpus: Postings) -> float:
    """How rare a term is."""
    return _rarity(len(corpus.postings.get(term, ())), len(corpus.lengths) + _IMAGINED)


def _rarity(holders: int, total: int) -> float:
    return math.log(1 + (total - holders + 0.5) / (holders + 0.5))
