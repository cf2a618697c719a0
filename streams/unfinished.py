"""Replies that the last run has left half posted, finished before anything is answered anew."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from reactivex import Observable
from reactivex import operators as ops

from model.events import Event, Ready
from model.outcomes import Outcome
from operators import concat_map_iterable, map_async, only
from operators.step import failure_of
from services.conversations import Outbox, StartedReply

AT_ONCE = 8


def unfinished(
    events: Observable[Event], outbox: Outbox, finish: Callable[[StartedReply], Coroutine[Any, Any, Outcome | None]]
) -> Observable[Outcome]:
    """Once the bot is connected, an outcome for each reply that was begun; none for those of which nothing was posted.

    events      --Ready--m1---Ready--|
    unfinished  ---------o1-o2-------|
    """

    def left(_: Ready) -> Iterable[StartedReply]:
        return outbox.left

    def failed(reply: StartedReply, error: Exception) -> Outcome:
        return failure_of(reply.part(), "reply", error)

    return events.pipe(
        only(Ready),
        ops.take(1),
        concat_map_iterable(left),
        map_async(finish, on_failure=failed, max_concurrent=AT_ONCE),
        only(Outcome),
    )
