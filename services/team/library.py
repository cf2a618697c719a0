"""Tier 2 of team knowledge, and its one writer: what was decided, and the topics that follow (SPEC 6).

    decide   decisions.jsonl  →  topic files  →  cache and index  →  state.json

The first is what counts. If a crash or a full disk prevents the rest, the next call or the next start writes it. All
methods block, and may be called from any thread, also at the same time.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType

from services.knowledge import IndexEntry
from services.storage import files
from services.team import filing, qa_ids
from services.team import state as team_state
from services.team.archive import Pair
from services.team.archive_files import ArchiveReader, StoredBlock
from services.team.decisions import Action, Decision, DecisionLog
from services.team.fold import TopicFold
from services.team.index import TeamIndex
from services.team.state import LibraryUnwritable, TeamPlaces, TeamState
from services.team.topics import Topic

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PairStatus:
    """What has become of a pair.

    Attributes:
        topic: where it is active.
        last_topic: where it is active, or was last.
        withdrawn: whether an operator removed it.
        later: the latest active capture of the same conversation, if that is later.
    """

    topic: str | None
    last_topic: str | None
    withdrawn: bool
    later: Pair | None


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
        fold: TopicFold,
        state: TeamState,
        index: TeamIndex,
        max_topic_chars: int,
        time: Callable[[], float],
    ) -> None:
        self.places = places
        self._reader, self._log, self._fold = reader, decisions, fold
        self._state, self._index = state, index
        self._max_topic_chars = max_topic_chars
        self._time = time
        self._forgotten: set[int] = set()
        """People forgotten since the start: what callers still have of them must not be used."""
        self._unwritten: set[str] = set()
        """Topics whose files are out of date."""
        self._state_written = False
        self._lock = threading.RLock()

    @property
    def topics(self) -> Mapping[str, Topic]:
        """By name. A later change makes a new mapping."""
        return MappingProxyType(self._fold.topics)

    def index(self) -> Sequence[IndexEntry]:
        """An entry for each topic: its description; until there is one, its name and its first question."""
        return self._index.entries

    def undecided(self) -> Pair | None:
        """The oldest pair after the start cursor without a decision.

        Raises:
            LibraryUnwritable: an earlier decision has not reached all its files, and cannot now.
            OSError: the archive cannot be read.
        """
        with self._lock:
            self.flush()
            return self._reader.oldest(self._fold.placement.is_undecided)

    def stored(self, block: StoredBlock) -> None:
        """Take over a block that was just appended to the archive, so it need not be read. Never waits: while the
        library is busy, the block is left to be read.
        """
        if self._lock.acquire(blocking=False):
            try:
                self._reader.stored(block)
            finally:
                self._lock.release()

    def peek(self) -> Pair | None:
        """`undecided`, if it is in memory. No disk access; never waits."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            return self._reader.peek(self._fold.placement.is_undecided) if self._flushed else None
        finally:
            self._lock.release()

    def held(self, topic: str) -> Sequence[Pair]:
        """The pairs that one classified under this name would join: of the topic and its continuations."""
        topics = self._fold.topics
        return [pair for name in filing.topic_files(topics, topic) for pair in topics[name].pairs]

    def pair(self, pair_id: str) -> Pair | None:
        """A pair of the archive, if it is there.

        Raises:
            BadId: it is no id.
        """
        key = qa_ids.instant(pair_id)
        with self._lock:
            return self._fold.active(key) or self._reader.find([key]).get(key)

    def status(self, pair: Pair) -> PairStatus:
        with self._lock:
            placement = self._fold.placement
            captures = self._fold.captures(pair.conversation_id)
            latest = max(captures, default=pair.key)
            return PairStatus(
                placement.topic_of.get(pair.key),
                placement.last_topic.get(pair.key),
                pair.key in placement.withdrawn,
                captures[latest] if latest > pair.key else None,
            )

    def decide(self, decision: Decision, pair: Pair | None = None) -> frozenset[str]:
        """Note a decision and carry it out. Gives the names of the topics that changed, were added or removed.

        A pair that is added or restored goes into the first file of its topic with room for it, and the decision is
        noted with the name of that file. An added pair replaces all earlier active captures of its conversation, also
        those that the decision does not name, and is skipped if there is a later one. `pair`, if given, need not be
        searched for.

        Raises:
            UnknownPair: it is to go into a topic, and is not in the archive.
            LibraryUnwritable: either the decision was not noted, and nothing changed; or it was, and not all its files
                could be written. `undecided` shows which, and writes them.
            OSError: the archive cannot be read.
        """
        with self._lock:
            self.flush()
            if pair is not None and not self._forgotten.isdisjoint(pair.author_ids):
                pair = None
            if pair is None and decision.action in {Action.ADDED, Action.RESTORED}:
                pair = self._find(decision.key)
            if decision.action is Action.ADDED:
                if pair is None:
                    raise UnknownPair(f"{decision.qa_id} is not in {self.places.raw}")
                decision = filing.added(self._fold, decision, pair, self._max_topic_chars)
            elif decision.action is Action.RESTORED and pair is not None:
                decision = filing.restored(self._fold, decision, pair, self._max_topic_chars)
            with _writing(f"The decision about {decision.qa_id} was not noted"):
                self._log.append(decision)
            changed = self._fold.apply(decision, pair)
            if decision.action is Action.RESTORED and decision.key not in self._fold.placement.decided:
                self._reader.rewind()
            self._state_written = False
            self._changed(changed)
            return frozenset(changed)

    def undescribed(self) -> Sequence[Topic]:
        """The topics without a description of their present content from the present prompt and model.

        Raises:
            LibraryUnwritable: descriptions that were found again cannot be written.
        """
        with self._lock:
            found = self._index.undescribed(self._time())
            self.flush()
            return found

    def describe(self, topic: Topic, summary: str, key: str) -> None:
        """Note a description of `topic` as `undescribed` gave it; `key` names the prompt and model it is from.

        Raises:
            LibraryUnwritable: it is not on the disk yet.
        """
        with self._lock:
            outdated = any(topic.quotes(author_id) for author_id in self._forgotten)
            if topic.name in self._fold.topics and not outdated:
                self._index.describe(topic, summary, key, self._time())
                self.flush()

    def undescribe(self, author_id: int) -> None:
        """Drop the descriptions of the topics with texts of this person, which they may repeat.

        Raises:
            LibraryUnwritable: they are still on the disk.
        """
        with self._lock:
            topics = self._fold.topics
            self._index.forget(name for name, topic in topics.items() if topic.quotes(author_id))
            self._index.follow(list(topics), topics)
            self.flush()

    def forget(self, author_id: int) -> frozenset[str]:
        """Take the texts of this person out of the topics, once they are out of the archive. Gives the names of those
        topics, which lose their descriptions.

        Raises:
            LibraryUnwritable: they are out of memory, but not of all files yet.
        """
        with self._lock:
            self._forgotten.add(author_id)
            self._reader.rewind()  # the pairs it has in memory may have such texts
            changed = self._fold.forget(author_id)
            self._index.forget(changed)
            self._changed(changed)
            return frozenset(changed)

    def flush(self) -> None:
        """Write what is not on the disk yet. Raises LibraryUnwritable."""
        if self._flushed:
            return
        with _writing("What was decided is noted; this is written at the next opportunity"):
            for name in sorted(self._unwritten):
                path = self.places.topics / f"{name}.txt"
                topic = self._fold.topics.get(name)
                if topic is None:
                    files.remove(path)
                else:
                    files.renew(path, topic.text.encode())
                self._unwritten.discard(name)
            self._index.write(self._time())
            if not self._state_written:
                self._write_state()
            self._state_written = True

    @property
    def _flushed(self) -> bool:
        return self._state_written and self._index.written and not self._unwritten

    def _write_state(self) -> None:
        newest = self._fold.placement.newest or self._state.last_processed_qa_id
        if not newest:
            return
        state = TeamState(newest, self._state.start_qa_id, self._log.length)
        if state != self._state:
            files.renew(self.places.state, team_state.render(state))
            self._state = state

    def _changed(self, names: Collection[str]) -> None:
        self._unwritten.update(names)
        self._index.follow(sorted(names), self._fold.topics)
        self.flush()

    def _find(self, key: Decimal) -> Pair | None:
        found = self._fold.active(key)
        if found is None:
            waiting = self._reader.oldest(self._fold.placement.is_undecided)
            found = waiting if waiting is not None and waiting.key == key else None
        return found if found is not None else self._reader.find([key]).get(key)


@contextmanager
def _writing(what: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise LibraryUnwritable(f"{files.why(error)}. {what}") from error
