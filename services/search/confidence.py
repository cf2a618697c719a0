"""Estimates from the signals of a search whether to answer, to name a page, or to stay silent."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import NamedTuple


class Level(StrEnum):
    ANSWER = "answer"
    POINT = "point"
    SILENCE = "silence"


class Signals(NamedTuple):
    """Features of a search result from which confidence is computed.

    Attributes:
        best_cosine: the highest of any passage; None: only words were compared.
        mean_cosine: of all passages: how much the question sounds like what is documented; None as above.
        keywords: BM25 of the best passage, in units of a word that occurs nowhere else.
        absent: the share of the query's words that occur in no passage at all.
        agreement: how many sources are among the first five by words and by meaning, 0 to 5.
        coverage: the share of the query's words that the best passage holds, rare ones counting more.
        size: the natural logarithm of how many passages there are: the more, the better the best one fits by chance.
        length: the natural logarithm of how many words the query has and one more, up to 40: who writes a whole
            sentence asks, and many words are harder to cover than few.
        stranger: whether it names something, in a capital letter, that occurs nowhere.
    """

    best_cosine: float | None
    mean_cosine: float | None
    keywords: float
    absent: float
    agreement: int
    coverage: float
    size: float
    length: float
    stranger: bool = False


_ANSWER, _POINT = 0.5, 0.12
"""From which probability on."""
FEW = 500
"""Fewer passages count as so many for confidence, which was fitted to larger documentations. On the scenes of
tests/services/assistant/extractive/marlstow.py: 75 right, 1 wrong and 1 where it should have been silent; with 200 82
and 3, with 1,000 71 and 1.
"""
NEAREST = 0.04
"""Below this nothing is near enough to be named. Of the questions that find what answers them 4 in 1,000 have less, of
those about something else half."""

# Fitted by logistic regression to what people ask about ten documentations: 290 questions that these answer, 194 that
# they do not, all of the former asked of the other documentations too, and messages of chats about other things.
# What leaving one documentation out at a time gives is in benchmarks/README.md, "Answers". Tried with these, and of no
# use: BM25 of the best passage beside its cosine, words matched one by one (`embedding/matching.py`).
_WITH_MEANING = {
    "best_cosine": 12.65,
    "mean_cosine": -5.87,
    "absent": -4.15,
    "agreement": 0.31,
    "coverage": 2.87,
    "size": -0.64,
    "length": 1.32,
}
_OFFSET_WITH_MEANING = -6.57
# By words alone, fitted to six of them and fewer questions. A fit to all of the above answers more in large
# documentations, and fewer in small ones in other languages: of tests/evaluation 12 of 42 in place of 18.
_BY_WORDS = {"keywords": 1.54, "absent": -5.5, "coverage": 1.46, "size": -1.11}
_OFFSET_BY_WORDS = 4.02


def is_worth_naming(probability: float, signals: Signals, *, calibrated: bool) -> bool:
    """Return whether the best page may be named at all. By words alone probabilities are too low to tell, so it always
    may.
    """
    return probability >= NEAREST or not calibrated or signals.best_cosine is None


def judged(signals: Signals, *, calibrated: bool) -> tuple[float, Level]:
    """Return the probability that one of the first three pages answers, and the level that it reaches. Without
    `calibrated`, cosines are ignored: their scale differs with each model and language.
    """
    by_meaning = calibrated and signals.best_cosine is not None
    weights = _WITH_MEANING if by_meaning else _BY_WORDS
    values = signals._asdict()
    total = _OFFSET_WITH_MEANING if by_meaning else _OFFSET_BY_WORDS
    total += sum(weight * float(values[name]) for name, weight in weights.items())
    probability = 1 / (1 + math.exp(-total))
    # Of 290 questions about ten documentations none names such a thing; of what is asked in chats about others a third.
    if probability >= _ANSWER and not signals.stranger:
        return probability, Level.ANSWER
    return probability, Level.POINT if probability >= _POINT else Level.SILENCE
