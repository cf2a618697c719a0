"""The library for operators (`--kb`): what it holds, and corrections by hand (SPEC 6). Blocking."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from services.team import qa_ids, state
from services.team.archive import Pair
from services.team.archive_files import ArchiveReader
from services.team.decisions import Action, By, Decision, DecisionLog
from services.team.fold import Placement, fold
from services.team.index import TeamIndex
from services.team.library import TeamLibrary
from services.team.opening import count_missing
from services.team.state import TeamPlaces
from services.team.topics import Topic


@dataclass(frozen=True, slots=True)
class Overview:
    """What a team library holds.

    Attributes:
        topics, descriptions: by name.
        removed: the ids of pairs that an operator removed, each with the topic it was in.
        captured, undecided, failed: pairs in the archive, still to be filed, and not fileable.
    """

    topics: Mapping[str, Topic]
    descriptions: Mapping[str, str]
    removed: tuple[tuple[str, str | None], ...]
    captured: int
    undecided: int
    failed: int


def overview(places: TeamPlaces, configured_cursor: str, now: float) -> Overview:
    """Read the library, also while another process writes it. `now`: seconds since 1970. Raises as `open_library`."""
    start = state.begins_after(places, state.read(places.state), configured_cursor, now)
    placement = Placement(DecisionLog(places.decisions).read(), start)
    active: list[Pair] = []
    removed: list[tuple[str, str | None]] = []
    captured = undecided = 0
    for pair in ArchiveReader(places.raw).survey(lambda _pair: False):
        captured += 1
        undecided += placement.is_undecided(pair)
        if pair.key in placement.topic_of:
            active.append(pair)
        elif pair.key in placement.withdrawn:
            removed.append((pair.id, placement.last_topic.get(pair.key)))
    count_missing(places.raw, placement, active)
    topics = fold(active, placement)
    index = TeamIndex(places.index, places.cache, "")
    index.load(topics)
    descriptions = {entry.id.removeprefix("team:").removesuffix(".txt"): entry.description for entry in index.entries}
    return Overview(topics, descriptions, tuple(removed), captured, undecided, len(placement.failed))


class CorrectionRefused(Exception):
    """There is nothing to correct: one readable line that says why, and what to do instead."""


def remove(library: TeamLibrary, pair_id: str, at: str) -> str:
    """Take a pair out of its topic for good. Gives a line about it. Raises CorrectionRefused, and as `decide`."""
    pair = _pair(library, pair_id)
    placement = library.fold.placement
    if pair.key in placement.withdrawn:
        raise CorrectionRefused(f"{pair.id} was removed already; --kb restore {pair.id} takes that back")
    topic = placement.topic_of.get(pair.key)
    library.decide(Decision(pair.id, at, Action.REMOVED, By.OPERATOR, topic))
    if topic is None:
        return f"{pair.id} was in no topic, and stays out of all."
    left = library.topics.get(topic)
    rest = "held nothing else and is gone" if left is None else f"holds {len(left.pairs)} more"
    return f"{pair.id} is removed from {topic}, which {rest}."


def restore(library: TeamLibrary, pair_id: str, at: str) -> str:
    """Put a pair back into its last topic. Gives a line about it. Raises as `remove`."""
    pair = _pair(library, pair_id)
    placement = library.fold.placement
    last_topic = placement.last_topic.get(pair.key)
    if (topic := placement.topic_of.get(pair.key)) is not None:
        raise CorrectionRefused(f"{pair.id} is in {topic} already")
    if pair.key not in placement.withdrawn and last_topic is None:
        raise CorrectionRefused(f"{pair.id} is in no topic to go back to; --regen decides about all of them again")
    if (later := library.fold.later_capture(pair)) is not None:
        raise CorrectionRefused(
            f"{later.id}, a later capture of the same conversation, replaces {pair.id}; "
            f"remove that first: --kb remove {later.id}"
        )
    library.decide(Decision(pair.id, at, Action.RESTORED, By.OPERATOR, last_topic))
    topic = placement.topic_of.get(pair.key)
    return f"{pair.id} is in {topic} again." if topic is not None else f"{pair.id} will be filed at the next start."


def _pair(library: TeamLibrary, pair_id: str) -> Pair:
    try:
        pair = library.pair(pair_id)
    except qa_ids.BadId as error:
        raise CorrectionRefused(str(error)) from None
    if pair is None:
        raise CorrectionRefused(f"{library.places.raw} holds no conversation {pair_id}; --kb show TOPIC shows the ids")
    return pair
