"""Pictures in a request: told from their bytes, and put into the form that an endpoint takes."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Protocol

from model.conversations import Image
from model.messages import Attachment
from services.llm.endpoint import Part

MAX_IMAGE_BYTES = 10_000_000


class ImageFailed(Exception):
    """A picture cannot be used; the message names the attachment's id and the reason, never its signed address."""


class ImageSource(Protocol):
    """Where attached pictures are read from: Discord's CDN, or the folder beside a recording."""

    async def load(self, attachment: Attachment) -> Image:
        """One picture, of at most `MAX_IMAGE_BYTES`, its type told from its bytes.

        Raises:
            ImageFailed: it cannot be had, is too large, or is no picture.
        """
        ...


async def load_images(source: ImageSource, attachments: Iterable[Attachment]) -> tuple[Image, ...]:
    """The pictures among `attachments`, in their order.

    One after the other, so that a message with ten of them holds one connection and fails at the first that fails.

    Raises:
        ImageFailed: one of them cannot be had. All are needed: an answer about half of what was shown misleads.
    """
    return tuple([await source.load(attachment) for attachment in attachments if attachment.is_image])


def checked_image(attachment: Attachment, data: bytes) -> Image:
    """`data` as the picture it is.

    Raises:
        ImageFailed: it is none of png, jpeg, gif and webp.
    """
    media_type = sniff(data)
    if media_type is None:
        raise ImageFailed(f"attachment {attachment.id} is no png, jpeg, gif or webp image, whatever its name says")
    return Image(name=attachment.filename, media_type=media_type, data=data)


def sniff(data: bytes) -> str | None:
    """The media type by the first bytes (WHATWG MIME Sniffing, "Matching an image type pattern"), or None."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data.startswith(b"RIFF") and data[8:14] == b"WEBPVP":
        return "image/webp"
    return None


class ImageAdapter(Protocol):
    def part(self, image: Image) -> Part:
        """The piece of a user message that shows `image`."""
        ...


class OpenAIImageAdapter:
    """As OpenAI's chat completions take it; within the message, since Crynux fetches no addresses."""

    def part(self, image: Image) -> Part:
        data = base64.b64encode(image.data).decode("ascii")
        return {"type": "image_url", "image_url": {"url": f"data:{image.media_type};base64,{data}"}}


_ADAPTERS: dict[str, type[ImageAdapter]] = {"OpenAIImageAdapter": OpenAIImageAdapter}


def image_adapter(name: str) -> ImageAdapter:
    """The adapter of that name, as `ai_response.llm_image_adapter` gives it.

    Raises:
        ValueError: there is none; it lists those there are.
    """
    try:
        return _ADAPTERS[name]()
    except KeyError:
        raise ValueError(f"unknown image adapter {name!r}; known: {', '.join(sorted(_ADAPTERS))}") from None
