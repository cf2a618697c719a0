"""What a decision says in full: which file of its topic a pair goes into, and which others it replaces (SPEC 6)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from services.knowledge import files_of, first_of, is_topic_name, next_file, topic_name
from services.team import qa_ids
from services.team.archive import Pair
from services.team.decisions import Action, Decision, Remark
from services.team.fold import TopicFold
from services.team.topics import Topic, block_of, place, render

log = logging.getLogger(__name__)

MOST_REMOVED = 3


def allowed_removals(pair: Pair, held: Sequence[Pair], remove_ids: Sequence[str]) -> tuple[str, ...]:
    """Those of `remove_ids`, which a model calls obsolete, that may go when `pair` joins `held` (Pitfall 10).

    Only pairs of the topic that are older than `pair`; at most 3, and at most half of the topic with `pair` counted:
    one of one or two, two of three or four. Earlier captures of the same conversation do not count: the model has not
    seen them. The others are logged.
    """
    if not remove_ids:
        return ()
    others = _others(pair, held)
    most = min(MOST_REMOVED, (len(others) + 1) // 2)
    allowed: dict[str, None] = {}
    for pair_id in remove_ids:
        found = _older(pair, others, pair_id)
        if isinstance(found, Pair) and found.id not in allowed and len(allowed) >= most:
            found = f"of {len(others)} pairs at most {most} may go at once"
        if isinstance(found, Pair):
            allowed[found.id] = None
        else:
            log.warning("%s does not remove %.80r: %s", pair.id, pair_id, found)
    return tuple(allowed)


def allowed_remarks(
    pair: Pair, held: Sequence[Pair], removed: Sequence[str], remarks: Iterable[Remark]
) -> tuple[Remark, ...]:
    """Those of a model's `remarks` that say something about an older pair of the topic which is not `removed` anyway.
    The others are logged. As with removals, earlier captures of the same conversation do not count.
    """
    others = _others(pair, (each for each in held if each.id not in removed))
    kept: list[Remark] = []
    for remark in remarks:
        found = _older(pair, others, remark.id) if remark.what else "it says nothing"
        if isinstance(found, Pair):
            kept.append(Remark(found.id, remark.what))
        else:
            log.warning("%s: a remark about %.80r is dropped: %s", pair.id, remark.id, found)
    return tuple(kept)


def _others(pair: Pair, held: Iterable[Pair]) -> dict[Decimal, Pair]:
    return {each.key: each for each in held if each.conversation_id != pair.conversation_id}


def _older(pair: Pair, others: Mapping[Decimal, Pair], pair_id: str) -> Pair | str:
    """The one with this id; or why there is none that is older than `pair`."""
    try:
        found = others.get(qa_ids.instant(pair_id.strip()))
    except qa_ids.BadId:
        found = None
    if found is None:
        return "it is not in the topic"
    return found if place(found) < place(pair) else "it is not older"


def replaced_by(pair: Pair, held: Iterable[Pair]) -> tuple[str, ...]:
    """The ids of the earlier captures of the same conversation, which `pair` contains (Pitfalls 13 and 15)."""
    return tuple(each.id for each in held if each.conversation_id == pair.conversation_id and each.key < pair.key)


def topic_files(topics: Mapping[str, Topic], topic: str) -> list[str]:
    """The names of the topic and its continuations, in order; none for a new one."""
    return files_of(first_of(_safe(topic), topics), topics)


def added(fold: TopicFold, decision: Decision, pair: Pair, max_chars: int) -> Decision:
    """The decision with the topic file, of at most `max_chars` characters, that the pair goes into, and all that it
    replaces; or `skipped`, if a later capture of its conversation is active. Raises ValueError: it names no topic.
    """
    if not decision.topic:
        raise ValueError(f"{decision.qa_id} is added to no topic")
    if (later := fold.later_capture(pair)) is not None:
        reason = f"{later.id} is a later capture of the same conversation"
        return replace(
            decision,
            action=Action.SKIPPED,
            topic=None,
            remove_ids=(),
            reason=reason,
            superseded_parts=(),
            conflicts=(),
        )
    replaces = dict.fromkeys((*decision.replaces, *replaced_by(pair, fold.captures(pair))))
    return _filed(fold, replace(decision, replaces=tuple(replaces)), decision.topic, pair, max_chars)


def restored(fold: TopicFold, decision: Decision, pair: Pair, max_chars: int) -> Decision:
    """The decision with the topic file that the pair goes into; unchanged if it does not move."""
    topic = decision.topic or fold.placement.last_topic.get(decision.key)
    if topic is None or fold.placement.topic_of.get(decision.key) == topic:
        return decision
    return _filed(fold, decision, topic, pair, max_chars)


def _filed(fold: TopicFold, decision: Decision, topic: str, pair: Pair, max_chars: int) -> Decision:
    """In the first file of the topic that has room for the pair once the others have left it."""
    leaving = {qa_ids.instant(each) for each in (pair.id, *decision.remove_ids, *decision.replaces)}
    room: dict[str, int] = {}
    for key in leaving:
        name, held = fold.placement.topic_of.get(key), fold.active.get(key)
        if name is not None and held is not None:
            room[name] = room.get(name, 0) + _length(held)
    there = topic_files(fold.topics, topic)
    for name in there:
        left = len(fold.topics[name].text) - room.get(name, 0)
        if left <= 0 or left + _length(pair) <= max_chars:
            return replace(decision, topic=name)
    if not there:
        return replace(decision, topic=_safe(topic))
    following = next_file(there[0], fold.topics)
    # If the name cannot grow any more, a long file is better than a decision that cannot be read.
    return replace(decision, topic=following if is_topic_name(following) else there[-1])


def _length(pair: Pair) -> int:
    return len(render(block_of(pair)))


def _safe(name: str) -> str:
    return name if is_topic_name(name) else topic_name(name)
