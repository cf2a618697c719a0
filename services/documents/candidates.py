"""The files in messages that count as evidence (DOCUMENT_QA 1): attachments, and long code blocks if wanted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from model.messages import Attachment, Message, Place
from services.documents.extensions import KINDS

_BLOCK = re.compile(
    r"^[ \t]*(?P<mark>`{3,}|~{3,})(?P<info>[^\n`]*)\n(?P<text>.*?)^[ \t]*(?P=mark)[ \t]*$", re.MULTILINE | re.DOTALL
)
_WORD = re.compile(r"[a-z0-9]{1,12}")
_ENDINGS = {"python": ".py", "bash": ".sh", "shell": ".sh", "javascript": ".js", "rust": ".rs", "yml": ".yaml"}
_NOT_TEXT = ("image/", "audio/", "video/")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file that somebody has put into a conversation."""

    case_id: int
    """The thread that it belongs to."""
    guild_id: int | None
    place_id: int
    """Where its message stands: in the thread, or in the channel that the thread belongs to."""
    message_id: int
    uploader_id: int
    attachment: Attachment
    at: float
    """When it was posted."""
    text: str | None = None
    """Of a code block, which is no file on Discord: what is in it."""

    @property
    def filename(self) -> str:
        return self.attachment.filename

    @property
    def key(self) -> tuple[int, str]:
        return self.attachment.id, self.filename


def offers_of(message: Message, case_id: int, *, block_lines: int | None = None) -> Iterator[Candidate]:
    """What a message offers to a thread. `block_lines`: how many lines make a code block long; None: blocks do not
    count. Pictures, sound and films are no files to search, and are left to others.
    """

    def candidate(file: Attachment, text: str | None = None) -> Candidate:
        return Candidate(
            case_id, message.guild_id, message.channel_id, message.id, message.author.id, file, message.at, text
        )

    if message.is_system or message.author.is_bot:
        return
    for file in message.attachments:
        if not file.is_image and not (file.content_type or "").startswith(_NOT_TEXT):
            yield candidate(file)
    if block_lines is None:
        return
    for number, (text, ending) in enumerate(_long_blocks(message.text, block_lines), 1):
        name = f"message-{message.id}-block-{number}{ending}"
        yield candidate(Attachment(message.id, name, len(text.encode()), ""), text)


def _long_blocks(text: str, least: int) -> Iterator[tuple[str, str]]:
    """The text of each long block, and the ending that a file of it would have."""
    for found in _BLOCK.finditer(text):
        block = found["text"]
        if block.count("\n") >= least:
            word = _WORD.match(found["info"].strip().lower())
            ending = "" if word is None else _ENDINGS.get(word[0], f".{word[0]}")
            yield block, ending if ending in KINDS else ".txt"


def is_closed(place: Place, solved_tags: frozenset[str]) -> bool:
    """Whether a thread's case is closed: locked, or tagged as solved. Archived is not closed yet."""
    return place.locked or any(tag.strip().casefold() in solved_tags for tag in place.tags)
