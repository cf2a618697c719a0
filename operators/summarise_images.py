"""Images of captured conversations, put into words before anything is stored."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any

from clock import run_blocking
from model.conversations import Image
from services.assistant import Curator, conversation_with, in_words, summaries_in
from services.llm import ImageFailed, ImageSource, Usage
from services.team import Capture, PendingFolder, Picture, Waiting

KEPT = 1_000
"""Summaries that are remembered: a conversation that grows is captured again and again, with the same images."""


def summarise_images(
    curator: Curator,
    source: ImageSource,
    pending: PendingFolder,
    usage: Usage,
    *,
    redact: Callable[[str], str] = str,
) -> Callable[[Waiting], Coroutine[Any, Any, Capture]]:
    """Put a capture's images into words, each with the whole conversation in view.

    When that fails the capture is in the pending folder, with those of its images that could be had, before this
    raises. One that succeeds stays there if it was: the caller takes it out once it is stored.

    Raises:
        ImageFailed: an image cannot be had.
        LLMError: the curator has no usable result.
        OSError: the capture could not even be put aside.
    """
    known: OrderedDict[int, str] = OrderedDict()
    """By attachment."""

    async def summarised(waiting: Waiting) -> Capture:
        had = dict(waiting.images)
        try:
            return await attempt(waiting, had)
        except Exception:
            await run_blocking(pending.keep, replace(waiting, images=had))
            raise

    async def attempt(waiting: Waiting, had: dict[Picture, Image]) -> Capture:
        told = {picture: known[file] for picture in waiting.pictures if (file := picture.attachment.id) in known}
        capture = in_words(waiting.capture, told, redact)
        new = [picture for picture in waiting.pictures if picture not in told]
        if not new:
            return capture
        await load(new, had)
        conversation = conversation_with(capture, {picture: had[picture] for picture in new})
        message_ids = [said.message_id for said in capture.said]
        result = await curator.summarise_images(conversation, message_ids, usage)
        summaries = summaries_in(result, new)
        remember(summaries)
        return in_words(capture, summaries, redact)

    async def load(pictures: list[Picture], had: dict[Picture, Image]) -> None:
        """All that can be had, so that a later try needs only the rest: addresses expire."""
        failed: ImageFailed | None = None
        for picture in pictures:
            if picture not in had:
                try:
                    had[picture] = await source.load(picture.attachment)
                except ImageFailed as error:
                    failed = failed or error
        if failed is not None:
            raise failed

    def remember(summaries: Mapping[Picture, str]) -> None:
        for picture, summary in summaries.items():
            known[picture.attachment.id] = summary
            known.move_to_end(picture.attachment.id)
        while len(known) > KEPT:
            known.popitem(last=False)

    return summarised
