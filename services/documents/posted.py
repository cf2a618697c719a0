"""Files that people post in threads: which count as evidence.

Attachments count, and long code blocks if wanted (docs/documents.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from clock import rfc3339
from model.messages import Attachment, Message, Place
from services.documents.limits import KINDS
from services.documents.store import naming
from services.documents.store.protocol import Collection, Document, Origin

PLACE_ID = "place_id"  # metadata of a document: the place of its message


_OPENS = re.compile(r"[ \t]*(?P<mark>`{3,}+|~{3,}+)(?P<info>[^`]*+)")
_WORD = re.compile(r"[a-z0-9]{1,12}")
_ENDINGS = {"python": ".py", "bash": ".sh", "shell": ".sh", "javascript": ".js", "rust": ".rs", "yml": ".yaml"}
_NOT_TEXT = ("image/", "audio/", "video/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A file that somebody has posted in a conversation."""

    case_id: int  # the thread that it belongs to
    guild_id: int | None
    place_id: int  # where its message is: in the thread, or in the channel that the thread belongs to
    message_id: int
    uploader_id: int
    attachment: Attachment
    at: float  # when it was posted
    text: str | None = None  # the content of a code block, which is no file on Discord

    @property
    def filename(self) -> str:
        return self.attachment.filename

    @property
    def key(self) -> tuple[int, str]:
        return self.attachment.id, self.filename

    @property
    def collection(self) -> Collection:
        case_id = str(self.case_id)
        return Collection(naming.case(case_id), "case", case_id, self.guild_id)

    @property
    def origin(self) -> Origin:
        return Origin(
            self.filename,
            uploader_id=self.uploader_id,
            message_id=self.message_id,
            attachment_id=self.attachment.id,
            uploaded_at=rfc3339(self.at),
            extra={PLACE_ID: str(self.place_id)},
        )

    def is_in(self, doc: Document) -> bool:
        """Whether a document was made of this file."""
        return doc.filename == self.filename and doc.came_as(self.attachment.id)


def candidates_in(message: Message, case_id: int, *, block_lines: int | None = None) -> Iterator[Candidate]:
    """The files in a message, for a thread. `block_lines`: from how many lines on a code block counts as one; None:
    none does. Pictures, sound and films are not searched, and are left to others.
    """

    def candidate(file: Attachment, text: str | None = None) -> Candidate:
        return Candidate(
            case_id=case_id,
            guild_id=message.guild_id,
            place_id=message.channel_id,
            message_id=message.id,
            uploader_id=message.author.id,
            attachment=file,
            at=message.at,
            text=text,
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
    for info, lines in _blocks(text.split("\n")):
        if len(lines) >= least:
            word = _WORD.match(info.strip().lower())
            ending = "" if word is None else _ENDINGS.get(word[0], f".{word[0]}")
            yield "".join(f"{line}\n" for line in lines), ending if ending in KINDS else ".txt"


def _blocks(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Of each block the words behind its opening mark, and its lines. One that is never closed is none."""
    shut = {line.strip(" \t"): number for number, line in enumerate(lines)}
    # The last line of each kind: the only one that has to be there for a mark to be closed.
    at = 0
    while at < len(lines):
        opened, at = _OPENS.fullmatch(lines[at]), at + 1
        if opened is None or shut.get(opened["mark"], -1) < at:
            continue
        begun = at
        while lines[at].strip(" \t") != opened["mark"]:
            at += 1
        yield opened["info"], lines[begun:at]
        at += 1


def is_closed(place: Place, solved_tags: frozenset[str]) -> bool:
    """Whether a thread's case is closed: locked, or tagged as solved. An archived one is not closed yet."""
    return place.locked or any(tag.strip().casefold() in solved_tags for tag in place.tags)
