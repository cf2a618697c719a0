"""Whether a passage says enough about what was asked. A wrong answer is worse than none."""

from __future__ import annotations

import re

from services.search import Fit, Passage, Postings, Query, terms, weigh

MIN_STRENGTH = 0.8
"""Tuned on one half of tests/services/assistant/extractive/marlstow.py, for no wrong answer rather than for many."""
MIN_FOCUS = 0.28
_STATEMENT = re.compile(r"(?<=[.!?:;])\s+|\n\s*\n|\n(?=\s*(?:[-*|]|\d+\.)\s)")
_READ = 4_000
"""Characters: a longer passage is a listing, and is judged by how it begins."""


def is_good(query: Query, passage: Passage, fit: Fit, library: Postings) -> bool:
    """Rare words were found, and one statement of the passage, read under its heading, holds most of them.

    Words that are scattered over a long passage only happen to meet there. `library` tells how rare words are.
    """
    if fit.score * fit.coverage < MIN_STRENGTH:
        return False
    share = focus(query, passage, library)
    return share >= MIN_FOCUS and fit.score * share >= MIN_STRENGTH


def focus(query: Query, passage: Passage, library: Postings) -> float:
    """The share of what must be found that the best statement and the passage's own heading hold, 0 to 1."""
    weights = {word: weigh(word, library) * query.weights[word] for word in query.counted}
    headed = set(terms(passage.heading.rpartition(" › ")[2]))
    held = max(
        sum(weight for word, weight in weights.items() if word in said)
        for said in (headed.union(terms(text)) for text in _STATEMENT.split(passage.text[:_READ]))
    )
    return held / (sum(weights.values()) or 1.0)
