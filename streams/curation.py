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
from collections.abc import Callable, Coroutine, Iterable
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
from operators.step import Gauge, expected, in_flight
from operators.study import NOT_NOW, TRIES, study
from operators.triggering import coalesce
from services.assistant import Curator, Describer, NotDescribed
from services.knowledge import harmless
from services.llm import Rejected, UnknownRequest, Usage
from services.team import Action, Decision, LibraryUnwritable, Pair, Task, TeamLibrary, Topic, rebuilding
from services.telemetry import about
from sinks import topics
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
    """The services that curation uses."""

    library: TeamLibrary
    curator: Curator
    describer: Describer
    usage: Usage = field(default_factory=Usage)
    gauge: Gauge | None = None


@dataclass(frozen=True, slots=True)
class CurationRules:
    """How curation works.

    Attributes:
        describe_seconds: the limit for one description, retries included.
        to_the_end: whether the end of the captures waits until all of them have a decision, as in a replay. Otherwise
            the work stops there, between two writes, and continues at the next start.
    """

    tick_seconds: float = 300.0
    describe_seconds: float = 200.0
    to_the_end: bool = False


def stored(learned: Observable[Outcome | Pair]) -> Observable[Outcome | Pair]:
    """Those results of `streams.captures` that are in the archive now."""
    return learned.pipe(ops.filter(lambda each: isinstance(each, Pair) or each.result is OutcomeKind.CAPTURED))


def curation(
    captures: Observable[object],
    parts: CurationParts | None,
    rules: CurationRules,
    on_decided: Callable[[Decided], None] | None = None,
) -> Observable[Never]:
    """Decide about every pair in the archive without a decision, and describe the topics that change.

    captures     ---------c--c------|
    on_decided   -d1-d2------d3-d4--|      d1 and d2 were left from the last run; c and c are decided as d3 and d4
    curation     -------------------|

    `captures` says that something was stored, and never waits here. While the endpoint or the disk fails, the work
    pauses, longer each time, then continues where it was. Emits nothing.
    """
    if parts is None:
        return cast("Observable[Never]", rx.empty())
    ended = captures.pipe(ops.ignore_elements(), ops.concat(rx.of(None)), ops.share())
    work = Work(parts, rules)
    # The start counts at once, even if captures end before the loop has had its turn.
    timer = ticks(rules.tick_seconds).pipe(ops.skip(1), ops.take_until(ended))
    triggers = rx.merge(rx.of(Tick.START), timer, captures).pipe(ops.do_action(on_completed=work.hurry))

    def worked_off(_trigger: object) -> Observable[Decided]:
        work.look_again()
        return unfold(work.next)

    worked = triggers.pipe(coalesce(worked_off), ops.do_action(on_decided))
    done = worked if rules.to_the_end else worked.pipe(ops.take_until(ended))
    return cast("Observable[Never]", done.pipe(ops.ignore_elements()))


class Work:
    """What is left to do, asked for one by one."""

    def __init__(self, parts: CurationParts, rules: CurationRules) -> None:
        self._parts = parts
        self._describe_seconds = rules.describe_seconds
        self._studied = study(parts.library, parts.curator, parts.usage, parts.gauge)
        self._backoff = Backoff()
        self._pause = 0.0  # seconds before anything else is started
        self._tries: Counter[tuple[str, int]] = Counter()  # by topic and content
        self._hurried = False
        self._pair: Pair | None = None
        self._left: list[Topic] = []  # topics to describe once no pair is left
        self._looked = False  # whether these two are up to date

    def look_again(self) -> None:
        """Something may have come in since the last look."""
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
            self._pair = self._parts.library.peek()
            if self._pair is None:
                await run_blocking(self._look)
        pair = self._pair
        if pair is None:
            return None
        decision = await self._studied(pair)
        self._looked = False
        await topics.keep(self._parts.library, decision, pair, then=self._look_if_possible)
        if decision.action is Action.FAILED:
            # Perhaps every pair fails now (a key was withdrawn): the archive must not be used up in a minute.
            self._pause = self._backoff.pause()
        else:
            self._backoff.reset()
        return decision

    async def _describe(self) -> Described | None:
        library, describer = self._parts.library, self._parts.describer
        if not self._looked or self._pair is not None:
            self._left = list(await run_blocking(library.undescribed))
        while self._left:
            topic = self._left.pop(0)
            known = topic.name, hash(topic.text)
            if self._tries[known] >= TRIES:
                continue
            try:
                with in_flight(self._parts.gauge, "describe"):
                    written = await describer.summarize_for_kb_index(
                        f"team:{topic.file}", topic.text, self._describe_seconds
                    )
                if not (summary := harmless(written)):
                    raise NotDescribed("the description is empty")  # noqa: TRY301 (logged and counted below)
            except NOT_NOW:
                self._looked = False
                raise
            except Exception as error:
                self._tries[known] += 1
                bug = None if expected(error) else error
                log.warning("topic %s is not described: %s: %s", topic.name, type(error).__name__, error, exc_info=bug)
                continue
            self._looked = False
            await topics.describe(library, topic, summary, describer.key, then=self._look_if_possible)
            self._backoff.reset()
            return Described(topic.name)
        return None

    def _look(self) -> None:
        """See what there is to do. Blocking."""
        library = self._parts.library
        self._pair = library.undecided()
        self._left = [] if self._pair is not None else list(library.undescribed())
        self._looked = True

    def _look_if_possible(self) -> None:
        """`_look`, while in the thread of a write anyway: another trip to the disk would cost as much again."""
        with suppress(OSError, LibraryUnwritable):  # the next `_look` will raise it
            self._look()

    async def _patiently(self, work: Callable[[], Coroutine[Any, Any, T | None]]) -> T | None:
        about.set(None)  # the log context is not that of the capture which triggered this
        while True:
            if self._pause:
                await asyncio.sleep(self._pause)
                self._pause = 0.0
            try:
                return await work()
            except NOT_NOW as error:
                why = f"{type(error).__name__}: {error}"
                if self._hurried:
                    log.warning("team knowledge: %s; the rest is left to the next start", why)
                    return None
                self._pause = self._backoff.pause(getattr(error, "retry_after", None) or 0.0)
                log.warning("team knowledge: %s; continues in %g s", why, self._pause)


ATTEMPTS = 3  # for a pair while the endpoint fails, each with its own retries, before the work is given up
REFUSED_IN_A_ROW = 3  # so many refused pairs are no pair's fault: it is the key, the credit or the model


class GivenUp(Exception):
    """The work cannot go on: one readable line that says why. What has been decided stays decided."""


def regeneration(tasks: Iterable[Task], parts: CurationParts, rules: CurationRules) -> Observable[Decision | Described]:
    """Tier 2 made again from tier 1: decide about each pair, then describe the topics, in the library `parts.library`.

    tasks         --t1--t2--t3--|         the fullest capture of each conversation, in order of `said_at`
    decisions     ---d1--d2--d3--|
    descriptions  ----------------s1--s2--|

    Ends with `GivenUp` if the model or the disk fails. A topic that cannot be described keeps its stand-in, and is left
    to the bot.
    """
    work = Work(parts, rules)
    work.hurry()
    return rx.concat(unfold(rebuilt(tasks, parts)), unfold(work.description))


def rebuilt(tasks: Iterable[Task], parts: CurationParts) -> Callable[[], Coroutine[Any, Any, Decision | None]]:
    """A function that decides about the next pair, and gives None if there is none. Raises GivenUp."""
    left = iter(tasks)
    studied = study(parts.library, parts.curator, parts.usage, parts.gauge)
    refused_in_a_row = 0

    async def following() -> Decision | None:
        nonlocal refused_in_a_row
        task = next(left, None)
        if task is None:
            return None
        decision = await _patiently(studied, task.pair)
        try:
            await topics.keep(parts.library, decision, task.pair)
            if (kept := rebuilding.keeping(task, decision)) is not None:
                await topics.keep(parts.library, kept, task.pair)
        except (LibraryUnwritable, OSError) as error:
            raise GivenUp(str(error)) from error
        refused = decision.action is Action.FAILED and decision.reason.startswith(f"{Rejected.__name__}:")
        refused_in_a_row = refused_in_a_row + 1 if refused else 0
        if refused_in_a_row >= REFUSED_IN_A_ROW:
            raise GivenUp(f"{refused_in_a_row} conversations in a row were refused; {decision.reason}")
        return decision

    return following


async def _patiently(studied: Callable[[Pair], Coroutine[Any, Any, Decision]], pair: Pair) -> Decision:
    backoff, failures = Backoff(), 0
    while True:
        try:
            return await studied(pair)
        except UnknownRequest as error:  # waiting does not change the recording
            raise GivenUp(str(error)) from error
        except NOT_NOW as error:
            failures += 1
            if failures == ATTEMPTS:
                raise GivenUp(f"{type(error).__name__}: {error}") from error
            seconds = backoff.pause(getattr(error, "retry_after", None) or 0.0)
            log.warning("%s: %s; tried again in %g s", type(error).__name__, error, seconds)
            await asyncio.sleep(seconds)
