"""The branch for answers that wait for a person: they are shown to the team, decided about, and posted or not."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterator
from typing import NamedTuple

import reactivex as rx
from reactivex import Observable
from reactivex import operators as ops

from dataflow import concat_map_iterable, map_async, serialize_by_key
from model.events import Event, Ready
from model.outcomes import Outcome, OutcomeKind
from services.conversations import DraftAction, DraftRequest, Drafts, InFlight

log = logging.getLogger(__name__)

AT_ONCE = 16


class Handled(NamedTuple):
    draft_id: int
    outcome: Outcome | None


def approvals(
    events: Observable[Event],
    outcomes: Observable[Outcome],
    drafts: Drafts,
    in_flight: InFlight,
    handle: Callable[[DraftRequest], Coroutine[object, object, Outcome | None]],
) -> Observable[Outcome]:
    """Emit one outcome for each draft when it ends. Requests about one draft are handled one after another. Once
    `events` has completed, no more requests are taken, and the drafts that still wait are kept.

    events     --Ready---------------|      a draft of an earlier run is taken up
    outcomes   -------h---k----------|      two answers are held
    requests   ----r-----------p-d---      p: a person posts h; d: the question of k is deleted
    approvals  -----------------o-x--|
    """

    def offered(outcome: Outcome) -> Iterator[DraftRequest]:
        if outcome.result is OutcomeKind.HELD:
            yield DraftRequest(outcome.part.last.id, DraftAction.RESUME)

    async def handled(request: DraftRequest) -> Handled:
        return Handled(request.draft_id, await handle(request))

    def failed(request: DraftRequest, error: Exception) -> Handled:
        log.error("draft %d: %s was not carried out", request.draft_id, request.action, exc_info=error)
        return Handled(request.draft_id, None)

    taken_up = False

    def resumed(event: Event) -> Iterator[DraftRequest]:
        nonlocal taken_up
        if isinstance(event, Ready) and not taken_up:
            taken_up = True
            yield from drafts.resume(in_flight)

    earlier = events.pipe(ops.do_action(on_completed=drafts.close), concat_map_iterable(resumed))
    handling = serialize_by_key(
        lambda request: request.draft_id,
        map_async(handled, on_failure=failed, max_concurrent=AT_ONCE),
        key_of_result=lambda result: result.draft_id,
        max_active=AT_ONCE,
    )
    return rx.merge(earlier, outcomes.pipe(concat_map_iterable(offered)), drafts.requests).pipe(
        handling,
        concat_map_iterable(lambda result: () if result.outcome is None else (result.outcome,)),
        ops.finally_action(drafts.abandon),
    )
