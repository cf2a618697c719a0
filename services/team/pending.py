r"""Captures that wait for their images to be described (SPEC 6, "Image summary"): one file each, with all that another
try needs. A file is written whole or not at all.

    {"since": "2026-02-01T03:10:56.228Z", "conversation_id": "thread_14…",
     "said": [{"message_id": "14…", "author_id": "311", "speaker": "User", "text": "It says\n[image: a.png]"}],
     "pictures": [{"message_id": "14…", "index": 0, "line": -1, "attachment": {…}, "media_type": "image/png",
                   "bytes": 1234, "sha256": "9f86…"}]}
    (one line; then the bytes of those images that could be loaded, one after another)
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from clock import from_rfc3339, rfc3339
from model.conversations import Image
from model.messages import Attachment
from services.storage import files
from services.team.archive import PairTurn, Speaker, encodable
from services.team.captures import REPLY, Capture, Picture, Said
from services.team.decisions import why_invalid

log = logging.getLogger(__name__)

_NAME = re.compile(r"[0-9]{1,20}-[0-9]{1,20}\.capture")


class Damaged(ValueError):
    """A file that holds no valid capture; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A capture whose images are still to be described. It was first tried at `since` (seconds since 1970); `images`
    are those that could be loaded so far.
    """

    since: float
    capture: Capture
    pictures: tuple[Picture, ...]
    images: Mapping[Picture, Image] = field(default_factory=dict[Picture, Image])

    @property
    def name(self) -> str:
        """The name of its file, made of the ids of its first and last message."""
        return f"{self.capture.said[0].message_id}-{self.capture.said[-1].message_id}.capture"


_Id = Annotated[int, Field(strict=False, ge=0, lt=10**20)]  # a string, as no JSON number is safe with so many digits


class _Record(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class _Attachment(_Record):
    id: _Id
    filename: str
    size: int
    url: str
    content_type: str | None


class _Picture(_Record):
    message_id: _Id
    index: Annotated[int, Field(ge=0)]
    line: Annotated[int, Field(lt=0)]
    attachment: _Attachment
    media_type: str
    bytes: Annotated[int, Field(ge=0)] | None  # None: it could not be loaded
    sha256: str


class _Said(_Record):
    message_id: _Id
    author_id: _Id
    speaker: Speaker
    text: str


class _Head(_Record):
    since: str
    conversation_id: Annotated[str, Field(pattern=r"^(?:thread|reply)_[0-9]{1,20}$")] | None
    continues: _Id | None = None  # written by earlier versions
    said: Annotated[list[_Said], Field(min_length=1)]
    pictures: list[_Picture]


def render(waiting: Waiting) -> bytes:
    capture = waiting.capture
    contents = [waiting.images.get(picture) for picture in waiting.pictures]
    head = {
        "since": rfc3339(waiting.since, digits=6),
        "conversation_id": capture.conversation_id,
        "said": [
            {"message_id": str(each.message_id), "author_id": str(each.author_id), **asdict(each.turn)}
            for each in capture.said
        ],
        "pictures": [
            asdict(picture, dict_factory=_with_text_ids)
            | {
                "media_type": "" if image is None else image.media_type,
                "bytes": None if image is None else len(image.data),
                "sha256": "" if image is None else hashlib.sha256(image.data).hexdigest(),
            }
            for picture, image in zip(waiting.pictures, contents, strict=True)
        ],
    }
    line = encodable(json.dumps(head, ensure_ascii=False, separators=(",", ":"))) + "\n"
    return b"".join([line.encode(), *(image.data for image in contents if image is not None)])


def _with_text_ids(fields: list[tuple[str, Any]]) -> dict[str, object]:
    return {name: str(value) if name in {"id", "message_id"} else value for name, value in fields}


def parse(data: bytes) -> Waiting:
    """The inverse of `render`. Raises Damaged."""
    line, end, rest = data.partition(b"\n")
    if not end:
        raise Damaged("its first line has no end")
    try:
        head = _Head.model_validate_json(line)
        since = from_rfc3339(head.since)
    except ValueError as error:
        raise Damaged(f"its first line: {why_invalid(error)}") from None
    said = tuple(Said(each.message_id, each.author_id, PairTurn(each.speaker, each.text)) for each in head.said)
    lengths = {each.message_id: each.turn.text.count("\n") + 1 for each in said}
    pictures: list[Picture] = []
    images: dict[Picture, Image] = {}
    for each in head.pictures:
        file = Attachment(**dict(each.attachment))
        picture = Picture(each.message_id, each.index, each.line, file)
        if -picture.line > lengths.get(picture.message_id, 0):
            raise Damaged(f"attachment {file.id} has no place in a message")
        pictures.append(picture)
        if each.bytes is not None:
            content, rest = rest[: each.bytes], rest[each.bytes :]
            if hashlib.sha256(content).hexdigest() != each.sha256:
                raise Damaged(f"the content of attachment {file.id} is not what was stored")
            images[picture] = Image(file.filename, each.media_type, content)
    if rest:
        raise Damaged("there is more in it than was stored")
    conversation_id = head.conversation_id or f"{REPLY}{head.continues or said[0].message_id}"
    return Waiting(since, Capture(None, conversation_id, said), tuple(pictures), images)


@dataclass(frozen=True, slots=True)
class PendingFolder:
    """The captures that wait, on disk. Blocking. Raises OSError, as the system reported it."""

    folder: Path

    def keep(self, waiting: Waiting) -> None:
        """Store a capture. When this returns, it is on the disk."""
        files.replace(self.folder / waiting.name, render(waiting))

    def drop(self, waiting: Waiting) -> None:
        files.remove(self.folder / waiting.name)

    def is_empty(self) -> bool:
        """True if nothing waits. Never raises: False where that cannot be told."""
        try:
            return not any(map(_NAME.fullmatch, os.listdir(self.folder)))  # noqa: PTH208 (names are enough)
        except OSError as error:
            return isinstance(error, FileNotFoundError)

    def all(self) -> list[Waiting]:
        """Return all waiting captures, the oldest first. Damaged files are logged and moved to `<file>.damaged`."""
        try:
            paths = sorted(path for path in self.folder.iterdir() if _NAME.fullmatch(path.name) and path.is_file())
        except FileNotFoundError:
            return []
        found: list[Waiting] = []
        for path in paths:
            try:
                found.append(parse(path.read_bytes()))
            except Damaged as error:
                aside = files.move_aside(path, ".damaged")
                log.warning("%s holds no capture: %s; set aside as %s", path, error, aside.name)
        return sorted(found, key=lambda waiting: (waiting.since, waiting.name))
