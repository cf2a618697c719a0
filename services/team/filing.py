"""Rules that complete a decision: which topic file a pair goes into, and which pairs it replaces (SPEC 6)."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TypeVar

from services.knowledge import belongs_to, files_of, first_of, is_topic_name, next_file, topic_name
from services.team import qa_ids
from services.team.archive import Pair, part_of
from services.team.decisions import Action, Decision, FiledPiece, Remark
from services.team.fold import TopicFold
from services.team.topics import Topic, block_of, is_exchange, place, render

T = TypeVar("T")

log = logging.getLogger(__name__)

MOST_REMOVED = 3


def allowed_removals(pair: Pair, held: Sequence[Pair], remove_ids: Sequence[str]) -> tuple[str, ...]:
    """Return those of `remove_ids`, the pairs that a model calls obsolete, that may be removed when `pair` joins
    `held`.

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
    """Return those of a model's `remarks` that are about an older pair of the topic which is not `removed` anyway. The
    others are logged. As with removals, earlier captures of the same conversation do not count.
    """
    said = tuple(remarks)
    others = _others(pair, (each for each in held if each.id not in removed)) if said else {}
    kept: list[Remark] = []
    for remark in said:
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


def parts_by_topic(pair: Pair, pieces: Iterable[tuple[Sequence[str], str]]) -> dict[str, Pair]:
    """Split a pair by topic, as a model says: `pieces` holds ids of messages and a safe topic name for each. Returns
    nothing if no piece has both a question and an answer; the pair is then filed as a whole. Unknown ids are logged.
    """
    named: dict[str, set[int]] = {}
    known = {str(message_id): message_id for message_id in pair.message_ids}
    for message_ids, topic in pieces:
        unknown = [each for each in message_ids if each not in known]
        if unknown:
            log.warning("%s: not messages of it: %.200r", pair.id, unknown)
        named.setdefault(topic, set()).update(known[each] for each in message_ids if each in known)
    parts = {topic: part_of(pair, messages) for topic, messages in named.items() if topic}
    whole = {topic: part for topic, part in parts.items() if part is not None and is_exchange(part)}
    if named and not whole:
        log.warning("%s: no piece of it has a question and an answer; it is filed as a whole", pair.id)
    return whole


def together(pair: Pair, parts: Mapping[str, Pair], decisions: Sequence[Decision]) -> Decision:
    """Merge the decisions about the `parts` of a pair, one for each part, into one decision about the pair. It is
    `added` with those parts that are.
    """
    added = [
        (part, decision)
        for part, decision in zip(parts.values(), decisions, strict=True)
        if decision.action is Action.ADDED
    ]
    whole = len(added) == 1 and added[0][0] == pair
    pieces = (FiledPiece(tuple(map(str, part.message_ids)), decision.topic or "") for part, decision in added)
    return replace(
        added[0][1] if added else decisions[0],
        remove_ids=_each_once(each.remove_ids for each in decisions),
        replaces=_each_once(each.replaces for _, each in added),
        superseded_parts=_each_once(each.superseded_parts for _, each in added),
        conflicts=_each_once(each.conflicts for _, each in added),
        pieces=() if whole else tuple(pieces),
    )


def _each_once(groups: Iterable[Iterable[T]]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(each for group in groups for each in group))


def replaced_by(pair: Pair, held: Iterable[Pair]) -> tuple[str, ...]:
    """Return the ids of the earlier captures of the same conversation, which `pair` contains."""
    return tuple(each.id for each in held if each.conversation_id == pair.conversation_id and each.key < pair.key)


def topic_files(topics: Mapping[str, Topic], topic: str) -> list[str]:
    """Return the names of a topic's files, the first and its continuations, in order; none for a new topic."""
    return files_of(first_of(_safe(topic), topics), topics)


def added(fold: TopicFold, decision: Decision, pair: Pair, max_chars: int) -> Decision:
    """Complete a decision that adds a pair: with the topic file, of at most `max_chars` characters, that the pair goes
    into, and with all pairs that it replaces. The decision becomes `skipped` if a later capture of the conversation
    is active. Raises ValueError: it names no topic.
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
            pieces=(),
        )
    replaces = dict.fromkeys((*decision.replaces, *replaced_by(pair, fold.captures(pair))))
    return _filed(fold, replace(decision, replaces=tuple(replaces)), decision.topic, pair, max_chars)


def restored(fold: TopicFold, decision: Decision, pair: Pair, max_chars: int) -> Decision:
    """Complete a decision that restores a pair: with the topic file that the pair goes into. Unchanged if the pair does
    not move.
    """
    placement = fold.placement
    topic = decision.topic or placement.last_topic.get(decision.key)
    if topic is None or placement.topic_of.get(decision.key) == topic:
        return decision
    if placement.last_topic.get(decision.key) == topic:
        decision = replace(decision, pieces=placement.pieces.get(decision.key, ()))
    return _filed(fold, decision, topic, pair, max_chars)


def _filed(fold: TopicFold, decision: Decision, topic: str, pair: Pair, max_chars: int) -> Decision:
    """Choose, for the pair and each of its pieces, the first file of the topic that has room once the replaced pairs
    have left.
    """
    leaving = {qa_ids.instant(each) for each in (pair.id, *decision.remove_ids, *decision.replaces)}
    room: dict[str, int] = {}
    for held in (fold.active[key] for key in leaving if key in fold.active):
        for name, messages in fold.placement.parts(held.key).items():
            room[name] = room.get(name, 0) + _length(part_of(held, messages))

    def file_for(topic: str, part: Pair | None) -> str:
        there = topic_files(fold.topics, topic)
        for name in there:
            left = len(fold.topics[name].text) - room.get(name, 0)
            if left <= 0 or left + _length(part) <= max_chars:
                return name
        if not there:
            return _safe(topic)
        following = next_file(there[0], fold.topics)
        # If the name cannot grow any more, a long file is better than a decision that cannot be read.
        return following if is_topic_name(following) else there[-1]

    if not decision.pieces:
        return replace(decision, topic=file_for(topic, pair))
    pieces = tuple(
        replace(piece, topic=file_for(piece.topic, part_of(pair, piece.messages))) for piece in decision.pieces
    )
    return replace(decision, topic=pieces[0].topic, pieces=pieces)


def _length(pair: Pair | None) -> int:
    return len(render(block_of(pair))) if pair is not None else 0


def _safe(name: str) -> str:
    return name if is_topic_name(name) else topic_name(name)


def name_without(topic: str, words: Collection[str], taken: Collection[str]) -> str:
    """Return a topic name without these words that is not `taken`; the same name if it has none of them."""
    said = topic.split("-")
    kept = [word for word in said if word not in words]
    return topic if len(kept) == len(said) else next_file("-".join(kept) or "topic", taken)


def keeps_its_name(topic: str, named_by_operator: Collection[str]) -> bool:
    """True if the configuration refers to this topic: renamed, it would lose its settings."""
    return belongs_to(topic, named_by_operator)
