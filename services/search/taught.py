"""Estimates whether an earlier answer of the team answers a question. Pure arithmetic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from services.search.confidence import Level
from services.search.embedding.matching import Match
from services.search.finding import Found, Hit, TeamAnswer, TeamAnswerSignals
from services.search.words import terms

MOST = 6
"""So many answers are looked at word by word."""
KEYWORDS = 0.05
"""What BM25 counts beside the cosine where answers are ranked."""
_ALIKE = 0.6
"""The share of the words of two questions that both have, from which they are the same question."""
NEAR = 0.5
"""What the likeness of single words counts beside both."""


_ANSWER, _POINT = 0.5, 0.1
# Fitted by `benchmarks.evaluation.teaching` to two courses of an FAQ and two chats, whose figures with one of them left
# out are in benchmarks/README.md, "Answers of the team".
_MATCHED: Mapping[str, float] = {"keywords": 0.51, "ahead": 5.5, "near": 6.77, "missing": -2.0}
_MATCHED_OFFSET = -6.96
_BY_WORDS: Mapping[str, float] = {"keywords": 0.77, "ahead": 25.8}
_BY_WORDS_OFFSET = -4.31


def candidates(found: Found) -> list[Hit]:
    """Return the best passage of each answer, the best answers first. `found`: a search among the team's texts alone."""
    best: dict[tuple[str, int], Hit] = {}
    for hit in sorted(found.hits, key=_rank, reverse=True):
        best.setdefault((hit.source_id, hit.kept.section), hit)
    return list(best.values())[:MOST]


def judged(hits: Sequence[Hit], matches: Sequence[Match]) -> list[TeamAnswer]:
    """Return each candidate with its confidence, the surest first; among equally sure ones, those that helped before.
    `matches`: one for each candidate, or none at all.
    """
    if not hits:
        return []
    ranks = [_rank(hit) + (NEAR * matches[at].near if matches else 0.0) for at, hit in enumerate(hits)]
    asked = [frozenset(terms(hit.kept.headings[-1])) if hit.kept.headings else frozenset[str]() for hit in hits]
    found: list[TeamAnswer] = []
    for at, hit in enumerate(hits):
        # What answers the same question is no rival.
        others = [rank for other, rank in enumerate(ranks) if other != at and not _alike(asked[at], asked[other])]
        ahead = ranks[at] - max(others, default=0.0)
        signals = TeamAnswerSignals(hit.keywords, ahead, *(matches[at] if matches else ()))
        confidence = probability(signals) if hit.kept.quotable else 0.0
        found.append(TeamAnswer(hit, confidence, level_of(confidence), signals))
    return sorted(found, key=lambda each: (-round(each.confidence, 1), not each.hit.kept.helped, -each.confidence))


def probability(signals: TeamAnswerSignals) -> float:
    weights, total = (_BY_WORDS, _BY_WORDS_OFFSET) if signals.near is None else (_MATCHED, _MATCHED_OFFSET)
    total += sum(weight * float(getattr(signals, name)) for name, weight in weights.items())
    return 1 / (1 + math.exp(-total))


def level_of(confidence: float) -> Level:
    if confidence >= _ANSWER:
        return Level.ANSWER
    return Level.POINT if confidence >= _POINT else Level.SILENCE


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two questions are one, put in nearly the same words."""
    return len(one & other) >= _ALIKE * len(one | other) > 0


def _rank(hit: Hit) -> float:
    return (hit.cosine or 0.0) + KEYWORDS * hit.keywords
