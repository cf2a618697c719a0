"""Pictures, from wherever attachments come."""

from __future__ import annotations

from dataclasses import dataclass

from model.conversations import Image
from model.messages import Attachment
from services.discord import AttachmentFailed, Attachments
from services.llm.images import MAX_IMAGE_BYTES, ImageFailed, checked_image


@dataclass(frozen=True, slots=True)
class AttachedImages:
    """Implements `services.llm.images.ImageSource`."""

    attachments: Attachments

    async def load(self, attachment: Attachment) -> Image:
        try:
            data = await self.attachments.content(attachment, MAX_IMAGE_BYTES)
        except AttachmentFailed as error:
            raise ImageFailed(str(error)) from error
        return checked_image(attachment, data)
