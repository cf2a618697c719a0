"""Decides when topics are described again while pairs are still being filed (SPEC 6, "Team index").

    pairs of a topic    1  2  3  4  5  6  7  8  9 …
    described           x  x     x           x

The index that a pair is classified with shows descriptions, so it must not depend on when an answer of a model came: it
follows from the decisions alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from services.team.topics import Topic


class Growth:
    """Schedules the descriptions of topics, one decision after another.

    Attributes:
        described: by name, each topic as it was when it was last to be described.
    """

    def __init__(self, every: int = 1, topics: Mapping[str, Topic] | None = None) -> None:
        """`every`: a topic that has doubled is described after each so many decisions; a new one at once. `topics`:
        those that are there, and count as described.
        """
        self._every = every
        self._decisions = 0
        self._grown: dict[str, Topic] = {}  # topics that have changed since
        self._due: dict[str, Topic] = {}
        self.described = dict(topics or {})

    def note(self, topics: Mapping[str, Topic], changed: Iterable[str]) -> None:
        """Take in a decision: the `topics` after it, and the names of those that it `changed`."""
        self._decisions += 1
        for name in changed:
            topic = topics.get(name)
            if topic is None:
                for each in (self.described, self._grown, self._due):
                    each.pop(name, None)
            elif name in self.described:
                self._grown[name] = topic
            else:
                self._describe(topic)
        if self._decisions % self._every == 0:
            for topic in self._grown.values():
                if self._doubled(topic.name, len(topic.pairs)):
                    self._describe(topic)
            self._grown.clear()

    def would_be_due(self, topics: Mapping[str, Topic], more: Mapping[str, int]) -> bool:
        """True if one of these `topics` would be due for a new description after the given number of pairs were added
        to each, by name.
        """
        names = [name for name in {*self._grown, *more} if name in topics and name in self.described]
        return any(self._doubled(name, len(topics[name].pairs) + more.get(name, 0)) for name in names)

    def due(self) -> list[Topic]:
        """Return the topics that are to be described before the next decision, by name, each once."""
        found = [self._due[name] for name in sorted(self._due)]
        self._due.clear()
        return found

    def _doubled(self, name: str, pairs: int) -> bool:
        return pairs >= 2 * len(self.described[name].pairs)

    def _describe(self, topic: Topic) -> None:
        self.described[topic.name] = self._due[topic.name] = topic
