"""Where decisions put pairs: a fold that needs only their ids, which are compared as instants.

added      into its topic; what it replaces or makes obsolete goes out
skipped    nowhere; what it makes obsolete goes out
failed     nowhere
removed    out; when an operator says so, nothing but `restored` brings it in again
restored   in again, where it was last; a model's `remove_ids` no longer take it out. A pair that was in no topic
before it was removed counts as undecided again
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from services.team import qa_ids
from services.team.decisions import Action, By, Decision


@dataclass(frozen=True, slots=True)
class Move:
    key: Decimal
    """The instant of the pair's id."""
    source: str | None
    """The topic that it goes out of."""
    target: str | None
    """The topic that it comes into."""


class Placement:
    """The state of the fold."""

    def __init__(self) -> None:
        self.topic_of: dict[Decimal, str] = {}
        """The pairs in force."""
        self.decided: set[Decimal] = set()
        self.last_topic: dict[Decimal, str] = {}
        """Of every pair that was ever in force."""
        self.withdrawn: set[Decimal] = set()
        """By an operator."""
        self.failed: set[Decimal] = set()
        """Those of which nothing else was decided since."""
        self.newest: str | None = None
        """The newest id that was ever decided about."""
        self._newest = Decimal("-Infinity")
        self._upheld: set[Decimal] = set()
        """Restored by an operator."""

    def apply(self, decision: Decision) -> list[Move]:
        """Take one decision. Gives the pairs that it moves."""
        key = qa_ids.instant(decision.qa_id)
        self.decided.add(key)
        self.failed.discard(key)
        if key > self._newest:
            self._newest, self.newest = key, decision.qa_id
        match decision.action:
            case Action.ADDED:
                return self._added(key, decision)
            case Action.SKIPPED:
                return self._out(self._obsolete(decision) - {key})
            case Action.FAILED:
                self.failed.add(key)
                return []
            case Action.REMOVED:
                if decision.by is By.OPERATOR:
                    self.withdrawn.add(key)
                    self._upheld.discard(key)
                if decision.topic is not None:  # in a rebuilt library nothing else tells
                    self.last_topic.setdefault(key, decision.topic)
                return self._out([key])
            case Action.RESTORED:
                return self._restored(key, decision)

    def _added(self, key: Decimal, decision: Decision) -> list[Move]:
        if decision.topic is None or key in self.withdrawn:
            return []
        gone = self._obsolete(decision) | set(map(qa_ids.instant, decision.replaces))
        return self._out(gone - {key}) + self._in(key, decision.topic)

    def _restored(self, key: Decimal, decision: Decision) -> list[Move]:
        self.withdrawn.discard(key)
        if decision.by is By.OPERATOR:
            self._upheld.add(key)
        topic = decision.topic or self.last_topic.get(key)
        if topic is None:
            self.decided.discard(key)
            return []
        return self._in(key, topic)

    def _obsolete(self, decision: Decision) -> set[Decimal]:
        return set(map(qa_ids.instant, decision.remove_ids)) - self._upheld

    def _in(self, key: Decimal, topic: str) -> list[Move]:
        before = self.topic_of.get(key)
        self.topic_of[key] = self.last_topic[key] = topic
        return [Move(key, before, topic)] if topic != before else []

    def _out(self, keys: Iterable[Decimal]) -> list[Move]:
        return [Move(key, self.topic_of.pop(key), None) for key in sorted(keys) if key in self.topic_of]
