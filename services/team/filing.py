"""Where a pair goes: into which file of its topic, and in the place of which others (SPEC 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from services.knowledge import files_of, first_of, is_topic_name, next_file, topic_name
from services.team import qa_ids
from services.team.active_pairs import ActivePairs
from services.team.archive import Pair
from services.team.decisions import Action, Decision
from services.team.placement import Placement
from services.team.superseding import replaced_by
from services.team.topics import Topic, block_of, render


@dataclass(frozen=True, slots=True)
class TeamFiling:
    """Topics as they stand; nothing is changed here."""

    topics: Mapping[str, Topic]
    placement: Placement
    in_force: ActivePairs
    max_topic_chars: int

    def files(self, topic: str) -> list[str]:
        """The topic and its continuations, in order; none for a new one."""
        return files_of(first_of(_safe(topic), self.topics), self.topics)

    def added(self, decision: Decision, pair: Pair) -> Decision:
        """What is noted: with the file that the pair goes into, and all that it replaces; or that it is skipped, where
        a later capture of its conversation is in force.

        Raises:
            ValueError: the decision names no topic.
        """
        if not decision.topic:
            raise ValueError(f"{decision.qa_id} is added to no topic")
        key = qa_ids.instant(decision.qa_id)
        captures = self.in_force.captures(pair.conversation_id)
        later = max(captures, default=key)
        if later > key:
            reason = f"{captures[later].id} is a later capture of the same conversation"
            return replace(decision, action=Action.SKIPPED, topic=None, remove_ids=(), reason=reason)
        replaces = dict.fromkeys((*decision.replaces, *replaced_by(pair, list(captures.values()))))
        return self._filed(replace(decision, replaces=tuple(replaces)), decision.topic, pair)

    def restored(self, decision: Decision, pair: Pair) -> Decision:
        """What is noted: with the file that the pair goes into. As it was, where it goes nowhere."""
        key = qa_ids.instant(decision.qa_id)
        topic = decision.topic or self.placement.last_topic.get(key)
        if topic is None or self.placement.topic_of.get(key) == topic:
            return decision
        return self._filed(decision, topic, pair)

    def _filed(self, decision: Decision, topic: str, pair: Pair) -> Decision:
        """In the first file of the topic that has room for the pair once the others have left it."""
        needed = len(render(block_of(pair)))
        leaving = {qa_ids.instant(each) for each in (*decision.remove_ids, *decision.replaces)}
        leaving.add(qa_ids.instant(pair.id))
        room: dict[str, int] = {}
        for key in leaving:
            name, held = self.placement.topic_of.get(key), self.in_force.get(key)
            if name is not None and held is not None:
                room[name] = room.get(name, 0) + len(render(block_of(held)))
        return replace(decision, topic=self._file_with(needed, topic, room))

    def _file_with(self, needed: int, topic: str, room: Mapping[str, int]) -> str:
        there = self.files(topic)
        for name in there:
            length = self.topics[name].length - room.get(name, 0)
            if length <= 0 or length + needed <= self.max_topic_chars:
                return name
        if not there:
            return _safe(topic)
        following = next_file(there[0], self.topics)
        # A name that cannot grow any more: better a long file than a decision that nobody can read.
        return following if is_topic_name(following) else there[-1]


def _safe(name: str) -> str:
    return name if is_topic_name(name) else topic_name(name)
