"""Curation of team knowledge, in the background: decide about each conversation in the raw archive, one at a time, file
it under a topic, and describe the topics that change.

    start-up, tick, each capture stored
        │ coalesced: what comes meanwhile causes one more run
    the oldest pair without a decision whose conversation is quiet ── classify ── integrate ── decision and topic sinks
        │ before the next: a topic that is new, or has doubled ── describe ── team index
        │ again, until there is none left
    topics that have changed ── describe ── team index
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Never, TypeVar, cast

import reactivex as rx
from reactivex import Observable
from reactivex import operators as ops

from clock import from_rfc3339, now, rfc3339, run_blocking, utc_clock
from clock.timeouts import Backoff
from dataflow import unfold
from dataflow.metering import Gauge
from dataflow.triggering import coalesce
from model.outcomes import Outcome, OutcomeKind
from model.servers import Servers
from operators.curating import NOT_NOW, TRIES, describing, study
from services.assistant import Curator, Describer
from services.conversations import PersonalWork
from services.llm import Usage
from services.team import Action, Decision, DescriptionSchedule, LibraryUnwritable, Pair, TeamLibrary, Topic
from services.telemetry import current_part, current_people
from sinks.team import write_decision, write_description
from streams.ticks import Tick, ticks


@dataclass(frozen=True, slots=True)
class Described:
    """A topic has a new description."""

    topic: str


Decided = Decision | Described


@dataclass(frozen=True, slots=True)
class CurationServices:
    """The services that curation uses.

    Attributes:
        last_said: when something was last said in the conversation of a message (by id), in seconds since 1970, UTC;
            None: not known. It may be asked from threads.
        personal: gets to know whose texts models are shown; None where nobody can withdraw theirs meanwhile.
    """

    library: TeamLibrary
    curator: Curator
    describer: Describer
    usage: Usage = field(default_factory=Usage)
    gauge: Gauge | None = None
    last_said: Callable[[int], float | None] = lambda _message_id: None
    personal: PersonalWork | None = None


@dataclass(frozen=True, slots=True)
class CurationRules:
    """How curation works.

    Attributes:
        describe_seconds: the limit for one description, retries included.
        to_the_end: whether the end of the captures waits until all of them have a decision, as in a replay. Otherwise
            the work stops there, between two writes, and continues at the next start.
        settle_seconds: how long after its last message a conversation counts as quiet; 0: at once.
    """

    tick_seconds: float = 300.0
    describe_seconds: float = 200.0
    to_the_end: bool = False
    settle_seconds: float = 0.0


T = TypeVar("T")

QUICK_SECONDS = 0.05
"""What is studied or described in less waits for the disk, and not for a model: then files are written for several at
once.
"""

log = logging.getLogger(__name__)


def stored(learned: Observable[Outcome | Pair]) -> Observable[Outcome | Pair]:
    """Filter the results of `streams.captures` for those that are in the archive."""
    return learned.pipe(ops.filter(lambda each: isinstance(each, Pair) or each.result is OutcomeKind.CAPTURED))


def curation(
    captures: Observable[object],
    parts: CurationServices | None,
    rules: CurationRules,
    on_decided: Callable[[Decided], None] | None = None,
) -> Observable[Never]:
    """Decide about every pair in the archive without a decision, and describe the topics that change.

    captures     ---------c--c------|
    on_decided   -d1-d2------d3-d4--|      d1 and d2 were left from the last run; c and c are decided as d3 and d4
    curation     -------------------|

    `captures` says that something was stored, and never waits here. A pair is taken up when its conversation has been
    quiet for `rules.settle_seconds`, at once if its kind does not settle, or when captures end; the oldest of those
    first. While the endpoint or the disk fails, the work pauses, longer each time, then continues where it was. Emits
    nothing.
    """
    if parts is None:
        return cast("Observable[Never]", rx.empty())
    ended = captures.pipe(ops.ignore_elements(), ops.concat(rx.of(None)), ops.share())
    work = CurationQueue(parts, rules)
    # The start counts at once, even if captures end before the loop has had its turn.
    timer = ticks(rules.tick_seconds, idle=work.has_nothing_to_do, wake=captures).pipe(
        ops.skip(1), ops.take_until(ended)
    )
    captured = captures.pipe(ops.do_action(lambda _: work.note_captured()))
    triggers = rx.merge(rx.of(Tick.START), timer, captured).pipe(
        ops.do_action(on_next=lambda _: work.look_again(), on_completed=work.no_more_captures)
    )

    def worked_off(_trigger: object) -> Observable[Decided]:
        work.look_again()
        return unfold(work.next)

    worked = triggers.pipe(coalesce(worked_off), ops.do_action(on_decided))
    done = worked if rules.to_the_end else worked.pipe(ops.take_until(ended))
    return cast("Observable[Never]", done.pipe(ops.ignore_elements()))


def curations(
    captures: Observable[Outcome | Pair],
    servers: Servers[CurationServices | None],
    rules: CurationRules,
    on_decided: Callable[[Decided], None] | None = None,
) -> list[Observable[Never]]:
    """`curation` of what all servers share, then of each that keeps its own; each hears of its own captures, and of
    what came late.
    """

    def is_for(guild_id: int | None) -> Callable[[Outcome | Pair], bool]:
        def belongs(each: Outcome | Pair) -> bool:
            if isinstance(each, Pair):
                return True
            return (each.part.guild_id if each.part.guild_id in servers else None) == guild_id

        return belongs

    return [
        curation(captures.pipe(ops.filter(is_for(guild_id))), parts, rules, on_decided)
        for guild_id, parts in servers.items()
    ]


class CurationQueue:
    """The queue of curation: asked for one decision or description at a time."""

    def __init__(self, parts: CurationServices, rules: CurationRules) -> None:
        self._parts = parts
        self._studied = study(parts.library, parts.curator, parts.usage, parts.gauge, personal=parts.personal)
        self._described = describing(parts.describer, rules.describe_seconds, parts.gauge, parts.personal)
        described = parts.library.described()
        self._growth = DescriptionSchedule(topics=described)
        self._backoff = Backoff()
        self._pause = 0.0  # seconds before anything else is started
        self._hurried = False
        self._pair: Pair | None = None
        self._later: Pair | None = None  # a later capture of its conversation
        # Topics to describe before the next pair, by name; and once no pair is left.
        self._grown = sorted(parts.library.topics.keys() - described.keys())
        self._left: list[Topic] = []
        # Looks are taken in threads, on which the loop does not wait: only one that began after the last reason for a
        # look is up to date. So what is seen, and so what is decided, depends on nothing but the order of events.
        self._reasons, self._looked_for = 1, 0
        self._settle_seconds = rules.settle_seconds
        self._time = utc_clock(asyncio.get_running_loop())  # asked from threads as well
        self._stirred = asyncio.Event()
        self._fruitless = 0  # runs in a row that found nothing they could do

    def has_nothing_to_do(self) -> bool:
        """True if looking again is of no use until something is stored: all is done, or was tried often enough."""
        return self._fruitless >= TRIES

    def note_captured(self) -> None:
        """Something was stored: look for work again at the next tick."""
        self._fruitless = 0

    def look_again(self) -> None:
        """Something may have come in since the last look."""
        self._outdate()
        self._stirred.set()

    def no_more_captures(self) -> None:
        """No more captures will come: treat every conversation as finished, and leave what fails to the next start."""
        self._hurried = True
        self.look_again()

    async def next(self) -> Decided | None:
        """Decide about the oldest pair that is left, or describe a topic: while there are pairs, one that is new or has
        doubled; else any that has changed. None: all is done.
        """
        done = await self._with_retries(self._next)
        self._fruitless = self._fruitless + 1 if done is None else 0
        return done

    async def _next(self) -> Decided | None:
        while True:
            self._stirred.clear()
            if done := await self._describe_grown() or await self._decide() or await self._describe_changed():
                return done
            if not await self._waited():
                return None

    async def _waited(self) -> bool:
        """Wait for the next conversation to be quiet, or for more to come in; False: there is none."""
        soonest = min(map(self._quiet_at, self._parts.library.waiting()), default=None)
        if soonest is None or self._hurried:
            return False
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, soonest - self._time())):
                await self._stirred.wait()
        self._outdate()
        return True

    def _quiet_at(self, pair: Pair) -> float:
        captured = min(from_rfc3339(pair.said_at), from_rfc3339(pair.timestamp))
        return max(captured, self._parts.last_said(pair.message_ids[-1]) or captured) + self._settle_seconds

    def _is_ready(self, pair: Pair) -> bool:
        """Return whether its conversation is quiet, or need not be; or has a later capture, so that this one is not
        worth a call.
        """
        if self._hurried or not self._settle_seconds or not pair.kind.settles:
            return True
        return self._time() >= self._quiet_at(pair) or self._parts.library.later(pair) is not None

    async def _decide(self) -> Decision | None:
        if not self._is_up_to_date:
            await run_blocking(self._look)
        pair, later = self._pair, self._later
        if pair is None:
            return None
        decision, quick = await self._quickly(self._studied(pair)) if later is None else self._superseded(pair, later)
        self._outdate()
        put_off = quick and decision.action is not Action.FAILED
        then = self._look_if_possible
        changed = await write_decision(self._parts.library, decision, pair, then=then, put_off=put_off)
        self._growth.note(self._parts.library.topics, changed)
        self._grown += [topic.name for topic in self._growth.due()]
        if decision.action is Action.FAILED:
            # Perhaps every pair fails now (a key was withdrawn): the archive must not be used up in a minute.
            self._pause = self._backoff.pause()
        else:
            self._backoff.reset()
        return decision

    async def _quickly(self, work: Coroutine[Any, Any, T]) -> tuple[T, bool]:
        """Await `work`; also return whether it took less than `QUICK_SECONDS`. If it takes longer, write meanwhile what
        was put off.
        """
        task = asyncio.create_task(work)
        try:
            await asyncio.wait({task}, timeout=QUICK_SECONDS)
            quick = task.done() and task.exception() is None
            if not quick and self._parts.library.behind:
                with suppress(LibraryUnwritable):  # the next call of the library will raise it
                    await run_blocking(self._parts.library.flush)
            return await task, quick
        finally:
            task.cancel()

    def _superseded(self, pair: Pair, later: Pair) -> tuple[Decision, bool]:
        """Readers use the last capture of a conversation, so an earlier one needs no call (Pitfall 72)."""
        reason = f"{later.id} is a later capture of the same conversation"
        return Decision(pair.id, rfc3339(now()), Action.SKIPPED, self._parts.curator.by, reason=reason), True

    async def _describe_grown(self) -> Described | None:
        while self._grown:
            topic = self._parts.library.topics.get(self._grown[0])
            lacks = topic is not None and await run_blocking(self._parts.library.lacking, [topic])
            described = await self._describe(topic) if topic is not None and lacks else None
            self._grown.pop(0)
            if described is not None:
                return described
        return None

    async def _describe_changed(self) -> Described | None:
        if not self._is_up_to_date or self._pair is not None:
            self._left = list(await run_blocking(self._parts.library.undescribed))
        while self._left:
            # As it is now: somebody may have been forgotten since.
            topic = self._parts.library.topics.get(self._left.pop(0).name)
            if topic is not None and (described := await self._describe(topic)) is not None:
                return described
        return None

    async def _describe(self, topic: Topic) -> Described | None:
        try:
            summary, quick = await self._quickly(self._described(topic))
        finally:
            self._outdate()
        if summary is None:
            return None
        key = self._parts.describer.key
        then = self._look_if_possible
        await write_description(self._parts.library, topic, summary, key, then=then, put_off=quick)
        self._backoff.reset()
        return Described(topic.name)

    @property
    def _is_up_to_date(self) -> bool:
        return self._looked_for == self._reasons

    def _outdate(self) -> None:
        self._reasons += 1

    def _look(self) -> None:
        """See what there is to do. Blocking."""
        library, reasons = self._parts.library, self._reasons
        self._pair = library.undecided(self._is_ready)
        self._later = None if self._pair is None else library.later(self._pair)
        self._left = [] if self._pair is not None else list(library.undescribed())
        self._looked_for = reasons

    def _look_if_possible(self) -> None:
        """`_look`, while in the thread of a write anyway: another trip to the disk would cost as much again."""
        with suppress(OSError, LibraryUnwritable):  # the next `_look` will raise it
            self._look()

    async def _with_retries(self, work: Callable[[], Coroutine[Any, Any, T | None]]) -> T | None:
        current_part.set(None)  # the log context is not that of the capture which triggered this
        current_people.set(None)
        while True:
            if self._pause:
                await asyncio.sleep(self._pause)
                self._pause = 0.0
            try:
                return await work()
            except NOT_NOW as error:
                self._outdate()  # somebody may be forgotten before it continues
                why = f"{type(error).__name__}: {error}"
                if self._hurried:
                    log.warning("team knowledge: %s; the rest is left to the next start", why)
                    return None
                self._pause = self._backoff.pause(getattr(error, "retry_after", None) or 0.0)
                log.warning("team knowledge: %s; continues in %g s", why, self._pause)
