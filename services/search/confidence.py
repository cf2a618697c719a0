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


_ANSWER, _ANSWER_BY_WORDS, _POINT = 0.56, 0.5, 0.15
"""From which probability on. By words alone fewer are right, but those that are wrong are rated lower still."""

# Fitted by logistic regression to 219 questions about six documentations that these answer, 75 that they do not, all of
# them asked of the other documentations too, and 680 messages of chats about other things. Leaving one documentation
# out at a time, the right page is among those shown for 0.64 of its questions (by words: 0.50), and 0.91 (0.95) of
# what is shown is right (benchmarks/README.md, "Answers"). Without `size`: 0.56 and 0.89 (0.41 and 0.95).
_WITH_MEANING = {"best_cosine": 14.15, "keywords": 1.19, "agreement": 0.22, "size": -0.84}
_OFFSET_WITH_MEANING = -4.8
_BY_WORDS = {"keywords": 1.54, "absent": -5.5, "coverage": 1.46, "size": -1.11}
_OFFSET_BY_WORDS = 4.02


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
    if probability >= (_ANSWER if by_meaning else _ANSWER_BY_WORDS):
        return probability, Level.ANSWER
    return probability, Level.POINT if probability >= _POINT else Level.SILENCE
