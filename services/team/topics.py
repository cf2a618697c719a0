"""Topics: the content of their files, and the fold that computes them from the archive and the decisions."""

from __future__ import annotations

import bisect
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from operator import attrgetter

from services.knowledge import Correction, Exchange, Speaker, TopicBlock, exchanges
from services.team import archive
from services.team.archive import REMOVED, Pair, labelled_turns, remove_texts
from services.team.decisions import Action, Actor, Decision, FiledPiece, Remark


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic: its pairs, or pieces of pairs, in order of `sort_key`, and the corrections of pairs, by key. `_blocks`:
    the text of each pair, if known already.
    """

    name: str
    pairs: tuple[Pair, ...]
    corrections: Mapping[Decimal, tuple[Correction, ...]] = field(default_factory=dict[Decimal, tuple[Correction, ...]])
    _blocks: tuple[str, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        if len(self._blocks) != len(self.pairs):
            blocks = tuple(topic_block(pair, self.corrections.get(pair.key, ())).text for pair in self.pairs)
            object.__setattr__(self, "_blocks", blocks)

    @property
    def text(self) -> str:
        """The content of the topic file."""
        return "".join(self._blocks)

    @property
    def file(self) -> str:
        return f"{self.name}.txt"

    def with_pair(self, pair: Pair) -> Topic:
        at = bisect.bisect(self.pairs, sort_key(pair), key=sort_key)
        block = topic_block(pair).text
        pairs, blocks = self.pairs, self._blocks
        return replace(self, pairs=(*pairs[:at], pair, *pairs[at:]), _blocks=(*blocks[:at], block, *blocks[at:]))

    def without_pair(self, key: Decimal) -> Topic:
        at, pairs, blocks = self._position(key), self.pairs, self._blocks
        corrections = {other: each for other, each in self.corrections.items() if other != key}
        return Topic(self.name, pairs[:at] + pairs[at + 1 :], corrections, blocks[:at] + blocks[at + 1 :])

    def with_corrections(self, pair: Pair, corrections: tuple[Correction, ...]) -> Topic:
        """Return the topic with these corrections of a pair instead of its earlier ones."""
        known = {key: each for key, each in self.corrections.items() if key != pair.key}
        if corrections:
            known[pair.key] = corrections
        at = self._position(pair.key)
        block = topic_block(self.pairs[at], corrections).text
        return Topic(self.name, self.pairs, known, (*self._blocks[:at], block, *self._blocks[at + 1 :]))

    def holds(self, key: Decimal) -> bool:
        return any(pair.key == key for pair in reversed(self.pairs))  # mostly a new one is looked for

    def _position(self, key: Decimal) -> int:
        return next(at for at, pair in enumerate(self.pairs) if pair.key == key)

    def quotes(self, author_id: int) -> bool:
        """Return True if the topic holds a text of this person."""
        return any(pair != remove_texts(pair, author_id) for pair in self.pairs if author_id in pair.author_ids)


def sort_key(pair: Pair) -> tuple[Decimal, Decimal]:
    """Return the sort key of pairs: when the conversation took place, then when it was captured."""
    return archive.timestamp_instant(pair.said_at), pair.key


def has_team_text(pair: Pair) -> bool:
    """Return True if the pair has a text of the team that was not removed."""
    return any(turn.speaker is Speaker.TEAM and turn.text != REMOVED for turn in pair.turns)


def topic_block(pair: Pair, corrections: tuple[Correction, ...] = ()) -> TopicBlock:
    labelled = labelled_turns(pair)
    labels = tuple(label for label, _ in labelled)
    needs_labels = not pair.kind.needs_question or any(label not in set(Speaker) for label in labels)
    turns = tuple(turn for _, turn in labelled)
    return TopicBlock(pair.id, pair.timestamp, pair.said_at, turns, labels if needs_labels else (), corrections)


def exchanges_of(pair: Pair, most_chars: int | None = None) -> Iterator[Exchange]:
    """Yield the exchanges of a pair. `most_chars`: how much of each message is read; None: all."""
    return exchanges(labelled_turns(pair), needs_question=pair.kind.needs_question, most_chars=most_chars)


Move = tuple[Decimal, str | None, str | None]
"""A pair, by its key; the topic that it leaves, and the one that it enters."""


class Placement:
    """Which pair is in which topic, after a sequence of decisions. Pairs are identified by their keys.

    What a decision does with its pair:

        added      goes into its topic; pairs that it replaces or makes obsolete go out
        skipped    goes nowhere; pairs that it makes obsolete go out
        failed     goes nowhere
        removed    goes out; unless a curator removed it, only `restored` brings it back. An operator's removal holds
                   for the conversation: a later capture is removed too, and `replaces` this one as what can be restored
        restored   goes back into its last topic; a model's `remove_ids` no longer take it out. A pair that was in no
                   topic before it was removed becomes undecided again. Pairs that it makes obsolete go out

    A pair about several matters goes in pieces into several topics, and out of all of them at once. An added pair may
    also correct a part of another. The correction counts while both are in topics; if a later pair replaces the
    correcting one, the later one counts as the corrector. Pairs in a topic are called active.

    Attributes:
        topic_of, last_topic: the topic of each active pair, and of each that was ever active; the first of several.
        pieces: the pieces of each pair that was last filed in pieces.
        decided, withdrawn, failed: pairs with a decision; removed, but not by a curator; last decided as `failed`.
        removed: those of `withdrawn` that an operator removed; of captures of one conversation, the last.
        removed_again: by removed pair, the last decision about the later capture that was removed after it.
        newest: the newest id with a decision.
        corrected: for each pair that others correct in part, what no longer holds, by the key of the other pair.
    """

    def __init__(self, decisions: Iterable[Decision], start: Decimal | None = None) -> None:
        """`start`: pairs up to this key need no decision; None: all do."""
        self.topic_of: dict[Decimal, str] = {}
        self.last_topic: dict[Decimal, str] = {}
        self.pieces: dict[Decimal, tuple[FiledPiece, ...]] = {}
        self.decided: set[Decimal] = set()
        self.withdrawn: set[Decimal] = set()
        self.removed: set[Decimal] = set()
        self.removed_again: dict[Decimal, Decision] = {}
        self.failed: set[Decimal] = set()
        self.newest: str | None = None
        self.corrected: dict[Decimal, dict[Decimal, str]] = {}
        self._successor: dict[Decimal, Decimal] = {}  # by pair that is not active, the pair that replaced it
        self._start = start
        self._upheld: set[Decimal] = set()  # restored by an operator
        for decision in decisions:
            self.apply(decision)

    def is_undecided(self, pair: Pair) -> bool:
        return pair.key not in self.decided and (self._start is None or pair.key > self._start)

    def apply(self, decision: Decision) -> list[Move]:
        """Apply the next decision. Returns the moves that it causes."""
        key = decision.key
        self.decided.add(key)
        self.failed.discard(key)
        if self.newest is None or key > archive.instant(self.newest):
            self.newest = decision.qa_id
        match decision.action:
            case Action.ADDED:
                if decision.topic is None or key in self.withdrawn:
                    return []
                earlier = set(map(archive.instant, decision.replaces)) - {key}
                leaving = (self._obsolete(decision) | earlier) - {key}
                self._apply_corrections(key, earlier, decision.superseded_parts)
                self._successor |= {each: key for each in leaving if each in self.topic_of}
                return self._move_out(leaving) + self._move_in(key, decision.topic, decision.pieces)
            case Action.SKIPPED:
                return self._move_out(self._obsolete(decision) - {key})
            case Action.FAILED:
                self.failed.add(key)
                return []
            case Action.REMOVED:
                return self._remove(key, decision)
            case Action.RESTORED:
                return self._restore(key, decision)

    def messages_by_topic(self, key: Decimal) -> dict[str, frozenset[int] | None]:
        """Return the topics that a pair is in, and which of its messages are in each; None means all of them."""
        topic = self.topic_of.get(key)
        if topic is None:
            return {}
        if key not in self.pieces:
            return {topic: None}
        by_topic: dict[str, frozenset[int] | None] = {}
        for piece in self.pieces[key]:
            by_topic[piece.topic] = (by_topic.get(piece.topic) or frozenset()) | piece.messages
        return by_topic

    def corrections(self, key: Decimal) -> list[tuple[Decimal, str]]:
        """Return the corrections in force of a pair: for each, the correcting active pair, and what no longer holds."""
        found: list[tuple[Decimal, str]] = []
        for by, what in self.corrected.get(key, {}).items():
            corrector: Decimal | None = by
            while corrector is not None and corrector not in self.topic_of:
                corrector = self._successor.get(corrector)
            if corrector is not None and corrector != key:
                found.append((corrector, what))
        return found

    def rename(self, names: Mapping[str, str]) -> None:
        """Rename topics as if all decisions had used the new names."""
        for topics in (self.topic_of, self.last_topic):
            topics.update((key, names[topic]) for key, topic in list(topics.items()) if topic in names)
        for key, pieces in self.pieces.items():
            self.pieces[key] = tuple(replace(each, topic=names.get(each.topic, each.topic)) for each in pieces)

    def _apply_corrections(self, key: Decimal, earlier: Iterable[Decimal], parts: Iterable[Remark]) -> None:
        """Note what the pair corrects, with the corrections by `earlier` captures, which it contains."""
        for known in self.corrected.values():
            known.pop(key, None)
        for each in earlier:
            self.corrected.setdefault(key, {}).update(self.corrected.get(each, {}))
        for part in parts:
            known = self.corrected.setdefault(archive.instant(part.id), {})
            known[key] = f"{known[key]}; {part.what}" if key in known else part.what

    def _remove(self, key: Decimal, decision: Decision) -> list[Move]:
        if not decision.by.is_curator:
            self.withdrawn.add(key)
            self._upheld.discard(key)
        if decision.by is Actor.OPERATOR:
            self._follow_removals(decision)
            self.removed.add(key)
        if decision.topic is not None:  # a rebuilt library has no other trace of it
            self.last_topic.setdefault(key, decision.topic)
        return self._move_out([key])

    def _follow_removals(self, decision: Decision) -> None:
        """Note that the decision stands for the removals of earlier captures, which it names."""
        for earlier in map(archive.instant, decision.replaces):
            self.removed.discard(earlier)
            self.removed_again[earlier] = decision

    def _restore(self, key: Decimal, decision: Decision) -> list[Move]:
        self.withdrawn.discard(key)
        self.removed.discard(key)
        self._follow_removals(decision)
        if decision.by is Actor.OPERATOR:
            self._upheld.add(key)
        topic = decision.topic or self.last_topic.get(key)
        if topic is None:
            self.decided.discard(key)
            return []
        if self.topic_of.get(key) == topic:
            return []
        leaving = self._obsolete(decision) - {key}
        moved_in = self._move_in(key, topic, decision.pieces if decision.topic else self.pieces.get(key, ()))
        return self._move_out(leaving) + moved_in

    def _obsolete(self, decision: Decision) -> set[Decimal]:
        return set(map(archive.instant, decision.remove_ids)) - self._upheld

    def _move_in(self, key: Decimal, topic: str, pieces: tuple[FiledPiece, ...]) -> list[Move]:
        before = self.messages_by_topic(key)
        self.topic_of[key] = self.last_topic[key] = topic
        self._successor.pop(key, None)
        if pieces:
            self.pieces[key] = pieces
        else:
            self.pieces.pop(key, None)
        after = self.messages_by_topic(key)
        moves: list[Move] = [(key, name, None) for name in before if name not in after or before[name] != after[name]]
        return moves + [(key, None, name) for name in after if name not in before or before[name] != after[name]]

    def _move_out(self, keys: Iterable[Decimal]) -> list[Move]:
        moves: list[Move] = [(key, name, None) for key in sorted(keys) for name in self.messages_by_topic(key)]
        for key, _, _ in moves:
            self.topic_of.pop(key, None)
        return moves


class RemovedCaptures:
    """Finds the removed captures of a pair's conversation: they have the same id, or an answer of the team in common,
    as an answer may be captured again under another id.
    """

    def __init__(self, pairs: Iterable[Pair]) -> None:
        self._ids: dict[str | int, dict[str, None]] = {}  # by conversation, and by message of the team
        for pair in pairs:
            self.add(pair)

    def add(self, pair: Pair) -> None:
        for each in (pair.conversation_id, *_answer_ids(pair)):
            self._ids.setdefault(each, {})[pair.id] = None

    def others(self, pair: Pair, removed: Container[Decimal]) -> tuple[str, ...]:
        """Return the ids of those that are still `removed`, without that of the pair."""
        found = {each: None for key in (pair.conversation_id, *_answer_ids(pair)) for each in self._ids.get(key, ())}
        return tuple(each for each in found if archive.instant(each) in removed and archive.instant(each) != pair.key)


def _answer_ids(pair: Pair) -> list[int]:
    turns = zip(pair.message_ids, pair.turns, strict=True)
    return [message_id for message_id, turn in turns if turn.speaker is Speaker.TEAM]


def fold(pairs: Iterable[Pair], placement: Placement) -> dict[str, Topic]:
    """Compute the topics from archive and decisions, by name, without pairs that have lost all texts of the team."""
    held: dict[str, dict[Decimal, Pair]] = {}
    for pair in pairs:
        for name, messages in placement.messages_by_topic(pair.key).items():
            piece = archive.piece_of(pair, messages)
            if piece is not None and has_team_text(piece):
                held.setdefault(name, {}).setdefault(pair.key, piece)
    topics = {name: Topic(name, tuple(sorted(held[name].values(), key=sort_key))) for name in sorted(held)}
    active = {key: pair for pairs_of_topic in held.values() for key, pair in pairs_of_topic.items()}
    _apply_corrections(topics, placement, active)
    return topics


def corrections_of(pair: Pair, placement: Placement, active: Mapping[Decimal, Pair]) -> list[tuple[Pair, str]]:
    """Return the later `active` pairs that correct this one in part, and what each corrects; oldest first."""
    known = [(active[by], what) for by, what in placement.corrections(pair.key) if by in active]
    return sorted(
        (each for each in known if sort_key(each[0]) > sort_key(pair)), key=lambda each: (sort_key(each[0]), each[1])
    )


def _apply_corrections(topics: dict[str, Topic], placement: Placement, active: Mapping[Decimal, Pair]) -> set[str]:
    """Give each pair in `topics` its corrections. Returns the names of the topics that change."""
    changed: set[str] = set()
    for key in placement.corrected:
        if (pair := active.get(key)) is None:
            continue
        corrections = tuple(Correction(by.said_at, what) for by, what in corrections_of(pair, placement, active))
        for name in placement.messages_by_topic(key):
            topic = topics.get(name)
            if topic is not None and topic.corrections.get(key, ()) != corrections and topic.holds(key):
                topics[name] = topic.with_corrections(pair, corrections)
                changed.add(name)
    return changed


class TopicFold:
    """Keeps the topics up to date, one decision after another. `topics` (by name) is replaced, never changed in place;
    `active` holds the pairs that are in topics, each as a whole.
    """

    def __init__(self, placement: Placement, pairs: Iterable[Pair]) -> None:
        """`pairs`: those of the archive that are in topics or `placement.removed`."""
        self.placement = placement
        known: dict[Decimal, Pair] = {}
        for pair in pairs:
            known.setdefault(pair.key, pair)
        self._removed = RemovedCaptures(each for key, each in known.items() if key in placement.removed)
        self.topics = fold(known.values(), placement)
        self.active: dict[Decimal, Pair] = {}
        self._captures: dict[str, dict[Decimal, Pair]] = {}
        for key in dict.fromkeys(pair.key for topic in self.topics.values() for pair in topic.pairs):
            self._enter(known[key])

    def captures(self, pair: Pair) -> Iterable[Pair]:
        """Return the active captures of the same conversation."""
        return self._captures.get(pair.conversation_id, {}).values()

    def has_conversation(self, conversation_id: str) -> bool:
        """Return True if a capture of the conversation is active."""
        return bool(self._captures.get(conversation_id))

    def later_capture(self, pair: Pair) -> Pair | None:
        """Return the latest active capture of the same conversation, if it is later than `pair`."""
        latest = max(self.captures(pair), key=attrgetter("key"), default=pair)
        return latest if latest.key > pair.key else None

    def removed_with(self, pair: Pair) -> tuple[str, ...]:
        """Return the ids of the other removed captures of the pair's conversation, as `RemovedCaptures` finds them."""
        return self._removed.others(pair, self.placement.removed)

    def apply(self, decision: Decision, pair: Pair | None) -> set[str]:
        """Apply a decision about `pair`, if that is known. Returns the names of the topics that changed."""
        changed: set[str] = set()
        topics = dict(self.topics)
        moves = self.placement.apply(decision)
        if pair is not None and pair.key in self.placement.removed:
            self._removed.add(pair)
        for key, source, target in moves:
            if source in topics and topics[source].holds(key):
                topics[source] = topics[source].without_pair(key)
                if not topics[source].pairs:
                    del topics[source]
                changed.add(source)
            if target is None or pair is None:
                continue
            piece = archive.piece_of(pair, self.placement.messages_by_topic(key)[target])
            if piece is not None and has_team_text(piece):
                topics[target] = topics.get(target, Topic(target, ())).with_pair(piece)
                changed.add(target)
        for key in dict.fromkeys(key for key, _, _ in moves):
            known = pair if pair is not None and pair.key == key else self.active.get(key)
            if key in self.active:
                self._leave(self.active[key])
            if known is not None and any(
                topics[name].holds(key) for name in self.placement.messages_by_topic(key) if name in topics
            ):
                self._enter(known)
        changed |= _apply_corrections(topics, self.placement, self.active)
        self.topics = topics
        return changed

    def forget(self, author_id: int) -> list[str]:
        """Remove a person's texts from the topics. Returns the names of the topics that changed."""
        topics = dict(self.topics)
        changed = [name for name, topic in topics.items() if topic.quotes(author_id)]
        for name in changed:
            before = topics.pop(name).pairs
            kept = [pair for each in before if has_team_text(pair := archive.remove_texts(each, author_id))]
            if kept:
                topics[name] = Topic(name, tuple(kept))
        for pair in list(self.active.values()):
            if author_id in pair.author_ids:
                self._leave(pair)
                names = topics.keys() & self.placement.messages_by_topic(pair.key)
                if any(topics[name].holds(pair.key) for name in names):
                    self._enter(archive.remove_texts(pair, author_id))
        corrected = _apply_corrections(topics, self.placement, self.active)
        self.topics = topics
        return sorted({*changed, *corrected})

    def rename(self, names: Mapping[str, str]) -> None:
        """Rename topics. No topic may have one of the new names."""
        self.placement.rename(names)
        renamed = (replace(topic, name=names.get(name, name)) for name, topic in self.topics.items())
        self.topics = {topic.name: topic for topic in sorted(renamed, key=attrgetter("name"))}

    def _enter(self, pair: Pair) -> None:
        self.active[pair.key] = pair
        self._captures.setdefault(pair.conversation_id, {})[pair.key] = pair

    def _leave(self, pair: Pair) -> None:
        del self.active[pair.key], self._captures[pair.conversation_id][pair.key]
        if not self._captures[pair.conversation_id]:
            del self._captures[pair.conversation_id]
