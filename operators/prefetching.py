"""Prefetch the model calls for pairs whose turn has not come.

    pair 1   classify ── integrate ── its turn: decided about
    pair 2   classify ────────────── integrate
    pair 3   classify ── integrate
    pair 4   classify ── a new topic: described ahead; what follows waits, since the index will not be this one

Nothing here decides. When a pair's turn comes it is studied as ever, and an answer asked ahead counts if it was asked
for with the very same words (`services.llm.PrefetchingAsker`): so the library does not depend on what was guessed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from services.assistant import ClassificationResult, Curator, Describer
from services.knowledge import IndexEntry, files_of, topic_name
from services.llm import PrefetchingAsker, Usage
from services.team import DescriptionSchedule, Pair, TeamLibrary, Topic, topic_files

R = TypeVar("R")

MOST_AHEAD = 32
"""Pairs beyond the one whose turn it is."""
WASTED_SHARE = 0.14
"""The largest share of wasted calls: calls in vain, and those that a new topic would make so, by the calls needed so
far.
"""


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
    further: asyncio.Task[Any] | None = None  # its integration, or the description of its new topic

    @property
    def tasks(self) -> list[asyncio.Task[Any]]:
        return [task for task in (self.classified, self.further) if task is not None]

    def drop(self) -> None:
        for task in self.tasks:
            task.cancel()
        self.classified = self.further = None


@dataclass(eq=False, slots=True)
class Prefetcher:
    """Prefetches the calls for `pairs`, which are decided about in this order; the library is only read.

    `growth`: that of the library, noted after each decision; `every`: so many decisions apart topics are described
    that have doubled.
    """

    pairs: Sequence[Pair]
    library: TeamLibrary
    guesses: PrefetchServices
    growth: DescriptionSchedule
    every: int
    describe_seconds: float
    _turn: int = field(default=0, init=False)
    _made: dict[int, _Guess] = field(default_factory=dict[int, _Guess], init=False)  # by place in `pairs`
    _begun: int = field(default=0, init=False)  # calls
    _stopped: bool = field(default=False, init=False)

    async def turn(self, place: int) -> None:
        """Declare that `pairs[place]` is to be decided about now. Returns once no prefetched call about it runs."""
        self._turn = place
        for passed in [each for each in self._made if each < place]:
            self._made.pop(passed).drop()
        self._look()
        while waited := [task for task in self._guess(place).tasks if not task.done()]:
            await asyncio.wait(waited)
            self._look()

    def stop(self) -> None:
        """Ask nothing more, and cancel what is under way."""
        self._stopped = True
        for guess in self._made.values():
            guess.drop()

    def _guess(self, place: int) -> _Guess:
        if place not in self._made:
            self._made[place] = _Guess(self.pairs[place])
        return self._made[place]

    def _look(self) -> None:
        """Ask what can be asked now: in order, as far as it is likely enough to be needed."""
        if self._stopped:
            return
        index = self.library.index()
        for guess in self._made.values():
            if guess.classified is not None and guess.index != index:
                guess.drop()
        joined: dict[str, int] = {}  # topics that earlier pairs go into, and how many
        at_risk = 0
        certain = True  # what is before has been classified
        for place in range(self._turn, min(self._turn + MOST_AHEAD + 1, len(self.pairs))):
            if place > self._turn and place % self.every == 0 and not (certain and self._nothing_due(joined)):
                break
            guess = self._guess(place)
            if guess.classified is None:
                if not certain and not self._may_risk(at_risk + 1):
                    break
                guess.index = index
                guess.classified = self._begin(self.guesses.curator.classify(guess.pair, index, self.guesses.usage))
            at_risk += not certain
            if not certain:
                continue
            topic = _topic_in(guess.classified)
            if topic is None:
                certain = False
            elif topic and not self._follow(guess, topic, joined):
                self._drop_from(place + 1)
                break

    def _follow(self, guess: _Guess, topic: str, joined: dict[str, int]) -> bool:
        """Ask what comes after a pair's classification. False: the index changes with this pair."""
        files = topic_files(self.library.topics, topic)
        if not files:
            if guess.further is None:
                founded = Topic(topic, (guess.pair,))
                guess.further = self._begin(
                    self.guesses.describer.summarize_for_kb_index(
                        f"team:{founded.file}", founded.text, self.describe_seconds
                    )
                )
            return False
        if files[0] not in joined and guess.further is None:
            held = self.library.pairs_of_topic(topic)
            others = [each for each in held if each.conversation_id != guess.pair.conversation_id]
            if others:
                guess.further = self._begin(
                    self.guesses.curator.integrate(guess.pair, topic, others, self.guesses.usage)
                )
        joined[files[0]] = joined.get(files[0], 0) + 1
        return True

    def _nothing_due(self, joined: Mapping[str, int]) -> bool:
        """True if no topic becomes due for a new description, even if all those pairs join theirs."""
        topics = self.library.topics
        more = {name: count for first, count in joined.items() for name in files_of(first, topics)}
        return not self.growth.would_be_due(topics, more)

    def _may_risk(self, calls: int) -> bool:
        """True if this many calls may be running or answered that a new topic would make useless."""
        asked = self.guesses.asked
        held = sum(len(guess.tasks) for guess in self._made.values())
        wasted = max(0, self._begun - asked.used - held)
        return calls + wasted <= WASTED_SHARE * asked.asked

    def _begin(self, call: Coroutine[Any, Any, R]) -> asyncio.Task[R]:
        self._begun += 1
        task = asyncio.create_task(call)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        if not task.cancelled():
            task.exception()  # looked at, or asyncio would report it: it may be that nobody needs the answer
            self._look()

    def _drop_from(self, place: int) -> None:
        for later in [each for each in self._made if each >= place]:
            self._made.pop(later).drop()


def _topic_in(classified: asyncio.Task[ClassificationResult]) -> str | None:
    """The safe name of the topic, empty for a pair that is left out; None while it is unknown."""
    if not classified.done() or classified.cancelled() or classified.exception() is not None:
        return None
    result = classified.result()
    return "" if result.skip else topic_name(result.topic_name)
