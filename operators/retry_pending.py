"""Another try for captures whose images could not be put into words."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from clock import now, run_blocking
from operators.step import expected
from services.llm import TimedOut, Unavailable
from services.team import Capture, Pair, PendingFolder, Waiting

KEPT_SECONDS = 86_400.0
"""How long a capture waits before it is given up (SPEC 6, "Image summary")."""

log = logging.getLogger(__name__)


def retry_pending(
    pending: PendingFolder,
    summarised: Callable[[Waiting], Coroutine[Any, Any, Capture]],
    store: Callable[[Capture], Coroutine[Any, Any, Pair | None]],
    withheld: Callable[[int, str], bool],
) -> Callable[[], Callable[[], Coroutine[Any, Any, Pair | None]]]:
    """For each round a function to be asked again and again: it gives the next pair that could be stored after all,
    and None when there is nothing more to be done now.

    Those who wait longest come first. While the endpoint does not serve, the rest of the round is left to the next
    one. A capture is out of the folder once it is stored, or when what was captured meanwhile holds all of it, or
    after a day. What `withheld` names, of authors and their texts, has been opted out of meanwhile, and goes.
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
            capture = waiting.capture
            where = capture.conversation_id or "a conversation without an id"
            ids = ", ".join(str(said.message_id) for said in capture.said)
            log.warning(
                "%s is given up: its images could not be put into words for a day; messages %s are not learned from",
                where,
                ids,
            )
            await run_blocking(pending.drop, waiting)
            return None
        allowed = without(waiting)
        if not allowed.capture.said or (not allowed.capture.teaches and allowed.capture.continues is None):
            await run_blocking(pending.drop, waiting)
            return None
        if allowed != waiting:  # what was withdrawn must not lie about until the endpoint is back
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
