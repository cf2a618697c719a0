"""The steps of capturing: collect the conversation around a team member's part, describe its images, retry later those
that failed, and find how captured messages read after edits and deletions.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any

from clock import DAY, now, run_blocking
from model.bounded import BoundedDict
from model.conversations import Image
from model.events import Deleted, Edited, PlaceGone
from model.messages import AuthorType
from model.outcomes import Outcome, OutcomeKind, Reason
from operators.doubting import Doubt, DoubtedPair
from operators.step import is_expected
from services.assistant import CaptureJob, Curator, conversation_of_capture, match_summaries, with_image_summaries
from services.conversations import Context, PersonalWork, Withdrawn, find_addressees
from services.llm import (
    ImageFailed,
    ImageSource,
    ImageUnusable,
    PromptRefused,
    TimedOut,
    Unavailable,
    Usage,
    choose_images,
)
from services.team import (
    REMOVED,
    Capture,
    CapturedImage,
    CapturedMessage,
    Pair,
    PairTurn,
    PendingCapture,
    PendingFolder,
    Revision,
    Speaker,
    archive,
    captured_images,
    leave_out,
)
from services.telemetry import current_people

log = logging.getLogger(__name__)

SPEAKERS = {AuthorType.COMMUNITY_USER: Speaker.USER, AuthorType.TEAM_MEMBER: Speaker.TEAM}
"""Messages of other authors, which are bots, are left out of captures."""


@dataclass(frozen=True, slots=True)
class ExtractedCapture:
    """A job, the capture to be stored, and the images in its messages, in order."""

    job: CaptureJob
    capture: Capture
    image_refs: tuple[CapturedImage, ...] = ()


def extract(context: Context) -> Callable[[CaptureJob], Coroutine[Any, Any, ExtractedCapture | Outcome]]:
    """Make a `Capture` of a job: all messages of its conversation, the part included.

    Each message is a turn of its own. A job in which the team answers no question ends here. Raises LookupFailed:
    Discord could not be asked.
    """

    async def extracted(job: CaptureJob) -> ExtractedCapture | Outcome:
        part = job.part
        name, messages = await context.messages_to_capture(part)
        said: list[CapturedMessage] = []
        image_refs: list[CapturedImage] = []
        types = {message.id: await context.author_type(message) for message in messages}
        texts = {message.id: context.text_of(message) for message in messages}
        with_words = [message for message in messages if texts[message.id]]
        addressees = await find_addressees(with_words, types, context.written_by_users, context.title_above)
        for message in messages:
            # A message that was edited until nothing is known of its words keeps its place.
            text = texts[message.id] or (REMOVED if message.edited_at is not None else "")
            speaker = SPEAKERS.get(types[message.id])
            if speaker is not None and text:
                to = addressees.get(message.id, archive.UNKNOWN)
                said.append(CapturedMessage(message.id, message.author.id, PairTurn(speaker, text), to))
                image_refs += captured_images(message)
        capture = Capture(part, name, tuple(said), read_from=await context.read_from(part.place))
        if not capture.is_exchange:
            return Outcome(part, now(), OutcomeKind.SKIPPED, Reason.NOTHING_TO_LEARN)
        return ExtractedCapture(job, capture, tuple(image_refs))

    return extracted


Change = Deleted | PlaceGone | Edited | Doubt | DoubtedPair
"""An event after which a captured conversation reads differently."""


def revisions_of(event: Change, context: Context) -> tuple[Revision, ...]:
    """Return how the messages of an event read now, or that they are doubted. An edit that leaves nothing, or nothing
    that may be captured, is a deletion. A channel goes with its threads.
    """
    if isinstance(event, Doubt):
        return (Revision(event.message_id, is_doubt=True),)
    if isinstance(event, DoubtedPair):
        return (Revision(0, is_doubt=True, pair_id=event.pair_id),)
    if isinstance(event, PlaceGone):
        gone = (event.place_id, *context.threads_of(event.place_id))
        return tuple(Revision(each, is_place=True) for each in gone)
    if isinstance(event, Deleted):
        return tuple(map(Revision, event.message_ids))
    message = context.after_edit(event)
    text = None if message is None else context.text_of(message)
    if message is None or not text:
        return () if event.text is None and event.attachments is None else (Revision(event.message_id),)
    return (Revision(event.message_id, text, message.author.id, len(message.attachments)),)


PENDING_SECONDS = DAY  # how long a capture waits for its images
SUMMARIES_KEPT = 1_000  # a growing conversation is captured again and again, with the same images


def summarise_images(
    curator: Curator,
    source: ImageSource,
    pending: PendingFolder,
    usage: Usage,
    *,
    redact: Callable[[str], str] = str,
) -> Callable[[PendingCapture], Coroutine[Any, Any, Capture]]:
    """Describe a capture's images, the newest within the limits of one call; the model sees the whole conversation.

    An image that is none, is too large, is gone or is refused by the endpoint stays a placeholder. On any other failure
    the capture is saved to the pending folder, with the images loaded so far; one that has waited for `PENDING_SECONDS`
    is returned with placeholders instead, as it is if too much waits already. On success the caller removes it from
    there, once the capture is stored.

    Raises:
        ImageFailed: an image cannot be loaded now.
        LLMError: the curator has no usable result.
        OSError: the capture could not be put into the pending folder.
    """
    return _ImageSummariser(curator, source, pending, usage, redact).summarise


class _ImageSummariser:
    """Describes the images of captures, as `summarise_images` says."""

    def __init__(
        self,
        curator: Curator,
        source: ImageSource,
        pending: PendingFolder,
        usage: Usage,
        redact: Callable[[str], str],
    ) -> None:
        self._curator = curator
        self._source = source
        self._pending = pending
        self._usage = usage
        self._redact = redact
        self._known = BoundedDict[int, str | None](SUMMARIES_KEPT)
        """The summaries of images by the id of the attachment; None: it cannot be used."""

    async def summarise(self, waiting: PendingCapture) -> Capture:
        waiting = await run_blocking(self._pending.take_over, waiting)
        loaded = dict(waiting.images)
        is_last_try = now() - waiting.since >= PENDING_SECONDS or await run_blocking(self._pending.is_full)
        try:
            return await self._attempt(waiting, loaded, is_last_try=is_last_try)
        except Exception as error:
            if is_last_try:
                log.warning(
                    "%s is stored without what its images show: they could not be described for a day, or many wait; "
                    "%s: %s",
                    waiting.name,
                    type(error).__name__,
                    error,
                    exc_info=None if is_expected(error) else error,
                )
                return self._with_known_summaries(waiting)
            await run_blocking(self._pending.keep, replace(waiting, images=loaded))
            raise

    def _with_known_summaries(self, waiting: PendingCapture) -> Capture:
        found = ((each, self._known.get(each.attachment.id)) for each in waiting.image_refs)
        summaries = {each: summary for each, summary in found if summary is not None}
        return with_image_summaries(waiting.capture, summaries, self._redact)

    async def _attempt(
        self, waiting: PendingCapture, loaded: dict[CapturedImage, Image], *, is_last_try: bool
    ) -> Capture:
        capture = self._with_known_summaries(waiting)
        unknown = [picture for picture in waiting.image_refs if picture.attachment.id not in self._known]
        chosen = choose_images(picture.attachment for picture in reversed(unknown))
        wanted = [picture for picture in unknown if picture.attachment.id in chosen]
        await self._load(wanted, loaded, all_required=not is_last_try)
        new = [picture for picture in wanted if picture in loaded]
        if not new:
            return capture
        current_people.set({each.author_id for each in capture.messages})
        summaries = await self._describe(capture, {picture: loaded[picture] for picture in new})
        return with_image_summaries(capture, summaries, self._redact)

    async def _describe(self, capture: Capture, images: dict[CapturedImage, Image]) -> dict[CapturedImage, str]:
        """Return what the images show. Anybody may post one that the endpoint refuses: then each is shown alone, and
        those that are refused stay placeholders.
        """
        conversation = conversation_of_capture(capture, images)
        message_ids = [each.message_id for each in capture.messages]
        try:
            found = match_summaries(
                await self._curator.summarise_images(conversation, message_ids, self._usage), [*images]
            )
        except PromptRefused as error:
            if len(images) > 1:
                alone = [await self._describe(capture, {picture: image}) for picture, image in images.items()]
                return {picture: summary for each in alone for picture, summary in each.items()}
            log.info("an image stays a placeholder: %s", error)
            found = {}
        for picture in images:
            self._known[picture.attachment.id] = found.get(picture)
        return found

    async def _load(
        self, pictures: list[CapturedImage], loaded: dict[CapturedImage, Image], *, all_required: bool
    ) -> None:
        """Load all that are available, so that a later try needs only the rest: addresses expire."""
        failed: ImageFailed | None = None
        for picture in pictures:
            if picture not in loaded:
                try:
                    loaded[picture] = await self._source.load(picture.attachment)
                except ImageUnusable as error:
                    log.info("an image stays a placeholder: %s", error)
                    self._known[picture.attachment.id] = None
                except ImageFailed as error:
                    failed = failed or error
        if failed is not None:
            if all_required:
                raise failed
            log.warning("images stay placeholders, as they could not be loaded for a day: %s", failed)


def without_withheld(waiting: PendingCapture, withheld: Callable[[CapturedMessage], bool]) -> PendingCapture:
    """Return a capture without `withheld` messages, and without their images."""
    return waiting.with_messages(leave_out(waiting.capture.messages, withheld))


def without_withdrawn(
    summarise: Callable[[PendingCapture], Coroutine[Any, Any, Capture]],
    withheld: Callable[[CapturedMessage], bool],
    personal_work: PersonalWork,
) -> Callable[[PendingCapture], Coroutine[Any, Any, Capture]]:
    """Wrap `summarise`, the function that describes the images of a capture. When somebody withdraws what they said
    while it runs, it begins again without the messages that are `withheld` then.
    """

    async def allowed(waiting: PendingCapture) -> Capture:
        while True:
            left = without_withheld(waiting, withheld)
            try:
                with personal_work.handling({each.author_id for each in left.capture.messages}):
                    return await summarise(left)
            except Withdrawn:
                log.info("%s: its images are described again, without what was withdrawn", waiting.name)

    return allowed


async def retry_pending(
    pending: PendingFolder,
    summarise: Callable[[PendingCapture], Coroutine[Any, Any, Capture]],
    store: Callable[[Capture], Coroutine[Any, Any, Pair | None]],
    withheld: Callable[[CapturedMessage], bool],
) -> AsyncGenerator[Pair]:
    """Try to store each pending capture once, and yield the pairs that are stored.

    The longest waiting come first. If the endpoint is down, the rest is left to the next call. A capture leaves the
    folder once it is stored, or is contained in a later capture. `withheld` messages are dropped.
    """

    async def attempt(waiting: PendingCapture) -> Pair | None:
        allowed = without_withheld(waiting, withheld)
        if not allowed.capture.is_exchange:
            await run_blocking(pending.drop, waiting)
            return None
        if allowed != waiting:  # withdrawn text must not stay on the disk until the endpoint is back
            await run_blocking(pending.keep, allowed)
            if allowed.name != waiting.name:
                await run_blocking(pending.drop, waiting)
        pair = await store(await summarise(allowed))
        await run_blocking(pending.drop, allowed)
        return pair

    captures = pending.all()
    while (waiting := await run_blocking(next, captures, None)) is not None:
        try:
            pair = await attempt(waiting)
        except (Unavailable, TimedOut) as error:
            log.info("%s waits on, with all that came later: %s", waiting.name, error)
            return
        except Exception as error:
            bug = None if is_expected(error) else error
            log.info("%s waits on: %s: %s", waiting.name, type(error).__name__, error, exc_info=bug)
            continue
        if pair is not None:
            yield pair
