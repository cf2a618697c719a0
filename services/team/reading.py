"""Team knowledge read as it lies on the disk, while another process may be writing it. Writes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from services.team import qa_ids, state
from services.team.archive import Pair
from services.team.archive_reader import ArchiveReader
from services.team.decisions import DecisionLog
from services.team.index import TeamIndex
from services.team.opening import missing_of
from services.team.placement import Placement
from services.team.places import TeamPlaces
from services.team.topics import Topic, fold


@dataclass(frozen=True, slots=True)
class Overview:
    """What a team library holds."""

    topics: Mapping[str, Topic]
    descriptions: Mapping[str, str]
    """By topic."""
    removed: tuple[tuple[str, str | None], ...]
    """The conversations that an operator took out, each with the topic it was in."""
    captured: int
    """Conversations in the archive, each capture counted."""
    undecided: int
    """Those behind the start cursor that wait to be filed."""
    failed: int


def overview(places: TeamPlaces, configured_cursor: str, now: float) -> Overview:
    """Read archive and decisions through. `now`: seconds since 1970.

    Raises:
        LibraryUnusable: `open_library` would not open it.
        OSError: something cannot be read.
    """
    start = state.begins_after(places, state.read(places.state), configured_cursor, now)
    decisions = DecisionLog(places.decisions).read()
    placement = Placement()
    for decision in decisions:
        placement.apply(decision)
    in_force: list[Pair] = []
    removed: list[tuple[str, str | None]] = []
    captured = undecided = 0
    for pair in ArchiveReader(places.raw).survey(lambda _pair: False):
        key = qa_ids.instant(pair.id)
        captured += 1
        undecided += key not in placement.decided and (start is None or key > start)
        if key in placement.topic_of:
            in_force.append(pair)
        elif key in placement.withdrawn:
            removed.append((pair.id, placement.last_topic.get(key)))
    missing_of(places.raw, placement, in_force)
    topics = fold(in_force, decisions)
    index = TeamIndex(places.index, places.cache, "")
    index.load(topics)
    descriptions = {entry.id.removeprefix("team:").removesuffix(".txt"): entry.description for entry in index.entries}
    return Overview(topics, descriptions, tuple(removed), captured, undecided, len(placement.failed))
