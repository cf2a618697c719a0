"""The team library: the one writer of decisions, topic files, team index and state."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import chain

from model.processes import UserError
from services.knowledge import IndexEntry, fold_name_word, name_words
from services.storage import files
from services.team import archive, archive_files
from services.team.archive import Pair, piece_of
from services.team.archive_files import ArchiveReader, PairFilter, StoredBlock, accept_all
from services.team.decisions import Action, Actor, Decision, DecisionLog
from services.team.filing import (
    IS_LATER,
    complete_added,
    complete_restored,
    has_changed,
    may_repeat,
    remove_words,
    takes_away,
    topic_files,
)
from services.team.index import TeamIndex
from services.team.state import TeamPaths, TeamState, render_state
from services.team.topics import Correction, Placement, Topic, TopicFold, has_team_text

log = logging.getLogger(__name__)

MAX_COMPARED = 1_000
"""Later captures that are read together, to see whether they have changed what is filed."""
MAX_PUT_OFF = 64
"""The most decisions and descriptions that are put off together."""


class LibraryUnwritable(UserError):
    """Something was not written, and may be later: one readable line that names the file and the remedy."""

    exit_code = 1


class UnknownPair(LookupError):
    """No block of the archive has this id."""


@dataclass(kw_only=True, eq=False)
class TeamLibrary:
    """Made by `services.team.opening.open_library`; its parts are only to be read.

    Methods raise LibraryUnwritable if a file cannot be written. What they changed in memory, and what was decided, is
    kept; `flush`, which most of them call first, tries again.

        decide   decisions.jsonl  →  topic files  →  cache and index  →  state.json

    The first file is what counts. If a crash or a full disk prevents the rest, the next call or the next start writes
    it. All methods block, and may be called from any thread, also at the same time.
    """

    paths: TeamPaths
    reader: ArchiveReader
    decisions: DecisionLog
    fold: TopicFold
    state: TeamState
    team_index: TeamIndex
    max_topic_chars: int
    time: Callable[[], float]
    # People forgotten since the start: callers may still have texts of them, which must not be used.
    _forgotten: set[int] = field(default_factory=set[int], init=False)
    _forgotten_pairs: set[Decimal] = field(default_factory=set[Decimal], init=False)
    _renamed: dict[str, str] = field(default_factory=dict[str, str], init=False)
    _unwritten: set[str] = field(default_factory=set[str], init=False)  # topics whose files are out of date
    _state_written: bool = field(default=False, init=False)
    _put_off: int = field(default=0, init=False)  # decisions and descriptions that wait for the next ones
    # Conversations of `reader.ahead` whose last capture is still to be compared with what is filed.
    _uncompared: dict[str, None] = field(default_factory=dict[str, None], init=False)
    _changed: list[Pair] = field(default_factory=list[Pair], init=False)  # such captures that have changed it
    # Decisions that were put off and are not in the log yet.
    _unlogged: list[Decision] = field(default_factory=list[Decision], init=False)
    _lock: threading.RLock = field(default_factory=threading.RLock, init=False)

    def __post_init__(self) -> None:
        self._uncompared = dict.fromkeys(self.reader.ahead)

    @property
    def topics(self) -> Mapping[str, Topic]:
        """The topics by name. A later change makes a new mapping."""
        return self.fold.topics

    def index(self) -> Sequence[IndexEntry]:
        """Return an entry for each topic: its description, or its name and first question until there is one."""
        return self.team_index.entries

    def oldest_undecided(self, ready: PairFilter = accept_all) -> Pair | None:
        """Return the oldest pair after the start cursor that has no decision and for which `ready` is true. If there is
        no such pair, decisions that were put off are written. Raises OSError: the archive cannot be read.
        """
        with self._lock:
            self._retry()
            found = self.reader.oldest(self.fold.placement.is_undecided, ready)
            if found is None:
                self.flush()
            return found

    def later_undecided(self, pair: Pair) -> str | None:
        """Return the id of a later capture of the same conversation that is undecided too."""
        with self._lock:
            later = self.reader.later_capture(pair)
            return None if later is None or archive.instant(later) in self.fold.placement.decided else later

    def outdated_pair(self) -> tuple[Pair, Pair] | None:
        """Return a pair in a topic, and an undecided later capture that has changed it (`has_changed`). Raises OSError:
        the archive cannot be read.
        """
        with self._lock:
            is_undecided = self.fold.placement.is_undecided
            for pair in self.reader.in_memory(is_undecided):
                if (held := self._changed_by(pair)) is not None:
                    return held, pair
            while self._changed or self._uncompared:
                while self._changed:
                    pair = self._changed[-1]
                    if is_undecided(pair) and (held := self._changed_by(pair)) is not None:
                        return held, pair
                    self._changed.pop()
                self._compare()
            return None

    def _changed_by(self, pair: Pair) -> Pair | None:
        """Return an active earlier capture of the conversation that a pair has changed."""
        earlier = (held for held in self.fold.captures(pair) if held.key < pair.key)
        return next((held for held in earlier if has_changed(pair, held)), None)

    def _compare(self) -> None:
        """Read the next of what was captured later of filed conversations. Raises OSError."""
        keys = dict[Decimal, str]()
        for conversation_id in list(self._uncompared):
            if len(keys) == MAX_COMPARED:
                break
            del self._uncompared[conversation_id]  # first: a later capture may come meanwhile
            last = self.reader.ahead.get(conversation_id)
            if last is not None and self.fold.has_conversation(conversation_id):
                keys[archive.instant(last)] = conversation_id
        try:
            missing = keys.keys() - self.fold.placement.decided
            found = self.reader.find(missing) if missing else {}
        except OSError:
            self._uncompared.update(dict.fromkeys(keys.values()))
            raise
        self._changed = [pair for pair in found.values() if self._changed_by(pair) is not None]

    @property
    def is_behind(self) -> bool:
        """True if decisions or descriptions were put off, so that files are not up to date."""
        return self._put_off > 0

    def undecided_in_memory(self) -> Sequence[Pair]:
        """Return the undecided pairs in memory: all, if the last `oldest_undecided` returned None."""
        with self._lock:
            return self.reader.in_memory(self.fold.placement.is_undecided)

    def add_block(self, block: StoredBlock) -> None:
        """Take over a block that was just appended to the archive. Never waits: a busy library reads it later, and so
        does one that has others to read before; its id is known at once, and so whether something was taken back.
        """
        taken = False
        if self._lock.acquire(blocking=False):
            try:
                taken = self.reader.add_block(block)
            finally:
                self._lock.release()
        if not taken:
            self.reader.note_ahead(block.pair)
            self._uncompared[block.pair.conversation_id] = None

    def pairs_of_topic(self, topic: str) -> Sequence[Pair]:
        """Return the pairs of the topic and its continuations."""
        topics = self.fold.topics
        return [pair for name in topic_files(topics, topic) for pair in topics[name].pairs]

    def corrections(self, pair: Pair) -> Sequence[Correction]:
        """Return the corrections of a pair by later conversations."""
        topics = (self.fold.topics.get(name) for name in self.fold.placement.messages_by_topic(pair.key))
        return next((topic.corrections[pair.key] for topic in topics if topic and pair.key in topic.corrections), ())

    def pair(self, pair_id: str) -> Pair | None:
        """Return a pair of the archive, or None. Raises BadId, OSError."""
        key = archive.instant(pair_id)
        with self._lock:
            return self.fold.active.get(key) or self.reader.find([key]).get(key)

    def decision_about(self, pair: Pair) -> Decision | None:
        """Return the last decision about a pair, or None. Reads the whole log. Raises OSError."""
        with self._lock:
            if self.fold.placement.is_undecided(pair):
                return None
            noted = self._log()
        return next((each for each in reversed(noted) if each.key == pair.key), None)

    def removal_of(self, pair: Pair, at: str) -> Decision | None:
        """Return the decision that keeps a pair out, if an operator has removed another capture of its conversation:
        a removal holds until it is taken back, whatever is captured meanwhile.
        """
        with self._lock:
            removed = self.fold.removed_with(pair)
            if not removed:
                return None
            earlier = tuple(each for each in removed if archive.instant(each) < pair.key)
            topic = self.fold.placement.last_topic.get(archive.instant(removed[0]))
            reason = f"{', '.join(removed)} of the same conversation was removed"
            log.info("%s stays out of all topics: %s", pair.id, reason)
            return Decision(pair.id, at, Action.REMOVED, Actor.OPERATOR, topic, replaces=earlier, reason=reason)

    def repeated(self, pair: Pair, at: str) -> Decision | None:
        """Return the decision about a pair which differs from an earlier capture of its conversation by doubts and by
        words of users that are gone alone: the one about that capture, but that it replaces nothing, and corrects
        nothing if it is doubted; a topic that holds nothing else loses the words from its name. None: there is none
        such, what it has filed was made obsolete, or another name or a remark has one of the words; then the curator
        decides, and also about words that are gone if it asks no model. Raises OSError.
        """
        if not may_repeat(pair):
            return None
        with self._lock:
            earlier = archive_files.earlier_captures(self.paths.raw, pair)
            same = {each.key: each for each in earlier if takes_away(pair, each)}
            decided = {
                each.key: each
                for each in self._log()
                if each.by.is_curator and each.key in same and not each.reason.endswith(IS_LATER)
            }
            last = next((each for key in reversed(same) if (each := decided.get(key)) is not None), None)
            if last is None or last.action is Action.FAILED:
                return None
            before = same[last.key]
            if last.by is not Actor.LLM and before.turns != pair.turns:
                return None
            again = replace(last, qa_id=pair.id, at=at, remove_ids=(), replaces=(), superseded_parts=(), pieces=())
            if last.action is not Action.ADDED:
                return again
            placement = self.fold.placement
            if last.key not in placement.withdrawn and last.key not in placement.topic_of:
                return None
            kept = placement.pieces.get(last.key, ())
            pieces = [each for each in kept if (piece := piece_of(pair, each.messages)) and has_team_text(piece)]
            again = replace(
                again,
                topic=placement.last_topic.get(last.key, last.topic),
                replaces=(last.qa_id,),
                superseded_parts=last.superseded_parts if pair.doubted_ids == before.doubted_ids else (),
                pieces=tuple(pieces),
            )
            return self._without_gone_words(again, pair, before) if pieces or not kept else None

    def _without_gone_words(self, decision: Decision, pair: Pair, before: Pair) -> Decision | None:
        """Return a decision about a later capture with topics that have no words in their names which are gone since;
        None: they hold other conversations, or a remark has such a word.
        """
        names = {decision.topic or "", *(each.topic for each in decision.pieces)}
        held = {name: self.fold.topics[name].pairs for name in names if name in self.fold.topics}
        shared = {
            name: [each for each in pairs if each.conversation_id != pair.conversation_id]
            for name, pairs in held.items()
        }
        left = name_words(turn.text for each in (pair, *chain(*shared.values())) for turn in each.turns)
        gone = name_words(turn.text for turn in before.turns) - left
        others = self.fold.topics.keys() - names
        renamed = {name: name if shared.get(name) else remove_words(name, gone, others) for name in names}
        words = name_words(each.what for each in (*decision.superseded_parts, *decision.conflicts))
        if not gone.isdisjoint(words.union(*(map(fold_name_word, name.split("-")) for name in renamed.values()))):
            return None
        pieces = tuple(replace(each, topic=renamed[each.topic]) for each in decision.pieces)
        return replace(decision, topic=renamed[decision.topic or ""], pieces=pieces)

    def decide(
        self,
        decision: Decision,
        pair: Pair | None = None,
        *,
        put_off: bool = False,
        brings_back: bool = True,
    ) -> frozenset[str]:
        """Record a decision and carry it out. Returns the names of the topics that changed, were added or removed.

        A pair that is added or restored goes into the first file of its topic with room for it, and that file's name
        is noted with the decision. An added pair replaces all earlier active captures of its conversation, is skipped
        if there is a later one, and removed if an operator has removed another one. What a removed pair had replaced
        is added again if it `brings_back` that, and goes once more if the pair is restored. `pair`: saves a search.
        `put_off`: the decision and its files are written later, with others, at most `MAX_PUT_OFF` at once. A crash
        before that loses the decision.

        Raises:
            UnknownPair: the pair is to go into a topic, and is not in the archive.
            LibraryUnwritable: the decision was not noted, and nothing changed; or not all its files could be written.
            OSError: the archive cannot be read.
        """
        with self._lock:
            self._retry()
            decision = decision.with_topics(self._renamed).without_words_about(self._forgotten_pairs)
            if pair is not None and not self._forgotten.isdisjoint(pair.author_ids):
                pair = None
            if pair is None and decision.action in {Action.ADDED, Action.RESTORED, Action.REMOVED}:
                pair = self._find(decision.key)
            decision = self._complete(decision, pair)
            applied: list[tuple[Decision, Pair | None]] = [(decision, pair)]
            is_withdrawn = decision.action is Action.REMOVED and not decision.by.is_curator
            if is_withdrawn and brings_back and pair is not None:
                applied += self._decisions_to_add_again(decision, pair)
            noted = [each for each, _ in applied]
            if put_off:
                self._unlogged += noted
            else:
                with _reporting_write_errors(f"The decision about {decision.qa_id} was not noted"):
                    self._note(*noted)
            changed = set[str]().union(*(self.fold.apply(*each) for each in applied))
            self._uncompared.update({each.conversation_id: None for _, each in applied if each is not None})
            if decision.action is Action.RESTORED and decision.key not in self.fold.placement.decided:
                self.reader.rewind()
            self._state_written = False
            return self._update(changed, put_off=put_off)

    def _complete(self, decision: Decision, pair: Pair | None) -> Decision:
        """Complete a decision about a pair that goes into a topic. Raises UnknownPair, OSError."""
        if decision.action is Action.ADDED:
            if pair is None:
                raise UnknownPair(f"{decision.qa_id} is not in {self.paths.raw}")
            return self.removal_of(pair, decision.at) or complete_added(self.fold, decision, pair, self.max_topic_chars)
        if decision.action is Action.RESTORED and pair is not None:
            restored = complete_restored(self.fold, decision, pair, self.max_topic_chars)
            again = (key for key in self._replaced_by(pair, self._log()) if key in self.fold.active)
            return replace(restored, remove_ids=tuple(self.fold.active[key].id for key in again))
        return decision

    def _log(self) -> list[Decision]:
        """Return all decisions, oldest first. Raises OSError."""
        return [*self.decisions.read(), *self._unlogged]

    def _replaced_by(self, pair: Pair, decisions: Sequence[Decision]) -> set[Decimal]:
        """Return the pairs that by these decisions one has made obsolete, or an earlier capture of its conversation."""
        captures, obsolete = {pair.key}, set[Decimal]()
        for each in reversed(decisions):
            if each.key in captures and each.by.is_curator:
                captures.update(map(archive.instant, each.replaces))
                obsolete.update(map(archive.instant, each.remove_ids))
        return obsolete - captures

    def _decisions_to_add_again(self, removal: Decision, pair: Pair) -> list[tuple[Decision, Pair]]:
        """Return decisions that add again what the removed pair had replaced, each with its pair; nothing that another
        pair has made obsolete too, or that was removed itself. Raises OSError.
        """
        placement = self.fold.placement
        if pair.key not in placement.topic_of:
            return []
        decisions = self._log()
        gone = self._replaced_by(pair, decisions) - placement.withdrawn - placement.topic_of.keys()
        if not gone:
            return []
        added: dict[Decimal, Decision] = {}
        for each in decisions:
            if each.action is Action.ADDED:
                added[each.key] = each
            if each.key in placement.topic_of and each.key != pair.key:
                gone -= set(map(archive.instant, (*each.remove_ids, *each.replaces)))
        found: list[tuple[Decision, Pair]] = []
        for key, back in sorted(self.reader.find(gone & added.keys()).items()):
            reason = f"{pair.id}, which had replaced it, was removed"
            again = replace(added[key], at=removal.at, topic=placement.last_topic[key], remove_ids=(), reason=reason)
            if self.removal_of(back, removal.at) is None and self.fold.later_capture(back) is None:
                found.append((complete_added(self.fold, again, back, self.max_topic_chars), back))
        return found

    def undescribed_topics(self) -> Sequence[Topic]:
        """Return the topics without a description of their present content from the present prompt and model."""
        with self._lock:
            found = self.team_index.undescribed_topics(self.time())
            self.flush()
            return found

    def described_topics(self) -> Mapping[str, Topic]:
        """Return the topics that have a description, also one of earlier content."""
        topics = self.fold.topics
        return {name: topics[name] for name in self.team_index.described if name in topics}

    def find_undescribed(self, topics: Sequence[Topic]) -> Sequence[Topic]:
        """Return what `undescribed_topics` returns, among some topics only."""
        with self._lock:
            found = self.team_index.find_undescribed(topics, self.time())
            self._retry()
            return found

    def describe(self, topic: Topic, summary: str, key: str, *, put_off: bool = False) -> None:
        """Store a description of `topic` as `undescribed_topics` returned it; `key` names the prompt and model that
        made it. `put_off`: as for `decide`.
        """
        with self._lock:
            outdated = any(topic.quotes(author_id) for author_id in self._forgotten)
            if topic.name in self.fold.topics and not outdated:
                self.team_index.describe(topic, summary, key, self.time())
                self._flush_if_due(put_off=put_off)

    def drop_description(self, topic: str) -> None:
        """Drop the description of a topic, which has its name and first question in the index until it gets another."""
        with self._lock:
            if topic in self.team_index.described:
                self.team_index.forget([topic])
                self.team_index.follow([topic], self.fold.topics)
                self.flush()

    def drop_descriptions_of(self, author_id: int) -> None:
        """Drop the descriptions that may repeat this person's texts: those of topics that hold any, and, if the person
        took part in a captured conversation, those of what topics held earlier.
        """
        with self._lock:
            topics = self.fold.topics
            dropped = {name for name, topic in topics.items() if topic.quotes(author_id)}
            if self._taken_part_in(author_id):
                dropped.update(self.team_index.outdated_descriptions(topics.values()))
            self.team_index.forget(dropped)
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
            theirs = self._taken_part_in(author_id)
            self._changed.clear()
            self._uncompared.update(dict.fromkeys(self.reader.ahead))
            self._forgotten_pairs |= theirs
            with _reporting_write_errors("Its words stay in the decisions until this is done again"):
                if self.decisions.forget(theirs):
                    self.fold.placement.corrected = Placement(self.decisions.read()).corrected
                    self._state_written = False
            changed = self.fold.forget(author_id)
            self.team_index.forget(changed)
            return self._update(changed)

    def rename(self, names: Mapping[str, str]) -> None:
        """Rename topics, also in decisions to come. Neither a topic nor a decision may have one of the new names."""
        if not names:
            return
        with self._lock:
            self.flush()
            with _reporting_write_errors("Topics keep their names until this is done again"):
                # First, as files that no decision names count as somebody's own.
                for name in names:
                    files.remove(self.paths.topics / f"{name}.txt")
                self.decisions.rename(names)
            self.fold.rename(names)
            self._renamed.update(names)
            self.team_index.forget(names)
            self._state_written = False
            self._update({*names, *names.values()})

    def flush(self) -> None:
        """Write what is not on the disk yet."""
        self._put_off = 0
        if self._is_flushed:
            return
        if self._unlogged:
            with _reporting_write_errors(
                f"What was decided about {self._unlogged[0].qa_id} is noted at the next opportunity"
            ):
                self._note()
        with _reporting_write_errors("What was decided is noted; this is written at the next opportunity"):
            for name in sorted(self._unwritten):
                path = self.paths.topics / f"{name}.txt"
                topic = self.fold.topics.get(name)
                if topic is None:
                    files.remove(path)
                else:
                    files.replace_derived(path, topic.text.encode())
                self._unwritten.discard(name)
            self.team_index.write(self.time())
            newest = self.fold.placement.newest or self.state.last_processed_qa_id
            state = TeamState(newest, self.state.start_qa_id, self.decisions.length)
            if newest and state != self.state:
                files.replace_derived(self.paths.state, render_state(state))
                self.state = state
            self._state_written = True

    @property
    def _is_flushed(self) -> bool:
        return self._state_written and self.team_index.is_written and not self._unwritten and not self._unlogged

    def _note(self, *decisions: Decision) -> None:
        """Write decisions to the log, those that were put off first."""
        self.decisions.append(*self._unlogged, *decisions)
        self._unlogged.clear()

    def _update(self, names: Collection[str], *, put_off: bool = False) -> frozenset[str]:
        self._unwritten.update(names)
        self.team_index.follow(sorted(names), self.fold.topics)
        self._flush_if_due(put_off=put_off)
        return frozenset(names)

    def _flush_if_due(self, *, put_off: bool) -> None:
        if put_off and self._put_off + 1 < MAX_PUT_OFF:
            self._put_off += 1
        else:
            self.flush()

    def _retry(self) -> None:
        """Write what an earlier call could not write. What was put off on purpose stays put off."""
        if not self._put_off:
            self.flush()

    def _taken_part_in(self, author_id: int) -> set[Decimal]:
        """Return the keys of the archived pairs in which this person took part."""
        archived = self.reader.survey(self.fold.placement.is_undecided)
        return {pair.key for pair in archived if author_id in pair.author_ids}

    def _find(self, key: Decimal) -> Pair | None:
        found = self.fold.active.get(key) or self.reader.oldest(self.fold.placement.is_undecided)
        return found if found is not None and found.key == key else self.reader.find([key]).get(key)


@contextmanager
def _reporting_write_errors(what: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise LibraryUnwritable(f"{files.describe_error(error)}. {what}") from error
