"""Lift async functions into steps of a branch: exceptions become failed outcomes, and outcomes pass through."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from reactivex import Observable

from clock import now
from dataflow.basics import pass_through
from dataflow.map_async import UnexpectedCancellation, map_async
from dataflow.metering import operator_watch
from model.outcomes import Outcome, OutcomeKind, Reason
from model.steps import STEP_NAMES
from services.assistant import Inquiry, Unanswered, outcome_of
from services.conversations import Withdrawn, WorkCancelled
from services.telemetry import current_part, current_people

if TYPE_CHECKING:
    from dataflow.metering import Gauge
    from model.messages import Message, Part
    from services.conversations import PersonalWork

log = logging.getLogger(__name__)

T = TypeVar("T", bound=Inquiry | Unanswered)

Item = Inquiry | Unanswered | Outcome


class TookTooLong(Exception):
    """The answer chain exceeded its time limit."""


@dataclass(frozen=True, slots=True)
class _SingleStep:
    """One step: its name, its function, and the type of the items that it takes."""

    name: str
    fn: Callable[[Any], Coroutine[Any, Any, Item]]
    takes: type[Inquiry | Unanswered]
    gauge: Gauge | None


@dataclass(frozen=True, slots=True)
class StepOperator:
    """An operator that runs one step, or several in turn, for each item. Made by `step`, `in_turn`, `in_order`."""

    single_steps: tuple[_SingleStep, ...]
    max_concurrent: int
    personal_work: PersonalWork | None = None

    def __call__(self, source: Observable[Item]) -> Observable[Item]:
        run = map_async(
            _run_steps(self.single_steps, self.personal_work),
            on_failure=lambda item, error: failed_outcome(item, _first_step(self.single_steps, item), error),
            max_concurrent=self.max_concurrent,
            token=lambda item: item.token,
        )
        return source.pipe(pass_through(Outcome, run))


def step(
    name: str,
    fn: Callable[[T], Coroutine[Any, Any, Item]],
    max_concurrent: int,
    gauge: Gauge | None = None,
    *,
    takes: type[Inquiry | Unanswered] = Inquiry,
) -> StepOperator:
    """Await `fn` for each item of the type that it `takes`; pass the others through.

        --q1----q2----o3-----|
        [ step("gate", gate) ]      gate(q2) raises
        ----q1----o2--o3-----|      o2 = failed("… at gate")

    An inquiry whose token is cancelled ends as `cancelled`, one that ran out of time as `failed`.
    """
    return StepOperator((_SingleStep(name, fn, takes, gauge),), max_concurrent)


def in_turn(*steps: StepOperator) -> StepOperator:
    """Combine steps into one operator that runs them one after another for each item. The results are as from a pipe of
    the steps; at most the smallest `max_concurrent` of them run at once.

        --q1---q2-------------|
        [ in_turn(gate, load) ]      a second each; gate(q2) raises
        ----q1--o2------------|      o2 = failed("… at gate"): load never hears of it

    An item is one task from the first step to the last. A pipe would make one for each step, and hand the item through
    as many layers.
    """
    return StepOperator(
        tuple(work for each in steps for work in each.single_steps), min(each.max_concurrent for each in steps)
    )


MAX_RESTARTS = 2
"""An answer begins again so often with the messages of others who delete or edit theirs, and then without them: else
anybody could keep others from an answer, and let them pay for it.
"""


def in_order(*steps: StepOperator, personal_work: PersonalWork | None = None) -> StepOperator:
    """Combine steps as `in_turn` does, in the order of `model.steps.STEPS`.

    `personal_work`: gets to know whose texts the steps work with. When somebody withdraws theirs, their own inquiries
    end as cancelled, and those of others begin again; these also when a message of them is deleted or edited, from the
    third one on without whoever did that. The time of the chain begins again, too.

        --q1---------------------|      q1 quotes somebody who asks to be forgotten
        [ in_order(gather, gate) ]      gather and gate take a second each
        -------q1----------------|      gathered, half gated; gathered again without these words, and gated

    Raises:
        ValueError: a step is not in that table.
    """
    made = in_turn(*steps)
    missing = [work.name for work in made.single_steps if work.name not in STEP_NAMES]
    if missing:
        raise ValueError(f"model/steps.py: STEPS has no row for {', '.join(missing)}")
    works = sorted(made.single_steps, key=lambda work: STEP_NAMES.index(work.name))
    return replace(made, single_steps=tuple(works), personal_work=personal_work)


def _run_steps(
    works: tuple[_SingleStep, ...], personal_work: PersonalWork | None
) -> Callable[[Inquiry | Unanswered], Coroutine[Any, Any, Item]]:
    """Make the function that runs the steps for one item, one after another, until a step ends it with an outcome."""
    active = Counter[str]()
    watches = [operator_watch(work.gauge, work.name) for work in works]

    def report(gauge: Gauge, name: str, change: int) -> None:
        active[name] += change
        gauge(name, active[name])

    async def run_steps(item: Inquiry | Unanswered) -> Item:
        restarts, withdrawers = 0, set[int]()
        while personal_work is not None:
            people, others = set[int](), dict[int, int]()
            try:
                with personal_work.handling(people, others):
                    return await run_once(item, people, others)
            except Withdrawn as withdrawn:
                if withdrawn.user_id == item.part.author.id:
                    return failed_outcome(item, _first_step(works, item), WorkCancelled(Reason.DELETED))
                log.info("an answer begins again, without the words of somebody who has withdrawn them")
                restarts += withdrawn.user_id is None
                withdrawers.update(others[each] for each in withdrawn.message_ids)
                item = _begun_again(item, withdrawers if restarts > MAX_RESTARTS else ())
        return await run_once(item, {*inquiry_of(item).people}, {})

    async def run_once(item: Item, people: set[int], others: dict[int, int]) -> Item:
        current_part.set(item.part)
        current_people.set(people)
        known: tuple[Message, ...] | None = None
        for work, watch in zip(works, watches, strict=True):
            if not isinstance(item, work.takes):
                continue
            inquiry = inquiry_of(item)
            if inquiry.messages is not known:
                known = inquiry.messages
                people.update(message.author.id for message in (*inquiry.part.messages, *known))
                others.update((each.id, each.author.id) for each in known if each.author.id != inquiry.part.author.id)
            if work.gauge is None:
                item = await _result(work, item)
                continue
            report(work.gauge, work.name, +1)
            try:
                ends = None if watch is None else watch.on_begin()
                item = await _result(work, item, ends)
            finally:
                report(work.gauge, work.name, -1)
        return item._replace(people=frozenset(people)) if isinstance(item, Inquiry) else item

    return run_steps


def _begun_again(item: Inquiry | Unanswered, left_out: Iterable[int]) -> Inquiry | Unanswered:
    """Return an item as it was before the first step, to be made without the messages of some people."""
    item.token.close()  # the time of the chain
    if isinstance(item, Inquiry):
        item = item._replace(is_counted=item.is_counted or "gate" in item.decisions, left_out=frozenset(left_out))
    inquiry_of(item).decisions.clear()
    return item


async def _result(
    work: _SingleStep, item: Inquiry | Unanswered, ends: Callable[[Exception | None], object] | None = None
) -> Item:
    """Run one step for an item. Returns its result, or the failed outcome if it raises or the item's token is
    cancelled; `ends` is called with the error or None.
    """
    began = now() if log.isEnabledFor(logging.DEBUG) else None
    failed = item.token.error
    try:
        if failed is None:
            return await work.fn(item)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if item.token.error is None and task is not None and task.cancelling():
            raise  # the subscriber has left
        failed = item.token.error or UnexpectedCancellation("cancelled from within")
    except Exception as error:  # noqa: BLE001 (whatever it is, it is this item's)
        failed = item.token.error or error
    finally:
        if began is not None:
            log.debug("%s took %.0f ms", work.name, (now() - began) * 1000)
        if ends is not None:
            ends(failed)
    return failed_outcome(item, work.name, cast("Exception", failed))


def _first_step(works: tuple[_SingleStep, ...], item: Item) -> str:
    """Return the name of the first step that takes the item; of the first of all if none does."""
    return next((work for work in works if isinstance(item, work.takes)), works[0]).name


def inquiry_of(item: Inquiry | Unanswered) -> Inquiry:
    return item.inquiry if isinstance(item, Unanswered) else item


def failed_outcome(inquiry: Inquiry | Unanswered, name: str, error: Exception) -> Outcome:
    """Like `failure_of`, for an inquiry: the outcome has its usage and decisions."""
    outcome = failure_of(inquiry.part, name, error)
    return outcome_of(inquiry_of(inquiry), outcome.result, outcome.reason)


def failure_of(part: Part, name: str, error: Exception) -> Outcome:
    """Return the outcome of a part that was cancelled, or that failed at the step `name`."""
    if isinstance(error, WorkCancelled):
        return Outcome(part, now(), OutcomeKind.CANCELLED, error.reason)
    current_part.set(part)
    log.warning("%s failed: %s: %s", name, type(error).__name__, error, exc_info=None if is_expected(error) else error)
    return Outcome(part, now(), OutcomeKind.FAILED, f"{type(error).__name__} at {name}")


def is_expected(error: Exception) -> bool:
    """Return True if an error comes from outside the program (a service, the network, the disk), so that one log line
    is enough. Any other is a bug, and logged with its traceback.
    """
    return type(error).__module__.split(".")[0] in {"services", "operators", "dataflow"} or isinstance(
        error, TimeoutError | OSError
    )
