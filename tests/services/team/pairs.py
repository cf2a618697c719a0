"""A team library in a folder, and captures to fill it with."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from services.storage import files
from services.storage.data_folder import DataFolder
from services.team import archive, archive_files, decisions
from services.team.archive import Pair
from services.team.decisions import Action, Actor, Decision, FiledPiece, Remark
from services.team.library import TeamLibrary
from services.team.opening import open_library
from services.team.state import TeamPaths
from services.team.topics import Placement, fold
from tests.services.team.test_archive import a_pair

START = datetime(2026, 2, 1, tzinfo=UTC)
NOW = START.timestamp() + 30 * 86_400


def places_in(folder: Path) -> TeamPaths:
    data = DataFolder(folder)
    return TeamPaths(
        raw=data.team_raw,
        decisions=data.decisions,
        topics=data.team_topics,
        index=data.team_index,
        cache=data.team_index_cache,
        state=data.team_state,
    )


def opened(folder: Path, *, cursor: str = "", chars: int = 40_000, key: str = "key") -> TeamLibrary:
    """As after a start of the program."""
    places = places_in(folder)
    return open_library(places, configured_cursor=cursor, max_topic_chars=chars, describer_key=key, time=lambda: NOW)


def captured(number: int, *texts: str, conversation: int | None = None) -> Pair:
    """Captured and said `number` hours after the start."""
    timestamp = f"{START + timedelta(hours=number):%Y-%m-%dT%H:%M:%S}.000000Z"
    pair = a_pair(*(texts or (f"Question {number}?", f"Answer {number}.")))
    talk = 1000 + number if conversation is None else conversation
    return replace(
        pair,
        id=archive.qa_id(timestamp),
        timestamp=timestamp,
        said_at=timestamp,
        conversation_id=f"thread_{talk}",
        message_ids=tuple(1000 * talk + each for each in pair.message_ids),
    )


def store(folder: Path, *pairs: Pair) -> None:
    """As tier 1 does."""
    for pair in pairs:
        path = places_in(folder).raw / archive.week_file(pair.key)
        files.append(path, archive.render(pair).encode())


def stored(folder: Path) -> list[Pair]:
    return archive_files.pairs_in(places_in(folder).raw, 1000)


def decided(
    pair: Pair | str,
    action: Action,
    topic: str | None = None,
    by: Actor = Actor.LLM,
    *,
    remove_ids: tuple[str, ...] = (),
    replaces: tuple[str, ...] = (),
) -> Decision:
    pair_id = pair if isinstance(pair, str) else pair.id
    return Decision(pair_id, "2026-03-01T00:00:00.000Z", action, by, topic, remove_ids, replaces)


def added(pair: Pair, topic: str, *, remove_ids: tuple[str, ...] = ()) -> Decision:
    return decided(pair, Action.ADDED, topic, remove_ids=remove_ids)


def corrects(pair: Pair, topic: str, *others: Pair, what: str = "Not so.") -> Decision:
    """The pair is added, and supersedes a part of others."""
    parts = tuple(Remark(each.id, what) for each in others)
    return replace(added(pair, topic), superseded_parts=parts)


def in_pieces(pair: Pair, *pieces: tuple[str, tuple[int, ...]]) -> Decision:
    """Topics, each with the messages that go into it."""
    filed = tuple(FiledPiece(tuple(map(str, message_ids)), topic) for topic, message_ids in pieces)
    return replace(added(pair, pieces[0][0]), pieces=filed)


def noted(folder: Path) -> list[Decision]:
    return decisions.DecisionLog(places_in(folder).decisions).read()


def topic_files(folder: Path) -> dict[str, str]:
    return {path.name: path.read_bytes().decode() for path in sorted(places_in(folder).topics.glob("*"))}


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def is_whole(folder: Path, library: TeamLibrary) -> bool:
    """Whether memory and files are what the pure fold says, and no pair is anywhere twice."""
    expected = fold(stored(folder), Placement(noted(folder)))
    assert dict(library.topics) == dict(expected)
    assert topic_files(folder) == {topic.file: topic.text for topic in expected.values()}
    pieces = Placement(noted(folder)).pieces
    ids = [pair.id for topic in expected.values() for pair in topic.pairs if pair.key not in pieces]
    assert len(ids) == len(set(ids))
    assert [entry.id for entry in library.index()] == [f"team:{name}.txt" for name in sorted(expected)]
    return True
