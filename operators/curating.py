"""The steps of curating team knowledge: classify a captured conversation and integrate it into its topic (`curate`),
describe a topic (`describe_topics`), and prefetch the model calls for pairs whose turn has not come (`Prefetcher`).
They touch no Observable.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from clock import now, rfc3339
from dataflow.metering import Gauge, measure_item
from operators.step import is_expected
from services.assistant import ClassificationResult, Curator, Describer, IntegrationResult, NotDescribed
from services.conversations import PersonalWork, Withdrawn
from services.knowledge import IndexEntry, files_of, make_harmless, topic_name
from services.llm import LLMError, PrefetchingAsker, PromptRefused, TimedOut, Unavailable, UnknownRequest, Usage
from services.team import (
    Action,
    Decision,
    DescriptionSchedule,
    LibraryUnwritable,
    Pair,
    TeamLibrary,
    Topic,
    allowed_remarks,
    allowed_removals,
    may_replace,
    merge_decisions,
    of_asker_and_team,
    pieces_by_topic,
    replaced_by,
    topic_files,
)
from services.telemetry import current_people

TRIES = 3  # of one pair; then its decision is `failed`
REASON_CHARS = 300
TRANSIENT_ERRORS = (Unavailable, TimedOut, UnknownRequest, OSError, LibraryUnwritable, Withdrawn)
"""Errors for which no pair is to blame: the endpoint, its recording or the disk failed, or somebody is being forgotten.
The pair stays undecided, and work on pairs stops until later.
"""

FIRST_IN_TOPIC = IntegrationResult(skip=False, remove_ids=[])  # there is nothing to compare with

log = logging.getLogger(__name__)

R = TypeVar("R")


@contextmanager
def showing(pairs: Iterable[Pair], personal_work: PersonalWork | None) -> Generator[None]:
    """Note during the block that a model is shown the texts of `pairs`: in the log context, and in `personal_work`.

    `personal_work` stops the block when one of the writers withdraws their texts. Raises Withdrawn: that has happened,
    or one of them is being forgotten.
    """
    people = {user_id for pair in pairs for user_id in pair.writer_ids}
    before = current_people.set(people)
    try:
        if personal_work is None:
            yield
        else:
            with personal_work.handling(people, archived=True):
                yield
    finally:
        current_people.reset(before)


class _NothingLeft(Exception):
    """The model refuses a pair, and nothing is left to ask again with."""


def curate(
    library: TeamLibrary,
    curator: Curator,
    usage: Usage,
    gauge: Gauge | None = None,
    time: Callable[[], str] = lambda: rfc3339(now()),
    personal_work: PersonalWork | None = None,
) -> Callable[[Pair], Coroutine[Any, Any, Decision]]:
    """Classify a pair and integrate it into its topic. `library` is only read: the caller writes the decision before
    the next pair comes. `time`: returns the time of a decision, RFC 3339, UTC. `personal_work`: as for `showing`.

    A prompt that the model refuses is tried once more, with the turns of the first asker and the team's turns that are
    certainly to that user. If that works, only these turns are filed. If there are none, the pair is skipped. An
    unusable answer or a refused request costs the pair a try; tries add up over several calls. After three, the
    decision is `failed`. Pairs may come in any order. Raises the errors of `TRANSIENT_ERRORS`, which cost no try.

        pair ── classify ── topic ── integrate ── added, or skipped
                     └──── skipped
    """
    tries: Counter[str] = Counter()

    async def classified(pair: Pair) -> dict[str, Pair] | Decision:
        """Return the pair, or its pieces, by safe topic name, known or new; or the decision to skip it."""
        index = library.index()
        try:
            result, [shown] = await asked("classify", [pair], lambda pairs: curator.classify(pairs[0], index, usage))
        except LLMError as error:
            log.warning("llm_classification_failed %s: %s: %s", pair.id, type(error).__name__, error)
            raise
        topic = "" if result.skip else topic_name(result.topic_name)
        pieces = () if result.skip else result.pieces or ()
        by_topic = pieces_by_topic(pair, [(each.message_ids, topic_name(each.topic_name)) for each in pieces])
        if topic and not by_topic:
            by_topic = {topic: shown}
        log.info("topic_classified %s: %s", pair.id, ", ".join(by_topic) or "skipped")
        if not result.skip and not by_topic:
            log.warning("%s: neither a topic nor a reason to skip was given; it is left out", pair.id)
        reason = "classified as not worth keeping" if result.skip else "no topic was named"
        return by_topic or Decision(pair.id, time(), Action.SKIPPED, curator.actor, reason=reason)

    async def integrated(pair: Pair, topic: str) -> Decision:
        """Return whether the pair is added to its topic, and which pairs there it makes obsolete."""
        # Earlier captures of the conversation are not compared: the pair replaces them once it is added.
        existing = library.pairs_of_topic(topic)
        others = [each for each in existing if each.conversation_id != pair.conversation_id]
        result = FIRST_IN_TOPIC
        try:
            if others:
                result, _ = await asked(
                    "integrate",
                    [pair, *others],
                    lambda pairs: curator.integrate(pairs[0], topic, pairs[1:], usage),
                )
        except LLMError as error:
            log.warning("llm_integration_failed %s: %s: %s", pair.id, type(error).__name__, error)
            raise
        replaces = bool(result.remove_ids or result.superseded_parts)
        is_certain = may_replace(pair)
        if replaces and not is_certain:
            log.info("%s replaces nothing: it is doubted, or it is not certain whom the team answers", pair.id)
        removed = allowed_removals(pair, existing, result.remove_ids if is_certain else ())
        at = time()
        if result.skip:
            reason = "the topic says the same"
            return Decision(pair.id, at, Action.SKIPPED, curator.actor, topic, remove_ids=removed, reason=reason)
        return Decision(
            pair.id,
            at,
            Action.ADDED,
            curator.actor,
            topic,
            remove_ids=removed,
            replaces=replaced_by(pair, existing),
            superseded_parts=allowed_remarks(pair, existing, removed, result.superseded_parts if is_certain else ()),
            conflicts=allowed_remarks(pair, existing, removed, result.conflicts),
        )

    async def asked(
        step: str, pairs: Sequence[Pair], ask: Callable[[Sequence[Pair]], Awaitable[R]]
    ) -> tuple[R, Sequence[Pair]]:
        """Return the model's answer, and the pairs as they were shown to it."""
        try:
            with measure_item(gauge, step), showing(pairs, personal_work):
                return await ask(pairs), pairs
        except PromptRefused as error:
            first, *others = map(of_asker_and_team, pairs)
            if first is None:
                raise _NothingLeft from error
            left = [first, *filter(None, others)]
            if left == list(pairs):
                raise
            log.info("%s: asked again without what others have said: %s", pairs[0].id, error)
        with measure_item(gauge, step), showing(left, personal_work):
            return await ask(left), left

    async def curated(pair: Pair) -> Decision:
        while True:
            try:
                found = await classified(pair)
                if isinstance(found, Decision):
                    decision = found
                else:
                    decided = [await integrated(part, topic) for topic, part in found.items()]
                    decision = merge_decisions(pair, found, decided)
            except TRANSIENT_ERRORS:
                raise
            except _NothingLeft:
                reason = "the model refuses it, and nothing of the team is certainly to the first user"
                decision = Decision(pair.id, time(), Action.SKIPPED, curator.actor, reason=reason)
            except Exception as error:
                tries[pair.id] += 1
                if not is_expected(error):  # a bug of ours must not hold up the other pairs
                    log.exception("%s could not be studied", pair.id)
                if tries[pair.id] < TRIES:
                    continue
                reason = _reason(error)[:REASON_CHARS]
                log.error("%s failed %d times and is left for --regen: %s", pair.id, TRIES, reason)  # noqa: TRY400 (for the operator)
                decision = Decision(pair.id, time(), Action.FAILED, curator.actor, reason=reason)
            del tries[pair.id]
            return decision

    return curated


def _reason(error: Exception) -> str:
    """Return the reason for a decision, from the error. It quotes nobody, since decisions are kept when people are
    forgotten (Pitfall 49).
    """
    kind = type(error).__name__
    return f"{kind}: {error}" if isinstance(error, LLMError) else kind


def describe_topics(
    describer: Describer, seconds: float, gauge: Gauge | None = None, personal_work: PersonalWork | None = None
) -> Callable[[Topic], Coroutine[Any, Any, str | None]]:
    """Describe a topic; None if there is no description.

    topic --1--2--3--|
    text  ---s--x--s-|      x: the answer cannot be used, which is logged

    `seconds`: for one description, retries included. A topic is tried three times, and then no more until it changes.
    `personal_work`: as for `showing`. Raises the errors of `TRANSIENT_ERRORS`, which do not count.
    """
    tries: Counter[tuple[str, int]] = Counter()  # by topic and content

    async def described(topic: Topic) -> str | None:
        known = topic.name, hash(topic.text)
        if tries[known] >= TRIES:
            return None
        try:
            with measure_item(gauge, "describe"), showing(topic.pairs, personal_work):
                written = await describer.summarize_for_kb_index(f"team:{topic.file}", topic.text, seconds)
            if not (summary := make_harmless(written)):
                raise NotDescribed("the description is empty")  # noqa: TRY301 (logged and counted below)
        except TRANSIENT_ERRORS:
            raise
        except Exception as error:
            tries[known] += 1
            bug = None if is_expected(error) else error
            log.warning("topic %s is not described: %s: %s", topic.name, type(error).__name__, error, exc_info=bug)
            return None
        return summary

    return described


# Prefetching: nothing below decides

MOST_AHEAD = 32
"""At most this many pairs after the current one are prefetched."""
WASTED_SHARE = 0.14
"""The largest number of calls that are wasted, or would be by a new topic, for each call needed so far."""


@dataclass(frozen=True, slots=True)
class PrefetchServices:
    """The services that prefetching calls. `curator` and `describer` must ask through `asked.prefetcher`."""

    asked: PrefetchingAsker
    curator: Curator
    describer: Describer
    usage: Usage


@dataclass(eq=False, slots=True)
class _Guess:
    """The prefetched calls about one pair."""

    pair: Pair
    index: Sequence[IndexEntry] = ()
    classified: asyncio.Task[ClassificationResult] | None = None
    follow_up: asyncio.Task[Any] | None = None  # its integration, or the description of its new topic

    @property
    def tasks(self) -> list[asyncio.Task[Any]]:
        return [task for task in (self.classified, self.follow_up) if task is not None]

    def drop(self) -> None:
        for task in self.tasks:
            task.cancel()
        self.classified = self.follow_up = None


@dataclass(eq=False, slots=True)
class Prefetcher:
    """Prefetches the calls for `pairs`, which are decided about in this order; the library is only read.

        pair 1   classify ── integrate ── its turn: decided about
        pair 2   classify ────────────── integrate
        pair 3   classify ── integrate
        pair 4   classify ── a new topic: described ahead; later pairs wait, since the index will change

    When a pair's turn comes it is curated as ever, and a prefetched answer is used if the request has the very same
    words (`services.llm.PrefetchingAsker`): so the library does not depend on the guesses.

    `growth`: the schedule of the library, updated after each decision; `every`: after so many decisions, topics that
    have doubled are described.
    """

    pairs: Sequence[Pair]
    library: TeamLibrary
    services: PrefetchServices
    growth: DescriptionSchedule
    every: int
    describe_seconds: float
    _turn: int = field(default=0, init=False)
    _guesses: dict[int, _Guess] = field(default_factory=dict[int, _Guess], init=False)  # by position in `pairs`
    _calls: int = field(default=0, init=False)
    _stopped: bool = field(default=False, init=False)

    async def turn(self, position: int) -> None:
        """Declare that `pairs[position]` is to be decided about now. Returns once no prefetched call about it runs."""
        self._turn = position
        for passed in [each for each in self._guesses if each < position]:
            self._guesses.pop(passed).drop()
        self._ask_ahead()
        while waited := [task for task in self._guess(position).tasks if not task.done()]:
            await asyncio.wait(waited)
            self._ask_ahead()

    def stop(self) -> None:
        """Begin no more calls, and cancel those that run."""
        self._stopped = True
        for guess in self._guesses.values():
            guess.drop()

    def _guess(self, position: int) -> _Guess:
        if position not in self._guesses:
            self._guesses[position] = _Guess(self.pairs[position])
        return self._guesses[position]

    def _ask_ahead(self) -> None:
        """Begin the calls that are possible now: in order, as far as they are likely enough to be needed."""
        if self._stopped:
            return
        index = self.library.index()
        for guess in self._guesses.values():
            if guess.classified is not None and guess.index != index:
                guess.drop()
        joined: dict[str, int] = {}  # topics that earlier pairs go into, and how many
        at_risk = 0
        certain = True  # all earlier pairs have been classified
        for position in range(self._turn, min(self._turn + MOST_AHEAD + 1, len(self.pairs))):
            if position > self._turn and position % self.every == 0 and not (certain and self._nothing_due(joined)):
                break
            guess = self._guess(position)
            if guess.classified is None:
                if not certain and not self._may_risk(at_risk + 1):
                    break
                guess.index = index
                guess.classified = self._begin(self.services.curator.classify(guess.pair, index, self.services.usage))
            at_risk += not certain
            if not certain:
                continue
            topic = _topic_in(guess.classified)
            if topic is None:
                certain = False
            elif topic and not self._begin_follow_up(guess, topic, joined):
                self._drop_from(position + 1)
                break

    def _begin_follow_up(self, guess: _Guess, topic: str, joined: dict[str, int]) -> bool:
        """Begin the call after a pair's classification. Returns False if the index changes with this pair."""
        files = topic_files(self.library.topics, topic)
        if not files:
            if guess.follow_up is None:
                founded = Topic(topic, (guess.pair,))
                guess.follow_up = self._begin(
                    self.services.describer.summarize_for_kb_index(
                        f"team:{founded.file}", founded.text, self.describe_seconds
                    )
                )
            return False
        if files[0] not in joined and guess.follow_up is None:
            existing = self.library.pairs_of_topic(topic)
            others = [each for each in existing if each.conversation_id != guess.pair.conversation_id]
            if others:
                guess.follow_up = self._begin(
                    self.services.curator.integrate(guess.pair, topic, others, self.services.usage)
                )
        joined[files[0]] = joined.get(files[0], 0) + 1
        return True

    def _nothing_due(self, joined: Mapping[str, int]) -> bool:
        """Return True if no topic becomes due for a new description, even if the pairs counted by `joined` join
        theirs.
        """
        topics = self.library.topics
        more = {name: count for first, count in joined.items() for name in files_of(first, topics)}
        return not self.growth.would_be_due(topics, more)

    def _may_risk(self, calls: int) -> bool:
        """Return True if so many calls that a new topic would waste are few enough, beside those wasted already."""
        asked = self.services.asked
        unused = sum(len(guess.tasks) for guess in self._guesses.values())
        wasted = max(0, self._calls - asked.used - unused)
        return calls + wasted <= WASTED_SHARE * asked.asked

    def _begin(self, call: Coroutine[Any, Any, R]) -> asyncio.Task[R]:
        self._calls += 1
        task = asyncio.create_task(call)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        if not task.cancelled():
            task.exception()  # else asyncio would report it, although perhaps nobody needs the answer
            self._ask_ahead()

    def _drop_from(self, position: int) -> None:
        for later in [each for each in self._guesses if each >= position]:
            self._guesses.pop(later).drop()


def _topic_in(classified: asyncio.Task[ClassificationResult]) -> str | None:
    """Return the safe name of the topic, empty for a pair that is left out; None while it is unknown."""
    if not classified.done() or classified.cancelled() or classified.exception() is not None:
        return None
    result = classified.result()
    return "" if result.skip else topic_name(result.topic_name)
