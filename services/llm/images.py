"""Images in a request: loaded from attachments, checked by their bytes, and put into an endpoint's format."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from model.conversations import Image
from model.messages import Attachment
from services.discord import AttachmentFailed, Attachments, AttachmentUnreachable
from services.llm.endpoint import ContentPart

MAX_IMAGE_BYTES = 10_000_000
"""The limit of one image."""
MAX_IMAGES, MAX_CALL_IMAGE_BYTES = 5, 10_000_000
"""The limits of one call. Each byte is in memory several times while a call runs, and many calls may run at once."""


class ImageFailed(Exception):
    """An image cannot be loaded; later it may be, unless the error is an `ImageUnusable`. The message gives the
    attachment's id and the reason, never its signed address.
    """


class ImageUnusable(ImageFailed):
    """The attachment is no image, is too large or is gone: it cannot be loaded later either."""


log = logging.getLogger(__name__)


class ImageSource(Protocol):
    async def load(self, attachment: Attachment) -> Image:
        """Load one image of at most `MAX_IMAGE_BYTES`. Its type is detected from its bytes. Raises ImageFailed: it
        cannot be loaded now; ImageUnusable: it is gone, is too large, or is no image.
        """
        ...


@dataclass(frozen=True, slots=True)
class AttachedImages:
    """An `ImageSource` over attachments: from Discord's CDN, or from the folder beside a recording."""

    attachments: Attachments

    async def load(self, attachment: Attachment) -> Image:
        try:
            data = await self.attachments.content(attachment, MAX_IMAGE_BYTES)
        except AttachmentUnreachable as error:
            raise ImageFailed(str(error)) from error
        except AttachmentFailed as error:
            raise ImageUnusable(str(error)) from error
        media_type = sniff(data)
        if media_type is None:
            raise ImageUnusable(
                f"attachment {attachment.id} is no png, jpeg, gif or webp image, whatever its name says"
            )
        return Image(name=attachment.filename, media_type=media_type, data=data)


async def load_images(
    source: ImageSource, attachments: Iterable[Attachment], *, required: bool = True
) -> tuple[Image, ...]:
    """Return the images among `attachments`, in order, without those that cannot be used, which are logged.

    Loaded one after another, so that a message with ten images holds one connection and, if they are `required`, stops
    at the first that cannot be loaded now.

    Raises:
        ImageFailed: one is `required` and cannot be loaded now: an answer about half of what was shown misleads.
    """
    loaded: list[Image] = []
    for attachment in attachments:
        if not attachment.is_image:
            continue
        try:
            loaded.append(await source.load(attachment))
        except ImageFailed as error:
            if required and not isinstance(error, ImageUnusable):
                raise
            log.info("an image stays a placeholder: %s", error)
    return tuple(loaded)


def choose_images(attachments: Iterable[Attachment]) -> frozenset[int]:
    """Return the ids of the images that one call may show. `attachments`: the most important first. An image that does
    not fit takes no room from those that follow.
    """
    chosen: dict[int, int] = {}
    for attachment in attachments:
        size = sum(chosen.values()) + attachment.size
        if attachment.is_image and len(chosen) < MAX_IMAGES and size <= MAX_CALL_IMAGE_BYTES:
            chosen[attachment.id] = attachment.size
    return frozenset(chosen)


def sniff(data: bytes) -> str | None:
    """Return the media type by the first bytes (WHATWG MIME Sniffing, "Matching an image type pattern"), or None."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data.startswith(b"RIFF") and data[8:14] == b"WEBPVP":
        return "image/webp"
    return None


ImageAdapter = Callable[[Image], ContentPart]
"""Makes the content part of a user message that shows an image."""


def openai_image(image: Image) -> ContentPart:
    """Return an image in OpenAI's chat completions; inline, as not every endpoint fetches the address of an image."""
    data = base64.b64encode(image.data).decode("ascii")
    return {"type": "image_url", "image_url": {"url": f"data:{image.media_type};base64,{data}"}}


_ADAPTERS: dict[str, ImageAdapter] = {"OpenAIImageAdapter": openai_image}


def image_adapter(name: str) -> ImageAdapter:
    """Return the adapter that `ai_response.llm_image_adapter` names. Raises ValueError, which lists the known ones."""
    if name not in _ADAPTERS:
        raise ValueError(f"unknown image adapter {name!r}; known: {', '.join(sorted(_ADAPTERS))}")
    return _ADAPTERS[name]
