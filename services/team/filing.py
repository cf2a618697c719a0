"""The rules of filing pairs under topics: what a decision may remove, what it replaces, which file of its topic a pair
goes into, and how a capture differs from earlier ones of its conversation.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TypeVar

from services.knowledge import files_of, first_file_of, fold_name_word, is_topic_name, next_file, topic_name
from services.team import archive
from services.team.archive import LEFT_OUT, REMOVED, Pair, Speaker, piece_of
from services.team.decisions import Action, Decision, FiledPiece, Remark
from services.team.topics import Topic, TopicFold, sort_key, topic_block

T = TypeVar("T")

log = logging.getLogger(__name__)

MAX_REMOVED = 3
IS_LATER = "is a later capture of the same conversation"


def skipped_for(later_id: str) -> str:
    """Return the reason for which an earlier capture of a conversation is skipped."""
    return f"{later_id} {IS_LATER}"


def allowed_removals(pair: Pair, in_topic: Sequence[Pair], remove_ids: Sequence[str]) -> tuple[str, ...]:
    """Return those of `remove_ids`, the pairs that a model calls obsolete, that may be removed when `pair` joins the
    pairs `in_topic`.

    These are pairs of the topic that are older than `pair`; at most 1 if the topic has 1 or 2 other pairs, 2 if it has
    3 or 4, else 3. Earlier captures of the same conversation do not count: the model has not seen them. Other ids are
    logged.
    """
    if not remove_ids:
        return ()
    others = _others(pair, in_topic)
    most = min(MAX_REMOVED, (len(others) + 1) // 2)
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
    pair: Pair, in_topic: Sequence[Pair], removed: Sequence[str], remarks: Iterable[Remark]
) -> tuple[Remark, ...]:
    """Return those of a model's `remarks` that are about an older pair of the topic and not about a `removed` one. The
    others are logged. As with removals, earlier captures of the same conversation do not count.
    """
    remarks = tuple(remarks)
    others = _others(pair, (each for each in in_topic if each.id not in removed)) if remarks else {}
    kept: list[Remark] = []
    for remark in remarks:
        found = _older(pair, others, remark.id) if remark.what else "it says nothing"
        if isinstance(found, Pair):
            kept.append(Remark(found.id, remark.what))
        else:
            log.warning("%s: a remark about %.80r is dropped: %s", pair.id, remark.id, found)
    return tuple(kept)


def _others(pair: Pair, pairs: Iterable[Pair]) -> dict[Decimal, Pair]:
    return {each.key: each for each in pairs if each.conversation_id != pair.conversation_id}


def _older(pair: Pair, others: Mapping[Decimal, Pair], pair_id: str) -> Pair | str:
    """Return the pair with this id if it is older than `pair`; else the reason."""
    try:
        found = others.get(archive.instant(pair_id.strip()))
    except archive.BadId:
        found = None
    if found is None:
        return "it is not in the topic"
    return found if sort_key(found) < sort_key(pair) else "it is not older"


def pieces_by_topic(pair: Pair, pieces: Iterable[tuple[Sequence[str], str]]) -> dict[str, Pair]:
    """Split a pair by topic. `pieces`: from a model, ids of messages and a safe topic name for each. Returns nothing if
    no piece has both a question and an answer; the pair is then filed as a whole. Unknown ids are logged.
    """
    by_topic: dict[str, set[int]] = {}
    known = {str(message_id): message_id for message_id in pair.message_ids}
    for message_ids, topic in pieces:
        unknown = [each for each in message_ids if each not in known]
        if unknown:
            log.warning("%s: not messages of it: %.200r", pair.id, unknown)
        by_topic.setdefault(topic, set()).update(known[each] for each in message_ids if each in known)
    split = {topic: piece_of(pair, messages) for topic, messages in by_topic.items() if topic}
    exchanges = {topic: piece for topic, piece in split.items() if piece is not None and _is_exchange(piece)}
    if by_topic and not exchanges:
        log.warning("%s: no piece of it has a question and an answer; it is filed as a whole", pair.id)
    return exchanges


def _is_exchange(pair: Pair) -> bool:
    """Return what `archive.is_exchange` returns, without removed texts."""
    return archive.is_exchange(pair.kind, (turn for turn in pair.turns if turn.text != REMOVED))


def has_changed(pair: Pair, earlier: Pair) -> bool:
    """Return True if a text of an earlier capture was changed or removed, or is doubted since."""
    return _is_doubted_since(pair, earlier) or bool(_speakers_changed(pair, earlier))


def may_repeat(pair: Pair) -> bool:
    """Return True if a capture may differ from an earlier one as `takes_away` says."""
    lost = (turn for turn in pair.turns if turn.speaker is Speaker.USER)
    return bool(pair.doubted_ids) or any(turn.text == REMOVED or LEFT_OUT in turn.text for turn in lost)


def takes_away(pair: Pair, earlier: Pair) -> bool:
    """Return True if a capture differs from an earlier one of its conversation by nothing but doubts, words of users
    that are gone, and answers that went with their question.
    """
    if (pair.message_ids, pair.author_ids) != (earlier.message_ids, earlier.author_ids):
        return False
    turns = [(now, before) for now, before in zip(pair.turns, earlier.turns, strict=True) if now != before]
    if any(now.speaker is not before.speaker for now, before in turns):
        return False
    users = [(now.text, before.text) for now, before in turns if now.speaker is Speaker.USER]
    of_team = {now.text for now, _ in turns if now.speaker is Speaker.TEAM}
    return all(now == REMOVED or {*now.split()} - {LEFT_OUT} <= {*before.split()} for now, before in users) and (
        of_team <= ({REMOVED} if any(now == REMOVED for now, _ in users) else set())
    )


def has_team_changed(pair: Pair, earlier: Pair) -> bool:
    """Return True if the team alone has changed or removed its words of an earlier capture. What a user removes may
    take an answer with it, and anybody may doubt one.
    """
    return not _is_doubted_since(pair, earlier) and _speakers_changed(pair, earlier) == {Speaker.TEAM}


def _is_doubted_since(pair: Pair, earlier: Pair) -> bool:
    return not set(pair.doubted_ids).issubset(earlier.doubted_ids)


def _speakers_changed(pair: Pair, earlier: Pair) -> set[Speaker]:
    texts = {message_id: turn.text for message_id, turn in zip(pair.message_ids, pair.turns, strict=True)}
    turns = zip(earlier.message_ids, earlier.turns, strict=True)
    return {turn.speaker for message_id, turn in turns if texts.get(message_id, turn.text) != turn.text != REMOVED}


def merge_decisions(pair: Pair, pieces: Mapping[str, Pair], decisions: Sequence[Decision]) -> Decision:
    """Merge the decisions about the `pieces` of a pair, one for each, into one decision about the pair. It is `added`
    if at least one piece was added; it then names only those.
    """
    added = [
        (piece, decision)
        for piece, decision in zip(pieces.values(), decisions, strict=True)
        if decision.action is Action.ADDED
    ]
    whole = len(added) == 1 and added[0][0] == pair
    filed = (FiledPiece(tuple(map(str, piece.message_ids)), decision.topic or "") for piece, decision in added)
    return replace(
        added[0][1] if added else decisions[0],
        remove_ids=_each_once(each.remove_ids for each in decisions),
        replaces=_each_once(each.replaces for _, each in added),
        superseded_parts=_each_once(each.superseded_parts for _, each in added),
        conflicts=_each_once(each.conflicts for _, each in added),
        pieces=() if whole else tuple(filed),
    )


def _each_once(groups: Iterable[Iterable[T]]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(each for group in groups for each in group))


def replaced_by(pair: Pair, pairs: Iterable[Pair]) -> tuple[str, ...]:
    """Return the ids of the earlier captures of the same conversation, which `pair` contains."""
    return tuple(each.id for each in pairs if each.conversation_id == pair.conversation_id and each.key < pair.key)


def topic_files(topics: Mapping[str, Topic], topic: str) -> list[str]:
    """Return the names of a topic's files, the first and its continuations, in order; none for a new topic."""
    return files_of(first_file_of(_safe(topic), topics), topics)


def complete_added(fold: TopicFold, decision: Decision, pair: Pair, max_chars: int) -> Decision:
    """Complete a decision that adds a pair: with the topic file, of at most `max_chars` characters, that the pair goes
    into, and with all pairs that it replaces. The decision becomes `skipped` if a later capture of the conversation
    is active. Raises ValueError: it names no topic.
    """
    if not decision.topic:
        raise ValueError(f"{decision.qa_id} is added to no topic")
    if (later := fold.later_capture(pair)) is not None:
        reason, replaces = skipped_for(later.id), decision.replaces
        return Decision(decision.qa_id, decision.at, Action.SKIPPED, decision.by, replaces=replaces, reason=reason)
    replaces = dict.fromkeys((*decision.replaces, *replaced_by(pair, fold.captures(pair))))
    return _with_topic_files(fold, replace(decision, replaces=tuple(replaces)), decision.topic, pair, max_chars)


def complete_restored(fold: TopicFold, decision: Decision, pair: Pair, max_chars: int) -> Decision:
    """Complete a decision that restores a pair: with the topic file that the pair goes into. Unchanged if the pair does
    not move.
    """
    placement = fold.placement
    topic = decision.topic or placement.last_topic.get(decision.key)
    if topic is None or placement.topic_of.get(decision.key) == topic:
        return decision
    if placement.last_topic.get(decision.key) == topic:
        decision = replace(decision, pieces=placement.pieces.get(decision.key, ()))
    return _with_topic_files(fold, decision, topic, pair, max_chars)


def _with_topic_files(fold: TopicFold, decision: Decision, topic: str, pair: Pair, max_chars: int) -> Decision:
    """Choose, for the pair and each of its pieces, the first file of the topic that has room once the replaced pairs
    have left.
    """
    leaving = {archive.instant(each) for each in (pair.id, *decision.remove_ids, *decision.replaces)}
    freed: dict[str, int] = {}  # characters of these pairs in each file
    for held in (fold.active[key] for key in leaving if key in fold.active):
        for name, messages in fold.placement.messages_by_topic(held.key).items():
            freed[name] = freed.get(name, 0) + _rendered_length(piece_of(held, messages))

    def file_for(topic: str, piece: Pair | None) -> str:
        names = topic_files(fold.topics, topic)
        for name in names:
            remaining = len(fold.topics[name].text) - freed.get(name, 0)
            if remaining <= 0 or remaining + _rendered_length(piece) <= max_chars:
                return name
        if not names:
            return _safe(topic)
        following = next_file(names[0], fold.topics)
        # If the name cannot grow any more, a long file is better than a decision that cannot be read.
        return following if is_topic_name(following) else names[-1]

    if not decision.pieces:
        return replace(decision, topic=file_for(topic, pair))
    pieces = tuple(
        replace(piece, topic=file_for(piece.topic, piece_of(pair, piece.messages))) for piece in decision.pieces
    )
    return replace(decision, topic=pieces[0].topic, pieces=pieces)


def _rendered_length(pair: Pair | None) -> int:
    return len(topic_block(pair).text) if pair is not None else 0


def _safe(name: str) -> str:
    return name if is_topic_name(name) else topic_name(name)


def remove_words(topic: str, words: Collection[str], taken: Collection[str]) -> str:
    """Return a topic name without these words (as `name_words` gives them) that is not `taken`; the same name if it has
    none of the words.
    """
    parts = topic.split("-")
    kept = [word for word in parts if fold_name_word(word) not in words]
    return topic if len(kept) == len(parts) else next_file("-".join(kept) or "topic", taken)


def has_inner_word(topic: str, words: Collection[str], least_chars: int) -> bool:
    """Return True if a word of the topic's name contains one of `words` that has `least_chars` letters or more."""
    for word in map(fold_name_word, topic.split("-")):
        parts = (word[at : at + size] for size in range(least_chars, len(word)) for at in range(len(word) - size + 1))
        if any(part in words for part in parts):
            return True
    return False
