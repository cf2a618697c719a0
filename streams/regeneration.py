"""Tier 2 made anew from tier 1: one conversation after another, then the descriptions of topics.

tasks        ──t1──t2──t3──|          of each conversation the fullest capture, in order of `said_at`
                │ classify ── integrate ── decision and topic sinks of the library beside the live one
decisions    ───d1───d2───d3──|
                              │ topics without a description
descriptions ─────────────────s1──s2──|
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator

import reactivex as rx
from reactivex import Observable

from clock.backoff import Backoff
from operators import unfold
from operators.study import NOT_NOW, study
from services.llm import Rejected, UnknownRequest
from services.team import Action, Decision, LibraryUnwritable, Pair, Task, rebuilding
from sinks.topics import Topics
from streams.curation import CurationParts, CurationRules, Described, Work

log = logging.getLogger(__name__)

ATTEMPTS = 3
"""At a pair while the endpoint cannot serve, each with the retries of its own, before the work is given up."""
REFUSED_IN_A_ROW = 3
"""So many pairs one after another, refused by the endpoint, are no pair's fault: it is key, credit or model."""


class GivenUp(Exception):
    """The work cannot go on: one readable line that says why. What has been decided stays decided."""


def regeneration(tasks: Iterable[Task], parts: CurationParts, rules: CurationRules) -> Observable[Decision | Described]:
    """Decide about each pair, then describe the topics; `parts.library` is the one that is being built.

    Ends with an error when a pair cannot be decided about for want of the model or the disk (`GivenUp`). A topic
    that cannot be described keeps its stand-in, and is left to the bot.
    """
    rebuilt = Rebuilding(iter(tasks), parts)
    work = Work(parts, rules)
    work.hurry()
    return rx.concat(unfold(rebuilt.decision), unfold(work.description))


class Rebuilding:
    """The decisions, asked for one by one."""

    def __init__(self, tasks: Iterator[Task], parts: CurationParts) -> None:
        self._tasks = tasks
        self._topics = Topics(parts.library)
        self._studied = study(parts.library, parts.curator, parts.usage, parts.gauge)
        self._refused = 0
        """Pairs in a row."""

    async def decision(self) -> Decision | None:
        """Decide about the next pair; None: there is none.

        Raises:
            GivenUp: not for want of anything in the pair.
        """
        task = next(self._tasks, None)
        if task is None:
            return None
        decision = await self._patiently(task.pair)
        try:
            await self._topics.keep(decision, task.pair)
            kept = rebuilding.keeping(task, decision)
            if kept is not None:
                await self._topics.keep(kept, task.pair)
        except (LibraryUnwritable, OSError) as error:
            raise GivenUp(str(error)) from error
        self._refused = self._refused + 1 if was_refused(decision) else 0
        if self._refused >= REFUSED_IN_A_ROW:
            raise GivenUp(f"{self._refused} conversations in a row were refused; {decision.reason}")
        return decision

    async def _patiently(self, pair: Pair) -> Decision:
        backoff = Backoff()
        for _ in range(ATTEMPTS - 1):
            try:
                return await self._studied(pair)
            except UnknownRequest as error:  # waiting changes no recording
                raise GivenUp(str(error)) from error
            except NOT_NOW as error:
                seconds = backoff.pause(getattr(error, "retry_after", None) or 0.0)
                log.warning("%s: %s; tried again in %g s", type(error).__name__, error, seconds)
                await asyncio.sleep(seconds)
        try:
            return await self._studied(pair)
        except NOT_NOW as error:
            raise GivenUp(f"{type(error).__name__}: {error}") from error


def was_refused(decision: Decision) -> bool:
    return decision.action is Action.FAILED and decision.reason.startswith(f"{Rejected.__name__}:")
