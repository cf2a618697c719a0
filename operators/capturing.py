"""The steps of capturing: collect the conversation around a team member's part, describe its images, and try again
later what could not be described.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any

from clock import now, run_blocking
from model.bounded import Bounded
from model.conversations import Image
from model.messages import AuthorType
from model.outcomes import Outcome, OutcomeKind, Reason
from operators.step import expected
from services.assistant import CaptureJob, Curator, conversation_of_capture, match_summaries, with_image_summaries
from services.conversations import Context, PersonalWork, Withdrawn
from services.llm import ImageFailed, ImageSource, TimedOut, Unavailable, Usage, choose_images
from services.team import (
    Capture,
    CapturedImage,
    CapturedMessage,
    Pair,
    PairTurn,
    PendingCapture,
    PendingFolder,
    Speaker,
    captured_images,
)
from services.telemetry import current_people

log = logging.getLogger(__name__)

SPEAKERS = {AuthorType.COMMUNITY_USER: Speaker.USER, AuthorType.TEAM_MEMBER: Speaker.TEAM}
"""Bots are left out."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """A job, what is to be stored of it, and the images in that, in order."""

    job: CaptureJob
    capture: Capture
    image_refs: tuple[CapturedImage, ...] = ()


def extract(context: Context) -> Callable[[CaptureJob], Coroutine[Any, Any, Extracted | Outcome]]:
    """Make a `Capture` of a job: all messages of the conversation as it was followed in its channel or thread, the part
    included.

    Each message is a turn of its own. A job that is no exchange ends here. Raises LookupFailed: Discord could not be
    asked.
    """

    async def extracted(job: CaptureJob) -> Extracted | Outcome:
        part = job.part
        name, messages = await context.captured(part)
        said: list[CapturedMessage] = []
        image_refs: list[CapturedImage] = []
        for message in messages:
            speaker = SPEAKERS.get(await context.author_type(message))
            text = context.text_of(message)
            if speaker is not None and text:
                said.append(CapturedMessage(message.id, message.author.id, PairTurn(speaker, text)))
                image_refs += captured_images(message)
        capture = Capture(part, name, tuple(said))
        if not capture.is_exchange:
            return Outcome(part, now(), OutcomeKind.SKIPPED, Reason.NOTHING_TO_LEARN)
        return Extracted(job, capture, tuple(image_refs))

    return extracted


KEPT = 1_000  # summaries: a growing conversation is captured again and again, with the same images


def summarise_images(
    curator: Curator,
    source: ImageSource,
    pending: PendingFolder,
    usage: Usage,
    *,
    redact: Callable[[str], str] = str,
) -> Callable[[PendingCapture], Coroutine[Any, Any, Capture]]:
    """Describe a capture's images, the newest within the limits of one call, each with the whole conversation in view.

    On failure the capture is saved to the pending folder, with the images loaded so far. On success the caller removes
    it from there, once the capture is stored.

    Raises:
        ImageFailed: an image cannot be loaded.
        LLMError: the curator has no usable result.
        OSError: the capture could not be put into the pending folder.
    """
    known = Bounded[int, str](KEPT)  # by attachment

    async def summarised(waiting: PendingCapture) -> Capture:
        loaded = dict(waiting.images)
        try:
            return await attempt(waiting, loaded)
        except Exception:
            await run_blocking(pending.keep, replace(waiting, images=loaded))
            raise

    async def attempt(waiting: PendingCapture, loaded: dict[CapturedImage, Image]) -> Capture:
        summaries = {picture: known[file] for picture in waiting.pictures if (file := picture.attachment.id) in known}
        capture = with_image_summaries(waiting.capture, summaries, redact)
        unknown = [picture for picture in waiting.pictures if picture not in summaries]
        chosen = choose_images(picture.attachment for picture in reversed(unknown))
        new = [picture for picture in unknown if picture.attachment.id in chosen]
        if not new:
            return capture
        await load(new, loaded)
        conversation = conversation_of_capture(capture, {picture: loaded[picture] for picture in new})
        message_ids = [said.message_id for said in capture.said]
        current_people.set({said.author_id for said in capture.said})
        summaries = match_summaries(await curator.summarise_images(conversation, message_ids, usage), new)
        for picture, summary in summaries.items():
            known[picture.attachment.id] = summary
        return with_image_summaries(capture, summaries, redact)

    async def load(pictures: list[CapturedImage], loaded: dict[CapturedImage, Image]) -> None:
        """All that are available, so that a later try needs only the rest: addresses expire."""
        failed: ImageFailed | None = None
        for picture in pictures:
            if picture not in loaded:
                try:
                    loaded[picture] = await source.load(picture.attachment)
                except ImageFailed as error:
                    failed = failed or error
        if failed is not None:
            raise failed

    return summarised


def without_withheld(waiting: PendingCapture, withheld: Callable[[CapturedMessage], bool]) -> PendingCapture:
    """Return a capture without `withheld` messages, and without their images."""
    said = tuple(each for each in waiting.capture.said if not withheld(each))
    ids = {each.message_id for each in said}
    pictures = tuple(picture for picture in waiting.pictures if picture.message_id in ids)
    images = {picture: image for picture, image in waiting.images.items() if picture.message_id in ids}
    return replace(waiting, capture=replace(waiting.capture, said=said), pictures=pictures, images=images)


def without_withdrawn(
    summarised: Callable[[PendingCapture], Coroutine[Any, Any, Capture]],
    withheld: Callable[[CapturedMessage], bool],
    personal: PersonalWork,
) -> Callable[[PendingCapture], Coroutine[Any, Any, Capture]]:
    """Wrap what describes the images of a capture. When somebody withdraws what they said, it begins again without
    their `withheld` messages.
    """

    async def allowed(waiting: PendingCapture) -> Capture:
        while True:
            left = without_withheld(waiting, withheld)
            try:
                with personal.handling({said.author_id for said in left.capture.said}):
                    return await summarised(left)
            except Withdrawn:
                log.info("%s: its images are described again, without what was withdrawn", waiting.name)

    return allowed


PENDING_SECONDS = 86_400.0  # how long a capture waits before it is given up


def retry_pending(
    pending: PendingFolder,
    summarised: Callable[[PendingCapture], Coroutine[Any, Any, Capture]],
    store: Callable[[Capture], Coroutine[Any, Any, Pair | None]],
    withheld: Callable[[CapturedMessage], bool],
) -> Callable[[], Callable[[], Coroutine[Any, Any, Pair | None]]]:
    """Return a function that starts a round. A round is a function that returns the next pair stored, or None when
    nothing more can be stored now.

    The longest waiting come first. While the endpoint is down, the rest is left to the next round. A capture leaves the
    folder once it is stored, or is contained in a later capture, or after a day. `withheld` messages are dropped.
    """

    def begin() -> Callable[[], Coroutine[Any, Any, Pair | None]]:
        left: list[PendingCapture] | None = None

        async def next_stored() -> Pair | None:
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

        return next_stored

    async def attempt(waiting: PendingCapture) -> Pair | None:
        if now() - waiting.since >= PENDING_SECONDS:
            log.warning(
                "%s is given up: its images could not be described for a day; messages %s are not learned from",
                waiting.capture.conversation_id,
                ", ".join(str(said.message_id) for said in waiting.capture.said),
            )
            await run_blocking(pending.drop, waiting)
            return None
        allowed = without_withheld(waiting, withheld)
        if not allowed.capture.is_exchange:
            await run_blocking(pending.drop, waiting)
            return None
        if allowed != waiting:  # withdrawn text must not stay on the disk until the endpoint is back
            await run_blocking(pending.keep, allowed)
            if allowed.name != waiting.name:
                await run_blocking(pending.drop, waiting)
        pair = await store(await summarised(allowed))
        await run_blocking(pending.drop, allowed)
        return pair

    return begin
