"""How strongly two texts are related: the words that they share, weighted by rarity."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Collection, Iterable

from services.search import terms

READ = 2_000
"""Characters of a message: what follows is a log or code."""
COUNTED = 1_000
"""Messages, the newest, that say how rare a word is."""


def words_of(text: str) -> frozenset[str]:
    """The words of a message, in any language: stems, or pairs of characters where no blanks are written.

    Always read as the same language, so that a question and its answer never differ in what a word becomes. Words that
    carry no subject in other languages stay in; they weigh little, since they are frequent.
    """
    return frozenset(terms(text[:READ]))


class Rarity:
    """Counts words over the newest messages, to weight them by rarity."""

    __slots__ = ("_counts", "_messages")

    def __init__(self) -> None:
        self._messages: deque[frozenset[str]] = deque()
        self._counts: Counter[str] = Counter()

    def add(self, words: frozenset[str]) -> None:
        """Add the words of a message."""
        self._messages.append(words)
        self._counts.update(words)
        if len(self._messages) > COUNTED:
            for word in self._messages.popleft():
                left = self._counts[word] - 1
                if left:
                    self._counts[word] = left
                else:
                    del self._counts[word]

    def shared(self, words: Iterable[str], others: Collection[str]) -> float:
        """Return the weight of the words that both have: for each, the logarithm of one over the share of messages that
        contain it.
        """
        both = sorted(word for word in words if word in others)  # sorted: a sum must not depend on the order of a set
        return sum(math.log((len(self._messages) + 1) / (self._counts[word] + 1)) for word in both)
