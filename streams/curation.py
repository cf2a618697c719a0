"""Curation of team knowledge, in the background: decide about each conversation in the raw archive, one at a time, file
it under a topic, and describe the topics that change.

    start-up, tick, each capture stored
        │ coalesced: triggers meanwhile cause one more run
    the oldest pair without a decision whose conversation is quiet ── classify ── integrate ── decision and topic sinks
        │ before the next pair: a topic that is new, or has doubled ── describe ── team index
        │ again, until no pair is left
    topics that have changed ── describe ── team index
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Never, TypeVar, cast

import reactivex as rx
from reactivex import Observable
from reactivex import operators as ops
from reactivex.subject import Subject

from clock import DAY, from_rfc3339, now, rfc3339, run_blocking, utc_clock
from clock.timeouts import Backoff
from dataflow import unfold
from dataflow.metering import Gauge
from dataflow.triggering import coalesce
from model.bounded import RateLimit
from model.outcomes import Outcome, OutcomeKind
from model.servers import Servers
from operators.curating import MAX_TRIES, TRANSIENT_ERRORS, curate, describe_topics
from services.assistant import Curator, Describer
from services.conversations import PersonalWork
from services.llm import Usage
from services.team import (
    WORDLESS,
    Action,
    Actor,
    Decision,
    DescriptionSchedule,
    LibraryUnwritable,
    Pair,
    TeamLibrary,
    Topic,
    has_team_changed,
    has_team_text,
    may_repeat,
    skipped_for,
)
from services.telemetry import current_part, current_people
from sinks.team import write_decision, write_description
from streams.ticks import Tick, ticks


@dataclass(frozen=True, slots=True)
class NewDescription:
    """A topic has a new description."""

    topic: str


CurationResult = Decision | NewDescription


@dataclass(frozen=True, slots=True)
class CurationServices:
    """The services that curation uses.

    Attributes:
        last_said: gives, for a message's id, the time of the last message of its conversation, in seconds since 1970,
            UTC; None: not known. Safe to call from threads.
        is_private: whether the place of a conversation is no longer public. Blocking.
        personal_work: gets to know whose texts a model reads; None: nobody can withdraw theirs meanwhile.
        taught: emits pairs that were stored here without a message on Discord.
        is_spent: returns True while the tokens of the day are used up, so that no model is asked; None: there is no
            limit. May wait for other processes.
    """

    library: TeamLibrary
    curator: Curator
    describer: Describer
    usage: Usage = field(default_factory=Usage)
    gauge: Gauge | None = None
    last_said: Callable[[int], float | None] = lambda _message_id: None
    is_private: Callable[[Pair], bool] = lambda _pair: False
    personal_work: PersonalWork | None = None
    taught: Subject[Pair] = field(default_factory=Subject[Pair])
    is_spent: Callable[[], Coroutine[Any, Any, bool]] | None = None

    @property
    def asks_model(self) -> bool:
        return self.curator.actor is Actor.LLM


@dataclass(frozen=True, slots=True)
class CurationRules:
    """How curation works.

    Attributes:
        describe_seconds: the limit for one description, retries included.
        finish_all: whether curation goes on after the last capture until all have a decision, as in a replay. Otherwise
            the work stops then, between two writes, and continues at the next start.
        settle_seconds: how long after its last message a conversation counts as quiet; 0: at once.
    """

    tick_seconds: float = 300.0
    describe_seconds: float = 200.0
    finish_all: bool = False
    settle_seconds: float = 0.0


T = TypeVar("T")

SPENT_SECONDS = 300.0
"""How often it is looked whether a new day of the budget has begun."""
QUICK_SECONDS = 0.05
"""A pair or topic that takes less asks no model, and waits for the disk only: then several are written together."""

log = logging.getLogger(__name__)


def only_stored(results: Observable[Outcome | Pair]) -> Observable[Outcome | Pair]:
    """Filter the results of `streams.captures` for those that are in the archive."""
    return results.pipe(ops.filter(lambda each: isinstance(each, Pair) or each.result is OutcomeKind.CAPTURED))


def curation(
    captures: Observable[object],
    services: CurationServices | None,
    rules: CurationRules,
    on_decided: Callable[[CurationResult], None] | None = None,
) -> Observable[Never]:
    """Decide about every pair in the archive without a decision, and describe the topics that change.

    captures     ---------c--c------|
    on_decided   -d1-d2------d3-d4--|      d1 and d2 were left from the last run; c and c are decided as d3 and d4
    curation     -------------------|

    `captures` and `services.taught` emit when something was stored, and never wait here. A pair is taken up when its
    conversation has been quiet for `rules.settle_seconds`, at once if its kind does not settle, or when captures end;
    the oldest first. While the endpoint or the disk fails, the work pauses, longer each time, then continues where it
    was. Emits nothing.
    """
    if services is None:
        return cast("Observable[Never]", rx.empty())
    ended = captures.pipe(ops.ignore_elements(), ops.concat(rx.of(None)), ops.share())
    stored = rx.merge(captures, services.taught.pipe(ops.take_until(ended)))
    queue = CurationQueue(services, rules)
    # Its first tick is replaced by `Tick.START`, which comes even if captures have ended.
    timer = ticks(rules.tick_seconds, idle=queue.has_nothing_to_do, wake=stored).pipe(
        ops.skip(1), ops.take_until(ended)
    )
    captured = stored.pipe(ops.do_action(lambda _: queue.note_captured()))
    triggers = rx.merge(rx.of(Tick.START), timer, captured).pipe(
        ops.do_action(on_next=lambda _: queue.look_again(), on_completed=queue.no_more_captures)
    )

    def run(_trigger: object) -> Observable[CurationResult]:
        queue.look_again()
        return unfold(queue.next)

    decided = triggers.pipe(coalesce(run), ops.do_action(on_decided))
    until_end = decided if rules.finish_all else decided.pipe(ops.take_until(ended))
    return cast("Observable[Never]", until_end.pipe(ops.ignore_elements()))


def curations(
    captures: Observable[Outcome | Pair],
    servers: Servers[CurationServices | None],
    rules: CurationRules,
    on_decided: Callable[[CurationResult], None] | None = None,
) -> list[Observable[Never]]:
    """Make one `curation` for the servers that share a library, and one for each server with its own. Each gets the
    outcomes of its own captures; and, as a mere trigger, each pair of any server that was stored after it had waited
    for its images: a pair does not name its server.
    """

    def is_for(guild_id: int | None) -> Callable[[Outcome | Pair], bool]:
        def belongs(each: Outcome | Pair) -> bool:
            if isinstance(each, Pair):
                return True
            return servers.owner_of(each.part.guild_id) == guild_id

        return belongs

    return [
        curation(captures.pipe(ops.filter(is_for(guild_id))), services, rules, on_decided)
        for guild_id, services in servers.items()
    ]


class CurationQueue:
    """The queue of curation: asked for one decision or description at a time."""

    def __init__(self, services: CurationServices, rules: CurationRules) -> None:
        s = self._services = services
        self._curate = curate(s.library, s.curator, s.usage, s.gauge, personal_work=s.personal_work)
        self._describe_topic = describe_topics(s.describer, rules.describe_seconds, s.gauge, s.personal_work)
        described = s.library.described_topics()
        self._schedule = DescriptionSchedule(topics=described)
        self._backoff = Backoff()
        self._pause = 0.0  # seconds before the next piece of work
        self._captures_ended = False
        self._pair: Pair | None = None
        self._later: str | None = None  # the id of a later capture of its conversation
        self._private = False  # whether its place is no longer public
        # By pair that differs from an earlier capture by doubts or taken-out words alone: the decision about that one;
        # None: there is none, so the curator is asked.
        self._repeated: dict[Decimal, Decision | None] = {}
        # A filed pair of which something was edited or deleted, and its later capture.
        self._changed_pair: tuple[Pair, Pair] | None = None
        self._grown = sorted(s.library.topics.keys() - described.keys())  # to describe before the next pair
        self._undescribed: list[Topic] = []  # to describe once no pair is left
        # Topics out of which words were taken, and when they were described for that: users can do it again and again.
        self._trimmed = set[str]()
        self._trimmed_described = RateLimit(1, DAY)
        # `_look` runs in threads, for which the loop does not wait: a look is up to date only if nothing has changed
        # since it began. So decisions depend on nothing but the order of events.
        self._version, self._looked_at = 1, 0
        self._settle_seconds = rules.settle_seconds
        self._time = utc_clock(asyncio.get_running_loop())  # called from threads as well
        self._woken = asyncio.Event()
        self._said_spent = False
        self._idle_runs = 0  # runs in a row that found nothing they could do

    def has_nothing_to_do(self) -> bool:
        """Return True if there is no work until something is stored: all is done, or was tried often enough."""
        return self._idle_runs >= MAX_TRIES

    def note_captured(self) -> None:
        """Note that something was stored: look for work again at the next tick."""
        self._idle_runs = 0

    def look_again(self) -> None:
        """Note that there may be new work since the last look."""
        self._outdate()
        self._woken.set()

    def no_more_captures(self) -> None:
        """Treat every conversation as finished from now on, and leave work that fails to the next start."""
        self._captures_ended = True
        self.look_again()

    async def next(self) -> CurationResult | None:
        """Decide about the oldest undecided pair, or describe a topic: a new or doubled one while pairs are left, then
        any that has changed. None: all is done.
        """
        done = await self._with_retries(self._next)
        self._idle_runs = self._idle_runs + 1 if done is None else 0
        return done

    async def _next(self) -> CurationResult | None:
        while True:
            self._woken.clear()
            if await self._is_spent():
                if (done := await self._withdraw_changed()) is not None or self._captures_ended:
                    return done
                await self._wait(SPENT_SECONDS)
                continue
            for step in (self._withdraw_changed, self._describe_grown, self._decide, self._describe_changed):
                if (done := await step()) is not None:
                    return done
            if not await self._wait_for_pair():
                return None

    async def _wait_for_pair(self) -> bool:
        """Wait until the next conversation is quiet, or new work may be there. False: no pair is left."""
        soonest = min(map(self._quiet_at, self._services.library.undecided_in_memory()), default=None)
        if soonest is None or self._captures_ended:
            return False
        await self._wait(max(0.0, soonest - self._time()))
        return True

    async def _is_spent(self) -> bool:
        spent = self._services.is_spent is not None and await self._services.is_spent()
        if spent and not self._said_spent:
            log.warning("team knowledge: limits.tokens_per_day is used up; what waits is filed on the next day")
        self._said_spent = spent
        return spent

    async def _wait(self, seconds: float) -> None:
        """Wait until there may be new work, at most so long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        self._outdate()

    def _quiet_at(self, pair: Pair) -> float:
        captured = min(from_rfc3339(pair.said_at), from_rfc3339(pair.timestamp))
        return max(captured, self._services.last_said(pair.message_ids[-1]) or captured) + self._settle_seconds

    def _is_ready(self, pair: Pair) -> bool:
        """Return True if the pair's conversation is quiet, need not be, has a later capture, or says nothing new."""
        if self._captures_ended or not self._settle_seconds or not pair.kind.settles:
            return True
        if self._time() >= self._quiet_at(pair) or self._services.library.later_undecided(pair) is not None:
            return True
        return self._repeats(pair) is not None

    def _repeats(self, pair: Pair) -> Decision | None:
        """Return the decision about a pair that says nothing new. Blocking."""
        if not may_repeat(pair):
            return None
        if pair.key not in self._repeated:
            self._repeated[pair.key] = self._services.library.repeated(pair, rfc3339(self._time()))
        return self._repeated[pair.key]

    async def _withdraw_changed(self) -> Decision | None:
        """Withdraw a pair of which something was edited or deleted. That needs no model."""
        if not self._is_up_to_date:
            await run_blocking(self._look)
        if self._changed_pair is None:
            return None
        pair, later = self._changed_pair
        decision = self._withdrawn(pair, "something in it was edited, deleted or doubted")
        self._outdate()
        library, look = self._services.library, self._look_if_possible
        # What this pair had replaced comes back only if the team itself changed it: an edit or a doubt of anybody else
        # must not revive a replaced answer.
        brings_back = has_team_changed(later, pair)
        await write_decision(library, decision, pair, on_written=look, brings_back=brings_back)
        return decision

    async def _decide(self) -> Decision | None:
        if not self._is_up_to_date:
            await run_blocking(self._look)
        pair, later = self._pair, self._later
        if pair is None:
            return None
        repeated = self._repeated.pop(pair.key, None)
        if later is not None:
            decision, quick = self._superseded(pair, later)
        elif (removal := self._services.library.removal_of(pair, rfc3339(now()))) is not None:
            decision, quick = removal, True
        elif self._private:
            decision, quick = self._withdrawn(pair, "its channel is no longer public"), False
        elif not has_team_text(pair):
            decision, quick = self._skipped(pair, WORDLESS)
        elif repeated is not None:
            log.info("%s is filed as before: messages of it are doubted, or words were taken out", pair.id)
            decision, quick = repeated, False
        else:
            decision, quick = await self._measure(self._curate(pair))
        self._outdate()
        put_off = quick and decision.action is not Action.FAILED
        look = self._look_if_possible
        changed = await write_decision(self._services.library, decision, pair, on_written=look, put_off=put_off)
        if repeated is None:
            self._trimmed.difference_update(changed)
        else:
            self._trimmed.update(changed)
        self._schedule.note(self._services.library.topics, changed)
        self._grown += [topic.name for topic in self._schedule.due()]
        if decision.action is Action.FAILED:
            # Perhaps every pair fails now (a key was withdrawn): the archive must not be used up in a minute.
            self._pause = self._backoff.pause()
        else:
            self._backoff.reset()
        return decision

    async def _measure(self, work: Coroutine[Any, Any, T]) -> tuple[T, bool]:
        """Await `work`; also return whether it took less than `QUICK_SECONDS`. If it takes longer, do meanwhile the
        writes that were put off.
        """
        task = asyncio.create_task(work)
        try:
            await asyncio.wait({task}, timeout=QUICK_SECONDS)
            quick = task.done() and task.exception() is None
            if not quick and self._services.library.is_behind:
                with suppress(LibraryUnwritable):  # the next call of the library will raise it
                    await run_blocking(self._services.library.flush)
            return await task, quick
        finally:
            task.cancel()

    def _superseded(self, pair: Pair, later: str) -> tuple[Decision, bool]:
        """Decide to skip a pair because of a `later` capture of its conversation. Readers use the last one, so no model
        is asked about an earlier one (Pitfall 72).
        """
        return self._skipped(pair, skipped_for(later))

    def _skipped(self, pair: Pair, reason: str) -> tuple[Decision, bool]:
        return Decision(pair.id, rfc3339(now()), Action.SKIPPED, self._services.curator.actor, reason=reason), True

    def _withdrawn(self, pair: Pair, reason: str) -> Decision:
        topic = self._services.library.fold.placement.topic_of.get(pair.key)
        log.info("%s is withdrawn, as by --kb remove: %s", pair.id, reason)
        return Decision(pair.id, rfc3339(now()), Action.REMOVED, Actor.DISCORD, topic, reason=reason)

    async def _describe_grown(self) -> NewDescription | None:
        while self._grown:
            topic = self._services.library.topics.get(self._grown[0])
            lacks = topic is not None and await run_blocking(self._services.library.find_undescribed, [topic])
            described = await self._describe(topic) if topic is not None and lacks else None
            self._grown.pop(0)
            if described is not None:
                return described
        return None

    async def _describe_changed(self) -> NewDescription | None:
        if not self._is_up_to_date or self._pair is not None:
            self._undescribed = list(await run_blocking(self._services.library.undescribed_topics))
        while self._undescribed:
            # As it is now: somebody may have been forgotten since.
            topic = self._services.library.topics.get(self._undescribed.pop(0).name)
            if topic is None:
                continue
            is_trimmed = topic.name in self._trimmed
            if is_trimmed and self._trimmed_described.is_reached(topic.name, self._time()):
                await run_blocking(self._services.library.drop_description, topic.name)
            elif (described := await self._describe(topic)) is not None:
                if is_trimmed:
                    self._trimmed_described.note(topic.name, self._time())
                return described
        return None

    async def _describe(self, topic: Topic) -> NewDescription | None:
        try:
            summary, quick = await self._measure(self._describe_topic(topic))
        finally:
            self._outdate()
        if summary is None:
            return None
        key = self._services.describer.key
        look = self._look_if_possible
        await write_description(self._services.library, topic, summary, key, on_written=look, put_off=quick)
        self._backoff.reset()
        return NewDescription(topic.name)

    @property
    def _is_up_to_date(self) -> bool:
        return self._looked_at == self._version

    def _outdate(self) -> None:
        self._version += 1

    def _look(self) -> None:
        """Find the next work. Blocking."""
        library, version = self._services.library, self._version
        self._pair = library.oldest_undecided(self._is_ready)
        self._later = None if self._pair is None else library.later_undecided(self._pair)
        self._private = self._pair is not None and self._services.is_private(self._pair)
        if self._pair is not None:
            self._repeats(self._pair)
        self._changed_pair = library.outdated_pair()
        self._undescribed = [] if self._pair is not None else list(library.undescribed_topics())
        self._looked_at = version

    def _look_if_possible(self) -> None:
        """Look in the thread of a write: another thread for it would cost as much again."""
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
            except TRANSIENT_ERRORS as error:
                self._outdate()  # somebody may be forgotten before it continues
                why = f"{type(error).__name__}: {error}"
                if self._captures_ended:
                    log.warning("team knowledge: %s; the rest is left to the next start", why)
                    return None
                self._pause = self._backoff.pause(getattr(error, "retry_after", None) or 0.0)
                log.warning("team knowledge: %s; continues in %g s", why, self._pause)
