"""BM25: how well documents fit a few words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from services.search.queries import Query

# The usual values (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009).
_K1 = 1.2
_B = 0.75

_IMAGINED = 12
"""Documents that hold none of the words, added to the count of real ones.

In a small library every word is in a large share of the documents, and no score would reach a threshold.
"""


class Postings:
    """Documents, turned inside out: for each word, who holds it. Built once, then cheap to ask."""

    def __init__(self, documents: Iterable[Sequence[str]]) -> None:
        """`documents`: the terms of each."""
        self.lengths: list[int] = []
        self.words = 0
        """Of all documents together."""
        self.postings: dict[str, list[tuple[int, int]]] = {}
        """For each word the places of the documents that hold it, and how often."""
        for place, terms in enumerate(documents):
            self.lengths.append(len(terms))
            for term, count in Counter(terms).items():
                self.postings.setdefault(term, []).append((place, count))
        self.words = sum(self.lengths)

    @classmethod
    def joined(cls, corpora: Iterable[Postings]) -> Postings:
        """All documents of `corpora`, in their order, so that a search costs one look-up a word."""
        whole = cls(())
        for corpus in corpora:
            offset = len(whole.lengths)
            whole.lengths.extend(corpus.lengths)
            whole.words += corpus.words
            for term, held in corpus.postings.items():
                whole.postings.setdefault(term, []).extend((offset + place, count) for place, count in held)
        return whole


class Fit(NamedTuple):
    """How well one document fits."""

    score: float
    """BM25, in units of what a word weighs that occurs nowhere else: the same in small libraries as in large ones."""
    coverage: float
    """The share that the document holds of what must be found, 0 to 1, rare words counting more."""
    matches: int
    """How many different words it holds of what must be found."""
    place: int
    """Of the document in what was ranked."""


@dataclass(slots=True)
class _Tally:
    score: float = 0.0
    covered: float = 0.0
    matches: int = 0


def rank(query: Query, corpora: Sequence[Postings], background: Postings | None = None) -> list[Fit]:
    """The documents of all corpora that hold a word of the query, best first; on a tie in their own order.

    A `Fit` counts its place through all corpora, in their order. `background` tells how rare words are, where the
    corpora are a part of something larger.
    """
    lengths = corpora[0].lengths if len(corpora) == 1 else [n for corpus in corpora for n in corpus.lengths]
    measured = corpora if background is None or not background.lengths else [background]
    count = sum(len(corpus.lengths) for corpus in measured)
    mean = max(1.0, sum(corpus.words for corpus in measured) / max(1, count))
    total = max(count, len(lengths)) + _IMAGINED
    whole = 0.0
    tallies: dict[int, _Tally] = {}
    for word, importance in query.weights.items():
        holders = _holders(word, corpora)
        common = max(len(holders), 0 if background is None else len(background.postings.get(word, ())))
        weight = importance * _rarity(common, total)
        counts = word in query.counted
        if counts:
            whole += weight
        for place, count in holders:
            tally = tallies.get(place)
            if tally is None:
                tally = tallies[place] = _Tally()
            tally.score += weight * count * (_K1 + 1) / (count + _K1 * (1 - _B + _B * lengths[place] / mean))
            if counts:
                tally.covered += weight
                tally.matches += 1
    unit = _rarity(0, total)
    fits = [
        Fit(tally.score / unit, tally.covered / (whole or 1), tally.matches, place) for place, tally in tallies.items()
    ]
    fits.sort(key=lambda fit: (-fit.score, fit.place))
    return fits


def weigh(word: str, corpus: Postings) -> float:
    """How rare a word is."""
    return _rarity(len(corpus.postings.get(word, ())), len(corpus.lengths) + _IMAGINED)


def _rarity(holders: int, total: int) -> float:
    return math.log(1 + (total - holders + 0.5) / (holders + 0.5))


def _holders(word: str, corpora: Sequence[Postings]) -> list[tuple[int, int]]:
    if len(corpora) == 1:
        return corpora[0].postings.get(word, [])
    holders: list[tuple[int, int]] = []
    offset = 0
    for corpus in corpora:
        holders.extend((offset + place, count) for place, count in corpus.postings.get(word, ()))
        offset += len(corpus.lengths)
    return holders
