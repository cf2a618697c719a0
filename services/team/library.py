"""Tier 2 of team knowledge, and its one writer: what was decided, and the topics that follow (SPEC 6).

    decide   decisions.jsonl  →  topic files  →  cache and index  →  state.json

The first counts; whatever a crash or a full disk keeps from being written after it is written by the next call, or at
the next start. All methods block, and may be called from any thread, one at a time or not.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType

from services.knowledge import IndexEntry
from services.storage import files
from services.team import archive, qa_ids
from services.team import state as team_state
from services.team.active_pairs import ActivePairs
from services.team.archive import Pair
from services.team.archive_reader import ArchiveReader, Written
from services.team.decisions import Action, Decision, DecisionLog
from services.team.filing import TeamFiling
from services.team.index import TeamIndex
from services.team.placement import Placement
from services.team.places import LibraryUnwritable, TeamPlaces
from services.team.state import TeamState
from services.team.topics import Topic, teaches

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Standing:
    """What has become of a pair."""

    topic: str | None
    """Where it is in force."""
    last_topic: str | None
    """Where it was, or is."""
    withdrawn: bool
    """By an operator."""
    later: Pair | None
    """The latest capture of the same conversation that is in force, if it is later."""


class UnknownPair(LookupError):
    """No block of the archive has this id."""


class TeamLibrary:
    """Made by `services.team.opening.open_library`."""

    def __init__(
        self,
        places: TeamPlaces,
        *,
        reader: ArchiveReader,
        decisions: DecisionLog,
        placement: Placement,
        start: Decimal | None,
        state: TeamState,
        topics: Mapping[str, Topic],
        index: TeamIndex,
        max_topic_chars: int,
        time: Callable[[], float],
    ) -> None:
        self.places = places
        self._reader, self._log, self._placement = reader, decisions, placement
        self._start, self._state = start, state
        self._index = index
        self._max_topic_chars = max_topic_chars
        self._time = time
        self._topics = dict(topics)
        self._in_force = ActivePairs(pair for topic in topics.values() for pair in topic.pairs)
        self._forgotten: set[int] = set()
        """Who was forgotten since the start: what callers hold of them is no longer to be used."""
        self._unwritten: set[str] = set()
        """Topics whose files are not as they should be."""
        self._stated = False
        """Whether the state file tells of all decisions."""
        self._lock = threading.RLock()

    @property
    def topics(self) -> Mapping[str, Topic]:
        """By name, as they are now; a later change makes another mapping."""
        return MappingProxyType(self._topics)

    def index(self) -> Sequence[IndexEntry]:
        """What is told of each topic: its description; until there is one, its name and its first question."""
        return self._index.entries

    def undecided(self) -> Pair | None:
        """The oldest pair without a decision, behind the start cursor.

        Raises:
            LibraryUnwritable: an earlier decision has not reached all its files, and cannot now.
            OSError: the archive cannot be read.
        """
        with self._lock:
            self.settle()
            return self._reader.oldest(self._is_undecided)

    def arrived(self, block: Written) -> None:
        """Take note of what was just appended to the archive, which need not be read then. Never waits: while the
        library is at work, it is left to be read.
        """
        if self._lock.acquire(blocking=False):
            try:
                self._reader.arrived(block)
            finally:
                self._lock.release()

    def at_hand(self) -> Pair | None:
        """`undecided`, where that is known without a look at the disk. Never waits."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            return self._reader.at_hand(self._is_undecided) if self._settled else None
        finally:
            self._lock.release()

    def held(self, topic: str) -> Sequence[Pair]:
        """What a pair classified under this name would join: the topic and its continuations. Empty for a new one."""
        filing = self._filing()
        return [pair for name in filing.files(topic) for pair in filing.topics[name].pairs]

    def pair(self, pair_id: str) -> Pair | None:
        """A pair of the archive, wherever it stands; None where there is none.

        Raises:
            BadId: it is no id.
        """
        key = qa_ids.instant(pair_id)
        with self._lock:
            found = self._in_force.get(key)
            return found if found is not None else self._reader.find([key]).get(key)

    def standing(self, pair: Pair) -> Standing:
        """What has become of a pair of the archive."""
        key = qa_ids.instant(pair.id)
        with self._lock:
            placement = self._placement
            captures = self._in_force.captures(pair.conversation_id)
            latest = max(captures, default=key)
            return Standing(
                placement.topic_of.get(key),
                placement.last_topic.get(key),
                key in placement.withdrawn,
                captures[latest] if latest > key else None,
            )

    def decide(self, decision: Decision, pair: Pair | None = None) -> frozenset[str]:
        """Note a decision and do what it says. Gives the names of the topics that have changed, come or gone.

        A pair that is added or restored goes into the first file of its topic that has room; the decision is noted
        with the name of that file. When added, it replaces all earlier captures of its conversation that are in force,
        whether or not the decision names them, and is skipped when a later one is. `pair` saves looking for it.

        Raises:
            UnknownPair: it is to go into a topic, and is not in the archive.
            LibraryUnwritable: either the decision was not noted, and nothing has changed; or it was, and not all its
                files could be written. `undecided` tells which, and writes them.
            OSError: the archive cannot be read.
        """
        with self._lock:
            self.settle()
            key = qa_ids.instant(decision.qa_id)
            if pair is not None and not self._forgotten.isdisjoint(pair.author_ids):
                pair = None
            if pair is None and decision.action in {Action.ADDED, Action.RESTORED}:
                pair = self._known(key)
            if decision.action is Action.ADDED:
                if pair is None:
                    raise UnknownPair(f"{decision.qa_id} is not in {self.places.raw}")
                decision = self._filing().added(decision, pair)
            elif decision.action is Action.RESTORED and pair is not None:
                decision = self._filing().restored(decision, pair)
            with _writing(f"The decision about {decision.qa_id} was not noted"):
                self._log.append(decision)
            return self._take(decision, key, pair)

    def undescribed(self) -> Sequence[Topic]:
        """The topics whose description is not of what they hold now, or not from the present prompt and model.

        Raises:
            LibraryUnwritable: descriptions that were found again cannot be written.
        """
        with self._lock:
            found = self._index.undescribed(self._time())
            self.settle()
            return found

    def describe(self, topic: Topic, summary: str, key: str) -> None:
        """Note a description of `topic` as it was given by `undescribed`; `key` says from which prompt and model.

        Raises:
            LibraryUnwritable: it is not on the disk yet.
        """
        with self._lock:
            outdated = any(_tells(topic, author_id) for author_id in self._forgotten)
            if topic.name in self._topics and not outdated:
                self._index.describe(topic, summary, key, self._time())
                self.settle()

    def undescribe(self, author_id: int) -> None:
        """Drop the descriptions of the topics that somebody has a part in: they may tell what that person wrote.

        Raises:
            LibraryUnwritable: they are on the disk still.
        """
        with self._lock:
            self._index.forget(name for name, topic in self._topics.items() if _tells(topic, author_id))
            self._index.follow(list(self._topics), self._topics)
            self.settle()

    def forget(self, author_id: int) -> frozenset[str]:
        """Take what somebody wrote out of the topics, once the archive holds it no more. Gives the names of those
        topics. Their names and first questions stand for them until they are described anew.

        Raises:
            LibraryUnwritable: it is out of what is in memory, and not of all files yet.
        """
        with self._lock:
            self._forgotten.add(author_id)
            self._reader.rewind()  # what waits to be decided about may be theirs
            topics = dict(self._topics)
            changed = [name for name, topic in topics.items() if _tells(topic, author_id)]
            for name in changed:
                pairs = tuple(archive.without(pair, author_id) for pair in topics.pop(name).pairs)
                for pair in pairs:
                    key = qa_ids.instant(pair.id)
                    self._in_force.remove(key)
                    if teaches(pair):
                        self._in_force.add(key, pair)
                if left := tuple(filter(teaches, pairs)):
                    topics[name] = Topic(name, left)
            self._topics = topics
            self._unwritten.update(changed)
            self._index.forget(changed)
            self._index.follow(changed, topics)
            self.settle()
            return frozenset(changed)

    # Decisions

    def _is_undecided(self, pair: Pair) -> bool:
        key = qa_ids.instant(pair.id)
        return key not in self._placement.decided and (self._start is None or key > self._start)

    def _known(self, key: Decimal) -> Pair | None:
        found = self._in_force.get(key)
        if found is None:
            waiting = self._reader.oldest(self._is_undecided)
            found = waiting if waiting is not None and qa_ids.instant(waiting.id) == key else None
        return found if found is not None else self._reader.find([key]).get(key)

    def _filing(self) -> TeamFiling:
        return TeamFiling(self._topics, self._placement, self._in_force, self._max_topic_chars)

    def _take(self, decision: Decision, key: Decimal, pair: Pair | None) -> frozenset[str]:
        changed: set[str] = set()
        topics = dict(self._topics)
        for move in self._placement.apply(decision):
            moved = self._in_force.get(move.key)
            if move.source is not None and moved is not None:
                left = topics[move.source].without(moved.id)
                if left.pairs:
                    topics[move.source] = left
                else:
                    del topics[move.source]
                self._in_force.remove(move.key)
                changed.add(move.source)
            if move.target is not None and pair is not None and teaches(pair):
                topics[move.target] = topics.get(move.target, Topic(move.target, ())).joined_by(pair)
                self._in_force.add(move.key, pair)
                changed.add(move.target)
        if decision.action is Action.RESTORED and key not in self._placement.decided:
            self._reader.rewind()
        self._topics = topics
        self._unwritten |= changed
        self._index.follow(sorted(changed), topics)
        self._stated = False
        self.settle()
        return frozenset(changed)

    # Files

    @property
    def _settled(self) -> bool:
        return self._stated and self._index.written and not self._unwritten

    def settle(self) -> None:
        """Write whatever is not on the disk yet. Raises LibraryUnwritable."""
        if self._settled:
            return
        with _writing("What was decided is noted; this is written at the next opportunity"):
            for name in sorted(self._unwritten):
                path = self.places.topics / f"{name}.txt"
                topic = self._topics.get(name)
                if topic is None:
                    files.remove(path)
                else:
                    files.renew(path, topic.text.encode())
                self._unwritten.discard(name)
            self._index.write(self._time())
            if not self._stated:
                self._write_state()
            self._stated = True

    def _write_state(self) -> None:
        newest = self._placement.newest or self._state.last_processed_qa_id
        if not newest:
            return
        state = TeamState(newest, self._state.start_qa_id or "", self._log.length)
        if state != self._state:
            files.renew(self.places.state, team_state.render(state))
            self._state = state


def _tells(topic: Topic, author_id: int) -> bool:
    """Whether anything that somebody wrote stands in it."""
    return any(pair != archive.without(pair, author_id) for pair in topic.pairs if author_id in pair.author_ids)


@contextmanager
def _writing(what: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise LibraryUnwritable(f"{files.why(error)}. {what}") from error
