"""Team knowledge that sorts itself: from the raw archive to topics, one conversation at a time.

start-up, tick, each capture stored
        │ coalesced: what comes meanwhile causes one more run
    the oldest pair without a decision ── classify ── integrate ── decision and topic sinks
        │ again, until there is none left
    topics that have changed ── describe ── team index
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Never, TypeVar, cast

import reactivex as rx
from reactivex import Observable
from reactivex import operators as ops

from clock import run_blocking
from clock.backoff import Backoff
from model.outcomes import Outcome, OutcomeKind
from operators import unfold
from operators.coalesce import coalesce
from operators.in_flight import in_flight
from operators.step import Gauge, expected
from operators.study import NOT_NOW, TRIES, study
from services.assistant import Curator, Describer, NotDescribed
from services.knowledge import harmless
from services.llm import Usage
from services.team import Action, Decision, LibraryUnwritable, Pair, TeamLibrary, Topic
from services.telemetry import about
from sinks.topics import Topics
from streams.ticks import Tick, ticks

T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Described:
    """A topic has a new description."""

    topic: str


Decided = Decision | Described


@dataclass(frozen=True, slots=True)
class CurationParts:
    """Whom the work talks to."""

    library: TeamLibrary
    curator: Curator
    describer: Describer
    usage: Usage = field(default_factory=Usage)
    gauge: Gauge | None = None


@dataclass(frozen=True, slots=True)
class CurationRules:
    tick_seconds: float = 300.0
    describe_seconds: float = 200.0
    """How long one description may take, repeated attempts included."""
    to_the_end: bool = False
    """Whether the end of the captures waits until all of them are decided about, as in a replay. Else the work is cut
    off there, between two writes, and goes on at the next start.
    """


def stored(learned: Observable[Outcome | Pair]) -> Observable[Outcome | Pair]:
    """Of what `streams.captures` gives, that which is in the archive now."""
    return learned.pipe(ops.filter(lambda each: isinstance(each, Pair) or each.result is OutcomeKind.CAPTURED))


def curation(
    captures: Observable[object],
    parts: CurationParts | None,
    rules: CurationRules,
    tell: Callable[[Decided], None] | None = None,
) -> Observable[Never]:
    """Decide about every pair that is in the archive and has no decision, and describe what changes by that.

    captures   ---------c--c------|
    told       -d1-d2------d3-d4--|      d1 and d2 were left from the last run; c and c are decided as d3 and d4
    curation   -------------------|

    `captures` says that something was stored, and never waits for anything here. While the endpoint or the disk is
    out of order the work rests, for longer and longer, and then goes on where it was. Emits nothing: whoever wants to
    hear of it is told.
    """
    if parts is None:
        return cast("Observable[Never]", rx.empty())
    ended = captures.pipe(ops.ignore_elements(), ops.concat(rx.of(None)), ops.share())
    work = Work(parts, rules)
    # The start counts at once, also where captures end before the loop has had its turn.
    timer = ticks(rules.tick_seconds).pipe(ops.skip(1), ops.take_until(ended))
    triggers = rx.merge(rx.of(Tick.START), timer, captures).pipe(ops.do_action(on_completed=work.hurry))

    def worked_off(_trigger: object) -> Observable[Decided]:
        work.look_anew()
        return unfold(work.next)

    worked = triggers.pipe(coalesce(worked_off), ops.do_action(tell))
    done = worked if rules.to_the_end else worked.pipe(ops.take_until(ended))
    return cast("Observable[Never]", done.pipe(ops.ignore_elements()))


class Work:
    """What is left to do, asked for one by one."""

    def __init__(self, parts: CurationParts, rules: CurationRules) -> None:
        self._parts = parts
        self._describe_seconds = rules.describe_seconds
        self._topics = Topics(parts.library)
        self._studied = study(parts.library, parts.curator, parts.usage, parts.gauge)
        self._backoff = Backoff()
        self._rest = 0.0
        """Seconds before anything else is begun."""
        self._tries: Counter[tuple[str, int]] = Counter()
        """By topic and content."""
        self._hurried = False
        self._pair: Pair | None = None
        self._left: list[Topic] = []
        """Topics to describe, where no pair is left."""
        self._looked = False
        """Whether these two tell what there is to do."""

    def look_anew(self) -> None:
        """Something may have come in that was not there at the last look."""
        self._looked = False

    def hurry(self) -> None:
        """Nothing more will come: what cannot be done now is left to the next start."""
        self._hurried = True

    async def next(self) -> Decided | None:
        """Decide about the oldest pair that is left, or else describe a topic that has changed; None: all is done."""
        return await self._patiently(self._next)

    async def description(self) -> Described | None:
        """Describe a topic that has changed; None: there is none."""
        return await self._patiently(self._describe)

    async def _next(self) -> Decided | None:
        return await self._decide() or await self._describe()

    async def _decide(self) -> Decision | None:
        if not self._looked:
            await self._find_work()
        pair = self._pair
        if pair is None:
            return None
        decision = await self._studied(pair)
        self._looked = False
        await self._topics.keep(decision, pair, then=self._look_if_possible)
        if decision.action is Action.FAILED:
            # Perhaps nothing works any more, a key that was withdrawn: then the archive is not used up in a minute.
            self._rest = self._backoff.pause()
        else:
            self._backoff.reset()
        return decision

    async def _describe(self) -> Described | None:
        parts = self._parts
        if not self._looked or self._pair is not None:
            self._left = list(await run_blocking(parts.library.undescribed))
        while self._left:
            topic = self._left.pop(0)
            known = topic.name, hash(topic.text)
            if self._tries[known] >= TRIES:
                continue
            try:
                summary = await self._summary(topic)
            except NOT_NOW:
                self._looked = False
                raise
            except Exception as error:
                self._tries[known] += 1
                bug = None if expected(error) else error
                log.warning("topic %s is not described: %s: %s", topic.name, type(error).__name__, error, exc_info=bug)
                continue
            self._looked = False
            await self._topics.describe(topic, summary, parts.describer.key, then=self._look_if_possible)
            self._backoff.reset()
            return Described(topic.name)
        return None

    async def _find_work(self) -> None:
        self._pair = self._parts.library.at_hand()
        if self._pair is None:
            await run_blocking(self._look)

    def _look(self) -> None:
        """See what there is to do. Blocking."""
        library = self._parts.library
        self._pair = library.undecided()
        self._left = [] if self._pair is not None else list(library.undescribed())
        self._looked = True

    def _look_if_possible(self) -> None:
        """For the end of a trip to the disk, as another trip would cost as much again. Blocking."""
        with suppress(OSError, LibraryUnwritable):  # the next one who needs to know will be told
            self._look()

    async def _summary(self, topic: Topic) -> str:
        parts = self._parts
        with in_flight(parts.gauge, "describe"):
            written = await parts.describer.summarize_for_kb_index(
                f"team:{topic.file}", topic.text, self._describe_seconds
            )
        summary = harmless(written)
        if not summary:
            raise NotDescribed("the description is empty")
        return summary

    async def _patiently(self, work: Callable[[], Coroutine[Any, Any, T | None]]) -> T | None:
        about.set(None)  # not about the part whose capture has set this off
        while True:
            if self._rest:
                await asyncio.sleep(self._rest)
                self._rest = 0.0
            try:
                return await work()
            except NOT_NOW as error:
                told = f"{type(error).__name__}: {error}"
                if self._hurried:
                    log.warning("team knowledge: %s; what is left is taken up at the next start", told)
                    return None
                self._rest = self._backoff.pause(getattr(error, "retry_after", None) or 0.0)
                log.warning("team knowledge: %s; goes on in %g s", told, self._rest)
