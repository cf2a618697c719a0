"""The team library: the one writer of decisions, topic files, team index and state (SPEC 6).

    decide   decisions.jsonl  →  topic files  →  cache and index  →  state.json

The first is what counts. If a crash or a full disk prevents the rest, the next call or the next start writes it. All
methods block, and may be called from any thread, also at the same time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal

from services.knowledge import IndexEntry
from services.storage import files
from services.team import filing, qa_ids
from services.team import state as team_state
from services.team.archive import Pair
from services.team.archive_files import ArchiveReader, StoredBlock, Wanted, whatever
from services.team.decisions import Action, Decision, DecisionLog
from services.team.fold import Placement, TopicFold
from services.team.index import TeamIndex
from services.team.state import LibraryUnwritable, TeamPlaces, TeamState
from services.team.topics import Correction, Topic

TOGETHER = 64
"""Decisions and descriptions that are put off at most."""


class UnknownPair(LookupError):
    """No block of the archive has this id."""


@dataclass(kw_only=True, eq=False)
class TeamLibrary:
    """Made by `services.team.opening.open_library`; its parts are only to be read.

    Methods raise LibraryUnwritable if a file cannot be written. What they changed in memory, and what was decided, is
    kept; `flush`, which most of them call first, tries again.
    """

    places: TeamPlaces
    reader: ArchiveReader
    decisions: DecisionLog
    fold: TopicFold
    state: TeamState
    team_index: TeamIndex
    max_topic_chars: int
    time: Callable[[], float]
    # People forgotten since the start: what callers still have of them must not be used.
    _forgotten: set[int] = field(default_factory=set[int], init=False)
    _renamed: dict[str, str] = field(default_factory=dict[str, str], init=False)
    _unwritten: set[str] = field(default_factory=set[str], init=False)  # topics whose files are out of date
    _state_written: bool = field(default=False, init=False)
    _put_off: int = field(default=0, init=False)  # decisions and descriptions that wait for the next ones
    _unnoted: list[Decision] = field(default_factory=list[Decision], init=False)  # those of the decisions
    _lock: threading.RLock = field(default_factory=threading.RLock, init=False)

    @property
    def topics(self) -> Mapping[str, Topic]:
        """The topics by name. A later change makes a new mapping."""
        return self.fold.topics

    def index(self) -> Sequence[IndexEntry]:
        """Return an entry for each topic: its description, or its name and first question until there is one."""
        return self.team_index.entries

    def undecided(self, ready: Wanted = whatever) -> Pair | None:
        """Return the oldest pair after the start cursor that has no decision and for which `ready` is true. If there is
        none, decisions that were put off are written. Raises OSError: the archive cannot be read.
        """
        with self._lock:
            self._catch_up()
            found = self.reader.oldest(self.fold.placement.is_undecided, ready)
            if found is None:
                self.flush()
            return found

    def later(self, pair: Pair) -> Pair | None:
        """Return a later capture of the same conversation that is undecided as well, if one is in memory."""
        with self._lock:
            return self.reader.later(pair)

    @property
    def behind(self) -> bool:
        """True if decisions or descriptions were put off, so that files are not up to date."""
        return self._put_off > 0

    def waiting(self) -> Sequence[Pair]:
        """Return the undecided pairs in memory: all of them, if none was `ready` when `undecided` last looked."""
        with self._lock:
            return self.reader.waiting(self.fold.placement.is_undecided)

    def stored(self, block: StoredBlock) -> None:
        """Take over a block that was just appended to the archive. Never waits: a busy library reads it later instead."""
        if self._lock.acquire(blocking=False):
            try:
                self.reader.stored(block)
            finally:
                self._lock.release()

    def held(self, topic: str) -> Sequence[Pair]:
        """Return the pairs of the topic and its continuations, which a pair filed under this name would join."""
        topics = self.fold.topics
        return [pair for name in filing.topic_files(topics, topic) for pair in topics[name].pairs]

    def corrections(self, pair: Pair) -> Sequence[Correction]:
        """Return the corrections of a pair by later conversations."""
        topics = (self.fold.topics.get(name) for name in self.fold.placement.parts(pair.key))
        return next((topic.corrections[pair.key] for topic in topics if topic and pair.key in topic.corrections), ())

    def pair(self, pair_id: str) -> Pair | None:
        """A pair of the archive, if it is there. Raises BadId, OSError."""
        key = qa_ids.instant(pair_id)
        with self._lock:
            return self.fold.active.get(key) or self.reader.find([key]).get(key)

    def decide(self, decision: Decision, pair: Pair | None = None, *, put_off: bool = False) -> frozenset[str]:
        """Record a decision and carry it out. Returns the names of the topics that changed, were added or removed.

        A pair that is added or restored goes into the first file of its topic with room for it, and the decision is
        noted with that file's name. An added pair replaces all earlier active captures of its conversation, named or
        not, and is skipped if there is a later one. `pair` saves searching for it. `put_off`: it is written with
        the next ones, of at most `TOGETHER`, and so is what follows from them, after it; a crash may undo it.

        Raises:
            UnknownPair: it is to go into a topic, and is not in the archive.
            LibraryUnwritable: the decision was not noted, and nothing changed; or not all its files could be written.
            OSError: the archive cannot be read.
        """
        with self._lock:
            self._catch_up()
            decision = decision.with_topics(self._renamed)
            if pair is not None and not self._forgotten.isdisjoint(pair.author_ids):
                pair = None
            if pair is None and decision.action in {Action.ADDED, Action.RESTORED}:
                pair = self._find(decision.key)
            if decision.action is Action.ADDED:
                if pair is None:
                    raise UnknownPair(f"{decision.qa_id} is not in {self.places.raw}")
                decision = filing.added(self.fold, decision, pair, self.max_topic_chars)
            elif decision.action is Action.RESTORED and pair is not None:
                decision = filing.restored(self.fold, decision, pair, self.max_topic_chars)
            if put_off:
                self._unnoted.append(decision)
            else:
                with _writing(f"The decision about {decision.qa_id} was not noted"):
                    self._note(decision)
            changed = self.fold.apply(decision, pair)
            if decision.action is Action.RESTORED and decision.key not in self.fold.placement.decided:
                self.reader.rewind()
            self._state_written = False
            return self._changed(changed, put_off=put_off)

    def undescribed(self) -> Sequence[Topic]:
        """Return the topics without a description of their present content from the present prompt and model."""
        with self._lock:
            found = self.team_index.undescribed(self.time())
            self.flush()
            return found

    def described(self) -> Mapping[str, Topic]:
        """Return the topics that have a description, even if it is of earlier content."""
        topics = self.fold.topics
        return {name: topics[name] for name in self.team_index.described if name in topics}

    def lacking(self, topics: Sequence[Topic]) -> Sequence[Topic]:
        """Return those topics whose description is not of their present content, from the present prompt and model."""
        with self._lock:
            found = self.team_index.lacking(topics, self.time())
            self._catch_up()
            return found

    def describe(self, topic: Topic, summary: str, key: str, *, put_off: bool = False) -> None:
        """Store a description of `topic` as `undescribed` returned it; `key` names the prompt and model that made it.
        `put_off`: as for `decide`.
        """
        with self._lock:
            outdated = any(topic.quotes(author_id) for author_id in self._forgotten)
            if topic.name in self.fold.topics and not outdated:
                self.team_index.describe(topic, summary, key, self.time())
                self._follow_up(put_off=put_off)

    def undescribe(self, author_id: int) -> None:
        """Drop the descriptions of all topics that hold texts of this person, since they may repeat them."""
        with self._lock:
            topics = self.fold.topics
            self.team_index.forget(name for name, topic in topics.items() if topic.quotes(author_id))
            self.team_index.follow(list(topics), topics)
            self.flush()

    def forget(self, author_id: int) -> frozenset[str]:
        """Remove a person's texts, which are out of the archive already, from topics and descriptions. Returns the
        names of the topics that changed.
        """
        with self._lock:
            self._forgotten.add(author_id)
            self.flush()
            # What it has in memory may be such texts: it reads everything again.
            archived = self.reader.survey(self.fold.placement.is_undecided)
            theirs = {pair.key for pair in archived if author_id in pair.author_ids}
            with _writing("Its words stay in the decisions until this is done again"):
                if self.decisions.forget(theirs):
                    self.fold.placement.corrected = Placement(self.decisions.read()).corrected
                    self._state_written = False
            changed = self.fold.forget(author_id)
            self.team_index.forget(changed)
            return self._changed(changed)

    def rename(self, names: Mapping[str, str]) -> None:
        """Rename topics, also in decisions to come. Neither a topic nor a decision may have one of the new names."""
        if not names:
            return
        with self._lock:
            self.flush()
            with _writing("Topics keep their names until this is done again"):
                # First: a file whose name no decision has would be taken for somebody's own.
                for name in names:
                    files.remove(self.places.topics / f"{name}.txt")
                self.decisions.rename(names)
            self.fold.rename(names)
            self._renamed.update(names)
            self.team_index.forget(names)
            self._state_written = False
            self._changed({*names, *names.values()})

    def flush(self) -> None:
        """Write what is not on the disk yet."""
        self._put_off = 0
        if self._flushed:
            return
        if self._unnoted:
            with _writing(f"What was decided about {self._unnoted[0].qa_id} is noted at the next opportunity"):
                self._note()
        with _writing("What was decided is noted; this is written at the next opportunity"):
            for name in sorted(self._unwritten):
                path = self.places.topics / f"{name}.txt"
                topic = self.fold.topics.get(name)
                if topic is None:
                    files.remove(path)
                else:
                    files.renew(path, topic.text.encode())
                self._unwritten.discard(name)
            self.team_index.write(self.time())
            newest = self.fold.placement.newest or self.state.last_processed_qa_id
            state = TeamState(newest, self.state.start_qa_id, self.decisions.length)
            if newest and state != self.state:
                files.renew(self.places.state, team_state.render(state))
                self.state = state
            self._state_written = True

    @property
    def _flushed(self) -> bool:
        return self._state_written and self.team_index.written and not self._unwritten and not self._unnoted

    def _note(self, *decisions: Decision) -> None:
        """On the disk, those that were put off first."""
        self.decisions.append(*self._unnoted, *decisions)
        self._unnoted.clear()

    def _changed(self, names: Collection[str], *, put_off: bool = False) -> frozenset[str]:
        self._unwritten.update(names)
        self.team_index.follow(sorted(names), self.fold.topics)
        self._follow_up(put_off=put_off)
        return frozenset(names)

    def _follow_up(self, *, put_off: bool) -> None:
        if put_off and self._put_off + 1 < TOGETHER:
            self._put_off += 1
        else:
            self.flush()

    def _catch_up(self) -> None:
        """Write what an earlier call could not write. What was put off on purpose stays put off."""
        if not self._put_off:
            self.flush()

    def _find(self, key: Decimal) -> Pair | None:
        found = self.fold.active.get(key) or self.reader.oldest(self.fold.placement.is_undecided)
        return found if found is not None and found.key == key else self.reader.find([key]).get(key)


@contextmanager
def _writing(what: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise LibraryUnwritable(f"{files.why(error)}. {what}") from error
