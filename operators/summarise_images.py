"""Images of captured conversations, described in words before anything is stored."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from clock import run_blocking
from model.conversations import Image
from services.assistant import Curator, conversation_with, in_words, summaries_in
from services.llm import ImageFailed, ImageSource, Usage
from services.team import Capture, PendingFolder, Picture, Waiting

KEPT = 1_000  # summaries: a growing conversation is captured again and again, with the same images


def summarise_images(
    curator: Curator,
    source: ImageSource,
    pending: PendingFolder,
    usage: Usage,
    *,
    redact: Callable[[str], str] = str,
) -> Callable[[Waiting], Coroutine[Any, Any, Capture]]:
    """Describe a capture's images, each with the whole conversation in view.

    If that fails the capture is in the pending folder, with the images that could be loaded, before this raises. One
    that succeeds is not removed from there: the caller does that once it is stored.

    Raises:
        ImageFailed: an image cannot be loaded.
        LLMError: the curator has no usable result.
        OSError: the capture could not be put into the pending folder.
    """
    known: OrderedDict[int, str] = OrderedDict()  # by attachment

    async def summarised(waiting: Waiting) -> Capture:
        loaded = dict(waiting.images)
        try:
            return await attempt(waiting, loaded)
        except Exception:
            await run_blocking(pending.keep, replace(waiting, images=loaded))
            raise

    async def attempt(waiting: Waiting, loaded: dict[Picture, Image]) -> Capture:
        summaries = {picture: known[file] for picture in waiting.pictures if (file := picture.attachment.id) in known}
        capture = in_words(waiting.capture, summaries, redact)
        new = [picture for picture in waiting.pictures if picture not in summaries]
        if not new:
            return capture
        await load(new, loaded)
        conversation = conversation_with(capture, {picture: loaded[picture] for picture in new})
        message_ids = [said.message_id for said in capture.said]
        summaries = summaries_in(await curator.summarise_images(conversation, message_ids, usage), new)
        for picture, summary in summaries.items():
            known[picture.attachment.id] = summary
            known.move_to_end(picture.attachment.id)
        while len(known) > KEPT:
            known.popitem(last=False)
        return in_words(capture, summaries, redact)

    async def load(pictures: list[Picture], loaded: dict[Picture, Image]) -> None:
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
