"""Whether to answer, to point somewhere, or to be silent: one figure from several signs that a search gives."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import NamedTuple


class Level(StrEnum):
    ANSWER = "answer"
    POINT = "point"
    SILENCE = "silence"


class Signals(NamedTuple):
    """What a search shows of how well its best passages fit.

    Attributes:
        best_cosine: the highest of any passage; None: only words were compared.
        keywords: BM25 of the best passage, in units of a word that occurs nowhere else.
        absent: the share of the query's words that occur in no passage at all.
        agreement: how many sources are among the first five by words and by meaning, 0 to 5.
        coverage: the share of the query's words that the best passage holds, rare ones counting more.
        size: the natural logarithm of how many passages there are: the more, the better the best one fits by chance.
    """

    best_cosine: float | None
    keywords: float
    absent: float
    agreement: int
    coverage: float
    size: float


_ANSWER, _ANSWER_BY_WORDS, _POINT = 0.46, 0.5, 0.12
"""From which probability on. By words alone fewer are right, but those that are wrong are rated lower still."""
FEW = 500
"""Fewer passages count as so many for confidence, which was fitted to larger documentations. On the scenes of
tests/services/assistant/extractive/marlstow.py, by earlier weights: 65 right and 1 wrong; with 200 77 and 2, with 800
58 and none.
"""
MOST_ABSENT = 0.25
"""A question with a larger share of words that occur nowhere is hardly about what is documented: it is not answered. Of
few passages that says nothing.
"""
_STRANGE = 0.5
"""The share of a question's words that occur nowhere, from which nothing is named unless it points somewhere."""
NEAREST = 0.005
"""Below this nothing is near enough to be named. Of questions that are answered one in a hundred has less than 0.06."""

# Fitted by logistic regression to what people ask about ten documentations: 146 questions that these answer, as many
# that they do not, all of the former asked of the other documentations too, and messages of chats about other things.
# What leaving one documentation out at a time gives is in benchmarks/README.md, "Answers". Tried with these, and of no
# use: the share of words that are covered, words matched one by one (`embedding/matching.py`).
_WITH_MEANING = {"best_cosine": 10.95, "keywords": 0.59, "agreement": 0.23, "size": -0.31}
_OFFSET_WITH_MEANING = -5.67
# The same for six documentations, an earlier set.
_BY_WORDS = {"keywords": 1.54, "absent": -5.5, "coverage": 1.46, "size": -1.11}
_OFFSET_BY_WORDS = 4.02


def is_worth_naming(probability: float, signals: Signals, *, calibrated: bool, in_english: bool) -> bool:
    """Whether the nearest page may be named at all. By words alone, the figures are too low to tell; and in another
    language many words occur nowhere, in this form.
    """
    if in_english and probability < _POINT and signals.absent >= _STRANGE and not _is_small(signals):
        return False
    return probability >= NEAREST or not calibrated or signals.best_cosine is None


def judged(signals: Signals, *, calibrated: bool) -> tuple[float, Level]:
    """The probability that one of the first three pages answers, and what it is enough for. Without `calibrated`,
    cosines do not count: they mean something else with every model, and in every language.
    """
    by_meaning = calibrated and signals.best_cosine is not None
    weights = _WITH_MEANING if by_meaning else _BY_WORDS
    values = signals._asdict()
    total = _OFFSET_WITH_MEANING if by_meaning else _OFFSET_BY_WORDS
    total += sum(weight * float(values[name]) for name, weight in weights.items())
    probability = 1 / (1 + math.exp(-total))
    enough = probability >= _ANSWER_BY_WORDS
    if by_meaning:  # by words alone, what is absent counts anyway
        about_this = signals.absent <= MOST_ABSENT or _is_small(signals)
        enough = probability >= _ANSWER and about_this
    if enough:
        return probability, Level.ANSWER
    return probability, Level.POINT if probability >= _POINT else Level.SILENCE


def _is_small(signals: Signals) -> bool:
    """Whether there are so few passages that words which occur nowhere say nothing."""
    return signals.size <= math.log(FEW)
