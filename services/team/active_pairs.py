"""The pairs that topics hold, by id and by conversation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal

from services.team import qa_ids
from services.team.archive import Pair


class ActivePairs:
    """Keys are the instants of pairs (`qa_ids.instant`)."""

    def __init__(self, pairs: Iterable[Pair]) -> None:
        self._pairs: dict[Decimal, Pair] = {}
        self._conversations: dict[str, dict[Decimal, Pair]] = {}
        for pair in pairs:
            self.add(qa_ids.instant(pair.id), pair)

    def get(self, key: Decimal) -> Pair | None:
        return self._pairs.get(key)

    def captures(self, conversation_id: str) -> Mapping[Decimal, Pair]:
        """The captures of one conversation."""
        return self._conversations.get(conversation_id, {})

    def add(self, key: Decimal, pair: Pair) -> None:
        self._pairs[key] = pair
        self._conversations.setdefault(pair.conversation_id, {})[key] = pair

    def remove(self, key: Decimal) -> None:
        """Raises KeyError: it is in no topic."""
        pair = self._pairs.pop(key)
        captures = self._conversations[pair.conversation_id]
        del captures[key]
        if not captures:
            del self._conversations[pair.conversation_id]
