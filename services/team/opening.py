"""Opening team knowledge: what lies on the disk is read, checked, and mended (SPEC 6, "Decisions", steps 1 and 4).

Blocking; for the holder of the data folder's lock.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from services.storage import files
from services.team import decisions as grammar
from services.team import qa_ids
from services.team import state as team_state
from services.team.archive import Pair
from services.team.archive_reader import ArchiveReader
from services.team.decisions import Decision, DecisionLog
from services.team.healing import Earlier, mend
from services.team.index import TeamIndex
from services.team.library import TeamLibrary
from services.team.placement import Placement
from services.team.places import LibraryUnusable, TeamPlaces
from services.team.state import TeamState
from services.team.topics import Topic, fold

log = logging.getLogger(__name__)


def open_library(
    places: TeamPlaces,
    *,
    configured_cursor: str = "",
    max_topic_chars: int = 40_000,
    describer_key: str = "",
    time: Callable[[], float],
) -> TeamLibrary:
    """Team knowledge as it lies in `places`, mended.

    `configured_cursor` is `kb.qa_raw_last_processed_id`; `describer_key` says from which prompt and model descriptions
    are to come; `time` gives seconds since 1970, from any thread (`clock.utc_clock`).

    Raises:
        LibraryUnusable: a cursor or a file cannot be what it should be; nothing was changed.
        OSError: something cannot be read or written.
    """
    decisions = DecisionLog(places.decisions)
    state = team_state.read(places.state)
    start = team_state.begins_after(places, state, configured_cursor, time())
    begun = places.decisions.exists()
    found = team_state.found_at_first(state, begun=begun)
    _clear_leftovers(places)
    if begun:
        decisions.mend()
    elif found != (state.start_qa_id or ""):
        # From now on the state file tells the newest decided id, and this besides.
        state = TeamState(state.last_processed_qa_id, found)
        files.replace(places.state, team_state.render(state))
    reader = ArchiveReader(places.raw)
    content = _content(places.decisions)
    filed, since = _read(content, str(places.decisions), state.filed_bytes or 0)
    placement = Placement()
    for decision in (*filed, *since):
        placement.apply(decision)
    topics = _topics(reader, placement, (*filed, *since), start, places)
    mend(places.topics, topics, None if state.arrived(content) else Earlier(reader, filed, since))
    index = TeamIndex(places.index, places.cache, describer_key)
    index.load(topics)
    library = TeamLibrary(
        places,
        reader=reader,
        decisions=decisions,
        placement=placement,
        start=start,
        state=state,
        topics=topics,
        index=index,
        max_topic_chars=max_topic_chars,
        time=time,
    )
    library.settle()
    return library


def adopt(rebuilt: TeamPlaces, live: TeamPlaces) -> None:
    """Have the decisions and descriptions of `rebuilt` count in `live`; the next `open_library` there does the rest.

    To be cut off at any point: until the decisions are swapped, which is one step, `live` stays what it was.

    Raises:
        LibraryUnusable: the state file of `live` is damaged.
        OSError: something cannot be read or written.
    """
    decisions = _content(rebuilt.decisions)
    announced = replace(team_state.read(live.state), announced=team_state.digest(decisions))
    files.replace(live.state, team_state.render(announced))
    if rebuilt.cache.exists():
        files.replace(live.cache, rebuilt.cache.read_bytes())
    files.replace(live.decisions, decisions)


def pairs_in_force(reader: Iterator[Pair], placement: Placement) -> Iterator[Pair]:
    return (pair for pair in reader if qa_ids.instant(pair.id) in placement.topic_of)


def missing_of(raw: Path, placement: Placement, in_force: Collection[Pair]) -> int:
    """How many of the pairs that are filed under topics are not there.

    Raises:
        LibraryUnusable: all of them (Pitfall 46).
    """
    missing = len(placement.topic_of) - len({qa_ids.instant(pair.id) for pair in in_force})
    if missing and not in_force:
        raise LibraryUnusable(
            f"{raw} holds none of the {missing} captured conversations that are filed under topics; "
            "is the folder mounted, and the right one?"
        )
    return missing


def _topics(
    reader: ArchiveReader,
    placement: Placement,
    decisions: tuple[Decision, ...],
    start: Decimal | None,
    places: TeamPlaces,
) -> dict[str, Topic]:
    def undecided(pair: Pair) -> bool:
        key = qa_ids.instant(pair.id)
        return key not in placement.decided and (start is None or key > start)

    in_force = list(pairs_in_force(reader.survey(undecided), placement))
    missing = missing_of(places.raw, placement, in_force)
    if missing:
        log.warning("%s: %d filed conversations are not there, and left out of their topics", places.raw, missing)
    return dict(fold(in_force, decisions))


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _read(data: bytes, file: str, filed_bytes: int) -> tuple[list[Decision], list[Decision]]:
    """The decisions that topic files are known to contain, and those after them."""
    split = max(filed_bytes, 0)
    if split > len(data) or grammar.sound_length(data[:split]) < split:
        split = 0
    line = data[:split].count(b"\n") + 1
    return grammar.parse(data[:split], file), grammar.parse(data[split:], file, line)


def _clear_leftovers(places: TeamPlaces) -> None:
    for folder in {places.raw, *(path.parent for path in (places.decisions, places.index, places.cache, places.state))}:
        if folder.is_dir():
            files.clear_leftovers(folder)
