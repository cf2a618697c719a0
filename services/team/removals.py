"""The team library for operators (`--kb`): overview, and removing and restoring pairs. Blocking."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from model.source_ids import topic_in
from services.team import archive
from services.team.archive import Pair
from services.team.archive_files import ArchiveReader
from services.team.decisions import Action, Actor, Decision, DecisionLog
from services.team.index import TeamIndex
from services.team.library import TeamLibrary
from services.team.opening import count_missing
from services.team.state import TeamPaths, read_state, start_cursor
from services.team.topics import Placement, Topic, corrections_of, fold


class OpenConflict(NamedTuple):
    """Two pairs in force that contradict each other according to a model; the newer one first."""

    pair: Pair
    other: Pair
    what: str


@dataclass(frozen=True, slots=True)
class Overview:
    """The content of a team library.

    Attributes:
        topics, descriptions: by name.
        removed: the ids of pairs that an operator removed, the last capture of each conversation, each with the topic
            it was in.
        replaced: by id of a pair in force, the ids of the pairs that it replaced.
        corrected: by id of a pair in force, the pairs that correct it in part and what they correct, oldest first.
        conflicts: the conflicts between two pairs in force.
        captured, undecided, failed: the number of all pairs, of pairs without a decision, and of failed ones.
    """

    topics: Mapping[str, Topic]
    descriptions: Mapping[str, str]
    removed: tuple[tuple[str, str | None], ...]
    replaced: Mapping[str, tuple[str, ...]]
    corrected: Mapping[str, tuple[tuple[Pair, str], ...]]
    conflicts: tuple[OpenConflict, ...]
    captured: int
    undecided: int
    failed: int


def overview(paths: TeamPaths, configured_cursor: str, now: float) -> Overview:
    """Read the library; another process may write it meanwhile. `now`: seconds since 1970. Raises as `open_library`."""
    start = start_cursor(paths, read_state(paths.state), configured_cursor, now)
    decisions = DecisionLog(paths.decisions).read()
    placement = Placement(decisions, start)
    active: list[Pair] = []
    removed: list[tuple[str, str | None]] = []
    captured = undecided = 0
    for pair in ArchiveReader(paths.raw).survey(lambda _pair: False):
        captured += 1
        undecided += placement.is_undecided(pair)
        if pair.key in placement.topic_of:
            active.append(pair)
        elif pair.key in placement.removed:
            removed.append((pair.id, placement.last_topic.get(pair.key)))
    count_missing(paths.raw, placement, active)  # raises if nothing of what was filed is there
    topics = fold(active, placement)
    index = TeamIndex(paths.index, paths.cache, "")
    index.load(topics)
    descriptions = {topic_in(entry.id): entry.description for entry in index.entries}
    in_force = {pair.key: pair for topic in topics.values() for pair in topic.pairs}
    # The last decision that added a pair counts.
    added = {each.key: each for each in decisions if each.action is Action.ADDED and each.key in in_force}
    return Overview(
        topics,
        descriptions,
        tuple(removed),
        {in_force[key].id: _replaced_by(each, in_force) for key, each in added.items()},
        {pair.id: tuple(corrections_of(pair, placement, in_force)) for pair in in_force.values()},
        tuple(
            OpenConflict(in_force[key], in_force[other], remark.what)
            for key, each in added.items()
            for remark in each.conflicts
            if (other := archive.instant(remark.id)) in in_force
        ),
        captured,
        undecided,
        len(placement.failed),
    )


def _replaced_by(decision: Decision, in_force: Mapping[Decimal, Pair]) -> tuple[str, ...]:
    gone = dict.fromkeys((*decision.replaces, *decision.remove_ids))
    return tuple(each for each in gone if archive.instant(each) not in in_force)


class RemovalRefused(Exception):
    """Nothing can be corrected: one readable line that says why, and what to do instead."""


Note = Callable[[str], object]
"""Is told the id of a pair that is about to be corrected."""


def remove(library: TeamLibrary, pair_id: str, at: str, note: Note | None = None) -> str:
    """Take a pair out of its topic for good, and keep later captures of its conversation out; what it had replaced is
    back. Returns a line about it. Raises RemovalRefused, and as `decide` and `note`.
    """
    pair = find_pair(library, pair_id)
    placement = library.fold.placement
    if pair.key in placement.withdrawn:
        raise RemovalRefused(f"{pair.id} was removed already; --kb restore {pair.id} takes that back")
    topic, topics = placement.topic_of.get(pair.key), placement.messages_by_topic(pair.key)
    earlier = _removed_earlier(library, pair)
    if note is not None:
        note(pair.id)
    before = set(library.fold.active)
    library.decide(Decision(pair.id, at, Action.REMOVED, Actor.OPERATOR, topic, replaces=earlier), pair)
    if topic is None:
        return f"{pair.id} was in no topic, and stays out of all."
    back = [each.id for key, each in sorted(library.fold.active.items()) if key not in before]
    returned = f" Back again, as it had replaced them: {', '.join(back)}." if back else ""
    if len(topics) > 1:
        return f"{pair.id} is removed from {' and '.join(topics)}.{returned}"
    found = library.topics.get(topic)
    rest = "held nothing else and is gone" if found is None else f"holds {len(found.pairs)} more"
    return f"{pair.id} is removed from {topic}, which {rest}.{returned}"


def restore(library: TeamLibrary, pair_id: str, at: str, note: Note | None = None) -> str:
    """Put a pair back into its last topic. Returns a line about it. Raises as `remove`."""
    pair = find_pair(library, pair_id)
    placement = library.fold.placement
    last_topic = placement.last_topic.get(pair.key)
    if (topic := placement.topic_of.get(pair.key)) is not None:
        raise RemovalRefused(f"{pair.id} is in {topic} already")
    if pair.key not in placement.withdrawn and last_topic is None:
        raise RemovalRefused(f"{pair.id} is in no topic to go back to; --regen decides about all of them again")
    if (later := library.fold.later_capture(pair)) is not None:
        raise RemovalRefused(
            f"{later.id}, a later capture of the same conversation, replaces {pair.id}; "
            f"remove that first: --kb remove {later.id}"
        )
    if (again := placement.removed_again.get(pair.key)) is not None:
        raise RemovalRefused(
            f"{again.qa_id} is a later capture of the same conversation; --kb restore {again.qa_id} takes both back"
        )
    tied = next((each.replaces for each in placement.removed_again.values() if each.key == pair.key), ())
    earlier = tuple(dict.fromkeys((*tied, *_removed_earlier(library, pair))))
    if note is not None:
        note(pair.id)
    library.decide(Decision(pair.id, at, Action.RESTORED, Actor.OPERATOR, last_topic, replaces=earlier), pair)
    topic = placement.topic_of.get(pair.key)
    return f"{pair.id} is in {topic} again." if topic is not None else f"{pair.id} will be filed at the next start."


def _removed_earlier(library: TeamLibrary, pair: Pair) -> tuple[str, ...]:
    return tuple(each for each in library.fold.removed_with(pair) if archive.instant(each) < pair.key)


def find_pair(library: TeamLibrary, pair_id: str) -> Pair:
    """Return a pair of the archive. Raises RemovalRefused: there is none; OSError."""
    try:
        pair = library.pair(pair_id)
    except archive.BadId as error:
        raise RemovalRefused(str(error)) from None
    if pair is None:
        raise RemovalRefused(f"{library.paths.raw} holds no conversation {pair_id}; --kb show TOPIC shows the ids")
    return pair
