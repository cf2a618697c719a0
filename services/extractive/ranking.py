"""BM25: how well documents fit a few words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

# The usual values (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009).
_K1 = 1.2
_B = 0.75

_IMAGINED = 12
"""Documents that hold none of the words, added to the count of real ones.

In a small library every word is in a large share of the documents, and no score would reach a threshold.
"""


class Corpus:
    """Documents, turned inside out: for each word, who holds it. Built once, then cheap to ask."""

    def __init__(self, documents: Iterable[Sequence[str]]) -> None:
        """`documents`: the terms of each."""
        self.lengths: list[int] = []
        self.postings: dict[str, list[tuple[int, int]]] = {}
        """For each word the places of the documents that hold it, and how often."""
        for place, terms in enumerate(documents):
            self.lengths.append(len(terms))
            for term, count in Counter(terms).items():
                self.postings.setdefault(term, []).append((place, count))


class Fit(NamedTuple):
    """How well one document fits."""

    score: float
    coverage: float
    """The share of the query that the document holds, 0 to 1, rare words counting more."""
    matches: int
    """How many different words of the query it holds."""
    place: int
    """Of the document in what was ranked."""


@dataclass(slots=True)
class _Tally:
    score: float = 0.0
    covered: float = 0.0
    matches: int = 0


def rank(query: Iterable[str], corpora: Sequence[Corpus]) -> list[Fit]:
    """The documents of all corpora that hold a word of the query, best first; on a tie in their own order.

    A `Fit` counts its place through all corpora, in their order.
    """
    lengths = [length for corpus in corpora for length in corpus.lengths]
    mean = max(1.0, sum(lengths) / max(1, len(lengths)))
    total = len(lengths) + _IMAGINED
    whole = 0.0
    tallies: dict[int, _Tally] = {}
    for word in dict.fromkeys(query):
        holders = _holders(word, corpora)
        weight = math.log(1 + (total - len(holders) + 0.5) / (len(holders) + 0.5))
        whole += weight
        for place, count in holders:
            tally = tallies.setdefault(place, _Tally())
            tally.score += weight * count * (_K1 + 1) / (count + _K1 * (1 - _B + _B * lengths[place] / mean))
            tally.covered += weight
            tally.matches += 1
    fits = [Fit(tally.score, tally.covered / whole, tally.matches, place) for place, tally in tallies.items()]
    fits.sort(key=lambda fit: (-fit.score, fit.place))
    return fits


def _holders(word: str, corpora: Sequence[Corpus]) -> list[tuple[int, int]]:
    holders: list[tuple[int, int]] = []
    offset = 0
    for corpus in corpora:
        holders.extend((offset + place, count) for place, count in corpus.postings.get(word, ()))
        offset += len(corpus.lengths)
    return holders
