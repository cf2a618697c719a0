"""Prefetches the model calls about pairs that a rebuild curates next. Nothing here decides."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from model.source_ids import topic_id
from services.assistant import ClassificationResult, Curator, Describer
from services.knowledge import IndexEntry, files_of, topic_name
from services.llm import PrefetchingAsker, Usage
from services.team import DescriptionSchedule, Pair, TeamLibrary, Topic, topic_files

R = TypeVar("R")

MAX_AHEAD = 32
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
        for position in range(self._turn, min(self._turn + MAX_AHEAD + 1, len(self.pairs))):
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
                        topic_id(founded.name), founded.text, self.describe_seconds
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
