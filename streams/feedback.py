"""Votes and calls for help: reactions to the bot's replies."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any, Never, cast

from reactivex import Observable
from reactivex import operators as ops

from model.events import Event, Reaction
from operators import map_async, only

log = logging.getLogger(__name__)


def votes(events: Observable[Event], keep: Callable[[Reaction], Coroutine[Any, Any, None]]) -> Observable[Never]:
    """Hand each reaction to the sink, in order. Emits nothing; completes when the last one is kept.

    events  --m1--r1--r2--|
    votes   --------------|
    """

    def failed(reaction: Reaction, error: Exception) -> None:
        log.error("a reaction to message %d was not kept: %s", reaction.message_id, error)

    kept = events.pipe(only(Reaction), map_async(keep, on_failure=failed, max_concurrent=1), ops.ignore_elements())
    return cast("Observable[Never]", kept)
