"""Rebuild the topics (tier 2) from the raw archive (tier 1), beside the library in use: `--regen`.

    tasks, in order ── asked ahead, a few at a time
        │ one after another
    classify ── integrate ── decision and topic sinks
        │ at once a new topic; after every sixteenth task those that have doubled; at the end all that have changed
    describe ── team index

The prompt for a pair follows from the earlier decisions alone, never from when an answer came. So the library is the
same however many calls run at a time, and however often the work was cut off.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from reactivex import Observable
from reactivex import operators as ops

from clock import run_blocking
from clock.timeouts import Backoff
from dataflow import unfold
from operators.curating import TRANSIENT_ERRORS, curate, describe_topics
from operators.prefetching import Prefetcher, PrefetchServices
from services.llm import PromptRefused, Rejected, UnknownRequest
from services.team import Action, DescriptionSchedule, LibraryUnwritable, RebuildTask, Topic, rebuilding
from sinks.team import write_decision, write_description
from streams.curation import CurationResult, CurationServices, NewDescription

T = TypeVar("T")

ATTEMPTS = 3  # for a pair or a topic while the endpoint fails, each with its own retries, before it is given up
REFUSED_IN_A_ROW = 3  # after so many refused pairs, the fault is the key, the credit or the model

log = logging.getLogger(__name__)


class GivenUp(Exception):
    """The rebuild cannot go on; the message says why in one line. Decisions that were made stay."""


@dataclass(frozen=True, slots=True)
class RebuildRules:
    """How a rebuild works.

    Attributes:
        describe_seconds: the limit for one description, retries included.
        at_once: how many descriptions may be under way.
        at: the time of all decisions, RFC 3339, UTC; None: when they are made.
    """

    describe_seconds: float = 200.0
    at_once: int = 1
    at: str | None = None


@dataclass(frozen=True, slots=True)
class RebuildProgress:
    """How far an earlier run came.

    Attributes:
        done: how many of the first tasks are decided about.
        growth: the schedule of the library so far.
    """

    done: int = 0
    growth: DescriptionSchedule = field(default_factory=lambda: DescriptionSchedule(rebuilding.DESCRIBE_EVERY))


def regeneration(
    tasks: Sequence[RebuildTask],
    parts: CurationServices,
    rules: RebuildRules,
    prefetching: PrefetchServices | None = None,
    so_far: RebuildProgress | None = None,
) -> Observable[CurationResult]:
    """Decide about each pair, and describe the topics, in the library `parts.library`.

    tasks         --t1--t2--t3--|         the fullest capture of each conversation, in order of `said_at`
    decided       ---d1-s1-d2--d3-s2--|   d1 founds a topic, which is described at once

    `prefetching`: the services for calls ahead; None: one call at a time. Ends with `GivenUp` if the model or the disk
    fails. A topic that cannot be described keeps its earlier description or its stand-in, and is left to the bot.
    """
    rebuild = Rebuild(tasks, parts, rules, prefetching, so_far or RebuildProgress())
    return unfold(rebuild.next).pipe(ops.finally_action(rebuild.stop))


class Rebuild:
    """The queue of a rebuild: asked for one decision or description at a time."""

    def __init__(
        self,
        tasks: Sequence[RebuildTask],
        parts: CurationServices,
        rules: RebuildRules,
        prefetching: PrefetchServices | None,
        so_far: RebuildProgress,
    ) -> None:
        self._tasks = tasks
        self._parts = parts
        self._turn = so_far.done
        self._growth = so_far.growth
        at = rules.at
        self._curate = (
            curate(parts.library, parts.curator, parts.usage, parts.gauge)
            if at is None
            else curate(parts.library, parts.curator, parts.usage, parts.gauge, lambda: at)
        )
        self._describe_topic = describe_topics(parts.describer, rules.describe_seconds, parts.gauge)
        self._room = asyncio.Semaphore(rules.at_once)
        self._prefetcher = None if prefetching is None else self._new_prefetcher(prefetching, rules.describe_seconds)
        self._refused_in_a_row = 0
        self._has_answered = False  # the model has, to one conversation at least
        # Topics that an earlier run had no time to describe, or described from other decisions.
        self._due = [*self._growth.described.values()]
        self._growth.due()
        self._written: deque[NewDescription] = deque()  # descriptions that are written, and not given out yet
        self._finished = False

    def _new_prefetcher(self, services: PrefetchServices, seconds: float) -> Prefetcher:
        pairs = [task.pair for task in self._tasks]
        return Prefetcher(pairs, self._parts.library, services, self._growth, rebuilding.DESCRIBE_EVERY, seconds)

    async def next(self) -> CurationResult | None:
        """Describe the topics that are due, or else decide about the next pair; None: all is done. Raises GivenUp."""
        try:
            await self._describe_due()
            if self._written:
                return self._written.popleft()
            if self._turn < len(self._tasks):
                return await self._decide(self._tasks[self._turn])
            if not self._finished:
                self._finished = True
                self._due = list(await run_blocking(self._parts.library.undescribed_topics))
                return await self.next()
        except (LibraryUnwritable, OSError) as error:
            raise GivenUp(str(error)) from error
        return None

    def stop(self) -> None:
        """Prefetch nothing more."""
        if self._prefetcher is not None:
            self._prefetcher.stop()

    async def _decide(self, task: RebuildTask) -> CurationResult:
        if self._prefetcher is not None:
            await self._prefetcher.turn(self._turn)
        decision = await _with_retries(lambda: self._curate(task.pair))
        changed = set(await write_decision(self._parts.library, decision, task.pair))
        if (kept := rebuilding.keep_in_topic(task, decision)) is not None:
            changed |= set(await write_decision(self._parts.library, kept, task.pair))
        self._turn += 1
        self._growth.note(self._parts.library.topics, sorted(changed))
        self._due = self._growth.due()
        self._has_answered = self._has_answered or decision.action is not Action.FAILED
        # A model that answers others refuses the words of this one: its settings are right.
        kinds = [Rejected] if self._has_answered else [Rejected, PromptRefused]
        reasons = tuple(f"{kind.__name__}:" for kind in kinds)
        refused = decision.action is Action.FAILED and decision.reason.startswith(reasons)
        self._refused_in_a_row = self._refused_in_a_row + 1 if refused else 0
        if self._refused_in_a_row >= REFUSED_IN_A_ROW:
            raise GivenUp(f"{self._refused_in_a_row} conversations in a row were refused; {decision.reason}")
        return decision

    async def _describe_due(self) -> None:
        """Describe the topics that are due, side by side, and write the descriptions in order."""
        if not self._due:
            return
        due, self._due = self._due, []
        lacking = await run_blocking(self._parts.library.find_undescribed, due)
        texts = await asyncio.gather(*map(self._describe, lacking))
        for topic, text in zip(lacking, texts, strict=True):
            if text is not None:
                await write_description(self._parts.library, topic, text, self._parts.describer.key)
                self._written.append(NewDescription(topic.name))

    async def _describe(self, topic: Topic) -> str | None:
        async with self._room:
            try:
                return await _with_retries(lambda: self._describe_topic(topic))
            except GivenUp as error:
                log.warning("topic %s is not described: %s", topic.name, error)
                return None


async def _with_retries(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Raises GivenUp if the endpoint, its recording or the disk keeps failing."""
    backoff, failures = Backoff(), 0
    while True:
        try:
            return await work()
        except UnknownRequest as error:  # waiting does not change the recording
            raise GivenUp(str(error)) from error
        except TRANSIENT_ERRORS as error:
            failures += 1
            if failures == ATTEMPTS:
                raise GivenUp(f"{type(error).__name__}: {error}") from error
            seconds = backoff.pause(getattr(error, "retry_after", None) or 0.0)
            log.warning("%s: %s; tried again in %g s", type(error).__name__, error, seconds)
            await asyncio.sleep(seconds)
