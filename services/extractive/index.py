"""Ranks the entries of an index by how well they fit a query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from services.extractive.ranking import Corpus, Fit, rank
from services.extractive.recent import Recent
from services.extractive.words import terms
from services.library import IndexEntry

_MAX_QUERY_TERMS = 48
"""A pasted log is read no further: what it is about stands at its beginning."""
_KEPT_CHARS = 2_000_000


class Ranked(NamedTuple):
    entry: IndexEntry
    fit: Fit


def query_terms(query: str) -> list[str]:
    """The different terms of a query, in order, the first few dozen."""
    return list(dict.fromkeys(terms(query)))[:_MAX_QUERY_TERMS]


def rank_index(query: str, index: Sequence[IndexEntry]) -> list[Ranked]:
    """The entries that share a word with the query, best first; ties in the order of the index."""
    entries = tuple(index)
    return [Ranked(entries[fit.place], fit) for fit in rank(query_terms(query), [_corpora(entries)])]


def _build(entries: tuple[IndexEntry, ...]) -> Corpus:
    return Corpus(terms(entry.id.partition(":")[2]) + terms(entry.description) for entry in entries)


def _weigh(entries: tuple[IndexEntry, ...]) -> int:
    return sum(len(entry.id) + len(entry.description) for entry in entries)


_corpora = Recent(_build, _weigh, _KEPT_CHARS)
