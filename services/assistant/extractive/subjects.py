"""What captured conversations are about, in terms that can be weighed, compared and named."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from services.search import STOP_WORDS, asking_sentences, stem, terms
from services.team import Pair, Speaker

_TEAM_WEIGHT = 0.7
"""Answers weigh less than questions, as they wander from the subject."""
_MAX_READ_CHARS = 4_000
"""Of a message: what follows is a pasted log."""
_IMAGINED = 12
"""Conversations that hold none of the terms, so that rarity means something among the first few."""
_NOISE = re.compile(
    r"```.*?```|https?://\S+|\[(?:image|file): [^\]\n]*\]|(?<!\S)@[\w.-]+"
    r"|\b(?=\w*\d)\w{12,}\b",  # ids and hashes
    re.DOTALL,
)
_WORD = re.compile(r"[^\W\d_]{3,20}")
_NAME_WORDS = 2
_MIN_TERM_CHARS = 3


@dataclass(frozen=True, slots=True)
class Subject:
    """The terms of one conversation.

    Attributes:
        weights: terms of both sides, weighing more the more often they occur.
        words: the users' words in lower case, in order of first use: of the sentences that ask, if there are any.
    """

    weights: Mapping[str, float]
    asked: frozenset[str]
    answered: frozenset[str]
    words: tuple[str, ...]


@lru_cache(maxsize=4_096)
def subject_of(pair: Pair) -> Subject:
    users, team = (_said(pair, speaker) for speaker in (Speaker.USER, Speaker.TEAM))
    asked, answered = Counter(_terms(users)), Counter(_terms(team))
    weights = {term: asked[term] + _TEAM_WEIGHT * answered[term] for term in (asked | answered)}
    asking, others = asking_sentences(users)
    return Subject(
        {term: 1 + math.log(max(1.0, weight)) for term, weight in weights.items()},
        frozenset(asked),
        frozenset(answered),
        _words(asking) or _words(others),
    )


class TopicVectors:
    """The conversations of all topics as vectors of terms, weighed by rarity (TF-IDF)."""

    def __init__(self, topics: Mapping[str, Sequence[Pair]]) -> None:
        self._topics = {name: [subject_of(pair) for pair in pairs] for name, pairs in topics.items() if pairs}
        self._holders = Counter(
            term for subjects in self._topics.values() for subject in subjects for term in subject.weights
        )
        self._count = sum(map(len, self._topics.values()))
        self._rare: dict[str, float] = {}

    def nearest(self, subject: Subject) -> tuple[str, float]:
        """The topic whose conversations are most like this one on average, and their likeness, 0 to 1.

        The average keeps topics from growing without end: the more a topic holds, the less it is like anything.
        """
        unit = self._unit(subject)
        near = {
            name: sum(_dot(unit, self._unit(each)) for each in subjects) / len(subjects)
            for name, subjects in self._topics.items()
        }
        return max(near.items(), key=lambda item: item[1], default=("", 0.0))

    def name(self, subject: Subject) -> str:
        """A new topic's name: the rarest words, above all those that both sides use, as the users wrote them."""
        stems: dict[str, str] = {}
        for word in subject.words:
            stems.setdefault(stem(word), word)
        worth = {
            word: self._rarity(term) * subject.weights[term] * (2 if term in subject.answered else 1)
            for term, word in stems.items()
            if term in subject.weights
        }
        best = sorted(worth, key=lambda word: -worth[word])[:_NAME_WORDS]
        return "-".join(word for word in worth if word in best)

    def _unit(self, subject: Subject) -> dict[str, float]:
        weighed = {term: weight * self._rarity(term) for term, weight in subject.weights.items()}
        length = math.sqrt(sum(value * value for value in weighed.values())) or 1.0
        return {term: value / length for term, value in weighed.items()}

    def _rarity(self, term: str) -> float:
        rare = self._rare.get(term)
        if rare is None:
            rare = self._rare[term] = math.log(1 + (self._count + _IMAGINED) / (1 + self._holders[term]))
        return rare


def share(part: frozenset[str], whole: frozenset[str]) -> float:
    """How much of `part` is in `whole`, 0 to 1."""
    return len(part & whole) / (len(part) or 1)


def _words(sentences: Iterable[str]) -> tuple[str, ...]:
    words = (word.lower() for word in _WORD.findall("\n".join(sentences)))
    return tuple(dict.fromkeys(word for word in words if word not in STOP_WORDS))


def _said(pair: Pair, speaker: Speaker) -> str:
    said = "\n".join(turn.text[:_MAX_READ_CHARS] for turn in pair.turns if turn.speaker is speaker)
    return _NOISE.sub(" ", said)


def _terms(text: str) -> list[str]:
    return [term for term in terms(text) if len(term) >= _MIN_TERM_CHARS and not term.isdigit()]


def _dot(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    return sum(value * other[term] for term, value in one.items() if term in other)
