"""Tier 2 made again from tier 1: one conversation after another, then the descriptions of topics.

tasks        ──t1──t2──t3──|          the fullest capture of each conversation, in order of `said_at`
                │ classify ── integrate ── decision and topic sinks of the library beside the live one
decisions    ───d1───d2───d3──|
                              │ topics without a description
descriptions ─────────────────s1──s2──|
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

import reactivex as rx
from reactivex import Observable

from clock.backoff import Backoff
from operators import unfold
from operators.study import NOT_NOW, study
from services.llm import Rejected, UnknownRequest
from services.team import Action, Decision, LibraryUnwritable, Pair, Task, rebuilding
from sinks import topics
from streams.curation import CurationParts, CurationRules, Described, Work

log = logging.getLogger(__name__)

ATTEMPTS = 3  # for a pair while the endpoint fails, each with its own retries, before the work is given up
REFUSED_IN_A_ROW = 3  # so many refused pairs are no pair's fault: it is the key, the credit or the model


class GivenUp(Exception):
    """The work cannot go on: one readable line that says why. What has been decided stays decided."""


def regeneration(tasks: Iterable[Task], parts: CurationParts, rules: CurationRules) -> Observable[Decision | Described]:
    """Decide about each pair, then describe the topics; `parts.library` is the one that is being built.

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
