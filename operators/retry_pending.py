"""Another try for captures whose images could not be described."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from clock import now, run_blocking
from operators.step import expected
from services.llm import TimedOut, Unavailable
from services.team import Capture, Pair, PendingFolder, Waiting

KEPT_SECONDS = 86_400.0  # how long a capture waits before it is given up (SPEC 6, "Image summary")

log = logging.getLogger(__name__)


def retry_pending(
    pending: PendingFolder,
    summarised: Callable[[Waiting], Coroutine[Any, Any, Capture]],
    store: Callable[[Capture], Coroutine[Any, Any, Pair | None]],
    withheld: Callable[[int, str], bool],
) -> Callable[[], Callable[[], Coroutine[Any, Any, Pair | None]]]:
    """Starts a round: a function that gives the next pair that could be stored after all; None: nothing more for now.

    The longest waiting come first. While the endpoint is down, the rest is left to the next round. A capture leaves the
    folder once it is stored, or is contained in a later capture, or after a day. What `withheld` names, by author and
    text, has been opted out of meanwhile, and is dropped.
    """

    def begin() -> Callable[[], Coroutine[Any, Any, Pair | None]]:
        left: list[Waiting] | None = None

        async def following() -> Pair | None:
            nonlocal left
            if left is None:
                left = await run_blocking(pending.all)
            while left:
                waiting = left.pop(0)
                try:
                    pair = await attempt(waiting)
                except (Unavailable, TimedOut) as error:
                    log.info("%s waits on, with all that came later: %s", waiting.name, error)
                    return None
                except Exception as error:
                    bug = None if expected(error) else error
                    log.info("%s waits on: %s: %s", waiting.name, type(error).__name__, error, exc_info=bug)
                    continue
                if pair is not None:
                    return pair
            return None

        return following

    async def attempt(waiting: Waiting) -> Pair | None:
        if now() - waiting.since >= KEPT_SECONDS:
            log.warning(
                "%s is given up: its images could not be described for a day; messages %s are not learned from",
                waiting.capture.conversation_id or "a conversation without an id",
                ", ".join(str(said.message_id) for said in waiting.capture.said),
            )
            await run_blocking(pending.drop, waiting)
            return None
        allowed = without(waiting)
        if not allowed.capture.said or (not allowed.capture.teaches and allowed.capture.continues is None):
            await run_blocking(pending.drop, waiting)
            return None
        if allowed != waiting:  # withdrawn text must not stay on the disk until the endpoint is back
            await run_blocking(pending.keep, allowed)
            if allowed.name != waiting.name:
                await run_blocking(pending.drop, waiting)
        pair = await store(await summarised(allowed))
        await run_blocking(pending.drop, allowed)
        return pair

    def without(waiting: Waiting) -> Waiting:
        said = tuple(each for each in waiting.capture.said if not withheld(each.author_id, each.turn.text))
        ids = {each.message_id for each in said}
        pictures = tuple(picture for picture in waiting.pictures if picture.message_id in ids)
        images = {picture: image for picture, image in waiting.images.items() if picture.message_id in ids}
        return replace(waiting, capture=replace(waiting.capture, said=said), pictures=pictures, images=images)

    return begin
