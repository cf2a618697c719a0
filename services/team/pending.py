r"""Captures that wait for their images to be put into words (SPEC 6, "Image summary"): one file each, which holds all
that another try needs.

    {"since": "2026-02-01T03:10:56.228Z", "conversation_id": "thread_14…", "continues": null,
     "said": [{"message_id": "14…", "author_id": "311", "speaker": "User", "text": "It says\n[image: a.png]"}],
     "pictures": [{"message_id": "14…", "index": 0, "line": -1, "attachment": {…}, "media_type": "image/png",
                   "bytes": 1234, "sha256": "9f86…"}]}
    (one line; then the bytes of the images, one after another, of those that could be had)

It is written whole or not at all, so that there is never a capture without its images or the other way round.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from clock import from_rfc3339, rfc3339
from model.conversations import Image
from model.messages import Attachment
from services.storage import files
from services.team.archive import PairTurn, Speaker
from services.team.captures import Capture, Picture, Said

log = logging.getLogger(__name__)

ENDING = ".capture"
_NAME = re.compile(r"[0-9]{1,20}-[0-9]{1,20}\.capture")

Id = Annotated[str, Field(pattern=r"^[0-9]{1,20}$")]


class Damaged(ValueError):
    """A file that holds no capture; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A capture, and whatever of its images could be had so far."""

    since: float
    """When it was first tried, seconds since 1970."""
    capture: Capture
    pictures: tuple[Picture, ...]
    images: Mapping[Picture, Image] = field(default_factory=dict[Picture, Image])

    @property
    def name(self) -> str:
        """That of its file: the first and the last message in it."""
        said = self.capture.said
        return f"{said[0].message_id}-{said[-1].message_id}{ENDING}"


class _Attachment(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    id: Id
    filename: str
    size: int
    url: str
    content_type: str | None


class _Picture(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    message_id: Id
    index: Annotated[int, Field(ge=0)]
    line: Annotated[int, Field(lt=0)]
    attachment: _Attachment
    media_type: str
    bytes: Annotated[int, Field(ge=0)] | None
    """None: it could not be had."""
    sha256: str


class _Said(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    message_id: Id
    author_id: Id
    speaker: Literal["User", "Team"]
    text: str


class _Head(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    since: str
    conversation_id: Annotated[str, Field(pattern=r"^(?:thread|reply)_[0-9]{1,20}$")] | None
    continues: Id | None
    said: Annotated[list[_Said], Field(min_length=1)]
    pictures: list[_Picture]


def render(waiting: Waiting) -> bytes:
    capture = waiting.capture
    contents = [waiting.images.get(picture) for picture in waiting.pictures]
    head = _Head(
        since=rfc3339(waiting.since, digits=6),
        conversation_id=capture.conversation_id,
        continues=None if capture.continues is None else str(capture.continues),
        said=[
            _Said(
                message_id=str(each.message_id),
                author_id=str(each.author_id),
                speaker=each.turn.speaker.value,
                text=each.turn.text,
            )
            for each in capture.said
        ],
        pictures=[
            _Picture(
                message_id=str(picture.message_id),
                index=picture.index,
                line=picture.line,
                attachment=_Attachment(
                    id=str(picture.attachment.id),
                    filename=_whole(picture.attachment.filename),
                    size=picture.attachment.size,
                    url=_whole(picture.attachment.url),
                    content_type=picture.attachment.content_type,
                ),
                media_type="" if image is None else image.media_type,
                bytes=None if image is None else len(image.data),
                sha256="" if image is None else hashlib.sha256(image.data).hexdigest(),
            )
            for picture, image in zip(waiting.pictures, contents, strict=True)
        ],
    )
    return b"".join([head.model_dump_json().encode(), b"\n", *(image.data for image in contents if image is not None)])


def parse(data: bytes) -> Waiting:
    """The inverse of `render`.

    Raises:
        Damaged: it is not what `render` gives.
    """
    line, end, rest = data.partition(b"\n")
    if not end:
        raise Damaged("its first line has no end")
    try:
        head = _Head.model_validate_json(line)
        since = from_rfc3339(head.since)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise Damaged(f"its first line: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    except ValueError:
        raise Damaged("its time is none") from None
    said = tuple(
        Said(int(each.message_id), int(each.author_id), PairTurn(Speaker(each.speaker), each.text))
        for each in head.said
    )
    lengths = {each.message_id: each.turn.text.count("\n") + 1 for each in said}
    continues = None if head.continues is None else int(head.continues)
    pictures: list[Picture] = []
    images: dict[Picture, Image] = {}
    for each in head.pictures:
        file = each.attachment
        attachment = Attachment(int(file.id), file.filename, file.size, file.url, file.content_type)
        picture = Picture(int(each.message_id), each.index, each.line, attachment)
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
    return Waiting(since, Capture(None, head.conversation_id, said, continues), tuple(pictures), images)


@dataclass(frozen=True, slots=True)
class PendingFolder:
    """The captures that wait, on disk. Blocking. Raises OSError, as the system reported it."""

    folder: Path

    def keep(self, waiting: Waiting) -> None:
        """When this returns, it is on the disk."""
        files.replace(self.folder / waiting.name, render(waiting))

    def drop(self, waiting: Waiting) -> None:
        files.remove(self.folder / waiting.name)

    def all(self) -> list[Waiting]:
        """Those who wait longest first. A file that is damaged is reported, and set aside as `<file>.damaged`."""
        try:
            paths = sorted(path for path in self.folder.iterdir() if _NAME.fullmatch(path.name) and path.is_file())
        except FileNotFoundError:
            return []
        found: list[Waiting] = []
        for path in paths:
            try:
                waiting = parse(path.read_bytes())
            except Damaged as error:
                aside = files.move_aside(path, ".damaged")
                log.warning("%s holds no capture: %s; set aside as %s", path, error, aside.name)
            else:
                found.append(waiting)
        return sorted(found, key=lambda waiting: (waiting.since, waiting.name))


def _whole(text: str) -> str:
    """Half of a surrogate pair, which UTF-8 cannot hold, becomes U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
