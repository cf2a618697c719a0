"""Captures that wait for descriptions of their images, in a file each."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from clock import from_rfc3339, rfc3339
from model.conversations import CONVERSATION_ID, REPLY, Image
from model.messages import Attachment, Place, PlaceKind
from model.words import replace_surrogates
from services.storage import files
from services.team import archive
from services.team.archive import PairTurn, Speaker
from services.team.captures import Capture, CapturedImage, CapturedMessage, RecentCaptures, Revision
from services.team.decisions import why_invalid

log = logging.getLogger(__name__)

MAX_PENDING_BYTES = 500_000_000
"""With more, what fails is stored without its images: a thread with many would fill the disk while a model is away."""
_PENDING_NAME = re.compile(r"[0-9]{1,20}-[0-9]{1,20}\.capture")


class DamagedCapture(ValueError):
    """A file that holds no valid capture; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class PendingCapture:
    """A capture whose images are still to be described. It was first tried at `since` (seconds since 1970); `images`
    holds those of the `image_refs` that were loaded so far.
    """

    since: float
    capture: Capture
    image_refs: tuple[CapturedImage, ...]
    images: Mapping[CapturedImage, Image] = field(default_factory=dict[CapturedImage, Image])

    @property
    def name(self) -> str:
        """The name of the file, made of the ids of the first and last message."""
        return f"{self.capture.messages[0].message_id}-{self.capture.messages[-1].message_id}.capture"

    def with_messages(self, messages: tuple[CapturedMessage, ...]) -> PendingCapture:
        """Return the capture with these messages, and with their images alone."""
        ids = {each.message_id for each in messages}
        refs = tuple(ref for ref in self.image_refs if ref.message_id in ids)
        images = {picture: image for picture, image in self.images.items() if picture.message_id in ids}
        return replace(self, capture=replace(self.capture, messages=messages), image_refs=refs, images=images)


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
    addressee_id: _Id = archive.UNKNOWN
    is_doubted: bool = False
    speaker: Speaker
    text: str


class _PlaceIds(_Record):
    id: _Id
    guild_id: _Id | None
    parent_id: _Id | None


class _Head(_Record):
    since: str
    place: _PlaceIds | None = None
    read_from: _Id = 0
    conversation_id: Annotated[str, Field(pattern=f"^{CONVERSATION_ID}$")] | None
    continues: _Id | None = None  # written by earlier versions
    said: Annotated[list[_Said], Field(min_length=1)]
    pictures: list[_Picture]


def render_pending(waiting: PendingCapture) -> bytes:
    r"""Return the content of a waiting capture's file: one line of JSON, then the bytes of those images that could be
    loaded, one after another.

        {"since": "2026-02-01T03:10:56.228Z", "conversation_id": "thread_14…",
         "place": {"id": "14…", "guild_id": "7", "parent_id": "11"},
         "said": [{"message_id": "14…", "author_id": "311", "speaker": "User", "text": "It says\n[image: a.png]"}],
         "pictures": [{"message_id": "14…", "index": 0, "line": -1, "attachment": {…}, "media_type": "image/png",
                       "bytes": 1234, "sha256": "9f86…"}]}
    """
    capture = waiting.capture
    contents = [waiting.images.get(ref) for ref in waiting.image_refs]
    head = {
        "since": rfc3339(waiting.since, digits=6),
        "conversation_id": capture.conversation_id,
        **({} if capture.place is None else {"place": _place_ids(capture.place)}),
        **({"read_from": str(capture.read_from)} if capture.read_from else {}),
        "said": [
            {"message_id": str(each.message_id), "author_id": str(each.author_id)}
            | ({"addressee_id": str(each.addressee_id)} if each.addressee_id else {})
            | ({"is_doubted": True} if each.is_doubted else {})
            | asdict(each.turn)
            for each in capture.messages
        ],
        "pictures": [
            asdict(ref, dict_factory=_with_text_ids)
            | {
                "media_type": "" if image is None else image.media_type,
                "bytes": None if image is None else len(image.data),
                "sha256": "" if image is None else hashlib.sha256(image.data).hexdigest(),
            }
            for ref, image in zip(waiting.image_refs, contents, strict=True)
        ],
    }
    line = replace_surrogates(json.dumps(head, ensure_ascii=False, separators=(",", ":"))) + "\n"
    return b"".join([line.encode(), *(image.data for image in contents if image is not None)])


def _place_ids(place: Place) -> dict[str, str | None]:
    ids = {"id": place.id, "guild_id": place.guild_id, "parent_id": place.parent_id}
    return {name: None if each is None else str(each) for name, each in ids.items()}


def _with_text_ids(fields: list[tuple[str, Any]]) -> dict[str, object]:
    return {name: str(value) if name in {"id", "message_id"} else value for name, value in fields}


def parse_pending(data: bytes) -> PendingCapture:
    """Parse what `render_pending` has written. Raises DamagedCapture."""
    line, end, rest = data.partition(b"\n")
    if not end:
        raise DamagedCapture("its first line has no end")
    try:
        head = _Head.model_validate_json(line)
        since = from_rfc3339(head.since)
    except ValueError as error:
        raise DamagedCapture(f"its first line: {why_invalid(error)}") from None
    messages = tuple(
        CapturedMessage(
            each.message_id, each.author_id, PairTurn(each.speaker, each.text), each.addressee_id, each.is_doubted
        )
        for each in head.said
    )
    lengths = {each.message_id: each.turn.text.count("\n") + 1 for each in messages}
    refs: list[CapturedImage] = []
    images: dict[CapturedImage, Image] = {}
    for each in head.pictures:
        file = Attachment(**dict(each.attachment))
        ref = CapturedImage(each.message_id, each.index, each.line, file)
        if -ref.line > lengths.get(ref.message_id, 0):
            raise DamagedCapture(f"attachment {file.id} has no place in a message")
        refs.append(ref)
        if each.bytes is not None:
            content, rest = rest[: each.bytes], rest[each.bytes :]
            if hashlib.sha256(content).hexdigest() != each.sha256:
                raise DamagedCapture(f"the content of attachment {file.id} is not what was stored")
            images[ref] = Image(file.filename, each.media_type, content)
    if rest:
        raise DamagedCapture("there is more in it than was stored")
    conversation_id = head.conversation_id or REPLY.make_id(head.continues or messages[0].message_id)
    place = None if head.place is None else Place(kind=PlaceKind.CHANNEL, **dict(head.place))
    capture = Capture(None, conversation_id, messages, place, head.read_from)
    return PendingCapture(since, capture, tuple(refs), images)


@dataclass(frozen=True, slots=True)
class PendingFolder:
    """The waiting captures on disk. Blocking. Raises OSError, as the system reported it.

    Each capture has a file of its own, which is written whole or not at all and holds all that the next try needs.
    """

    folder: Path

    def keep(self, waiting: PendingCapture) -> None:
        """Store a capture; it is on the disk when this returns. Earlier ones of its conversation that it contains are
        dropped.
        """
        earlier = self._earlier(waiting)
        files.replace(self.folder / waiting.name, render_pending(waiting))
        for each in earlier:
            self.drop(each)

    def take_over(self, waiting: PendingCapture) -> PendingCapture:
        """Return a capture with the age and the loaded images of earlier ones of its conversation that wait."""
        for each in self._earlier(waiting):
            images = {ref: image for ref, image in each.images.items() if ref in waiting.image_refs}
            waiting = replace(waiting, since=min(each.since, waiting.since), images={**images, **waiting.images})
        return waiting

    def _earlier(self, waiting: PendingCapture) -> list[PendingCapture]:
        """Return the waiting captures of the same conversation all of whose messages this one has."""
        ids = {each.message_id for each in waiting.capture.messages}
        found = self.all({waiting.capture.messages[0].message_id})
        return [
            each
            for each in found
            if each.name != waiting.name
            and each.capture.conversation_id == waiting.capture.conversation_id
            and ids.issuperset(message.message_id for message in each.capture.messages)
        ]

    def is_full(self) -> bool:
        """Return True if what waits takes more than `MAX_PENDING_BYTES`."""
        return sum(path.stat().st_size for path in self._paths()) > MAX_PENDING_BYTES

    def drop(self, waiting: PendingCapture) -> None:
        files.remove(self.folder / waiting.name)

    def is_empty(self) -> bool:
        """Return True if nothing waits. Never raises: False if the folder cannot be read."""
        try:
            return not any(map(_PENDING_NAME.fullmatch, os.listdir(self.folder)))  # noqa: PTH208 (names are enough)
        except OSError as error:
            return isinstance(error, FileNotFoundError)

    def all(self, message_ids: Collection[int] | None = None) -> Iterator[PendingCapture]:
        """Yield the waiting captures, the oldest first; if `message_ids` are given, those that may hold one of these.
        One at a time is in memory, as each has its images. Damaged files are logged and moved to `<file>.damaged`.
        """
        paths = [path for path in self._paths() if message_ids is None or _may_hold(path.name, message_ids)]
        for path in sorted(paths, key=lambda path: (_since(path), path.name)):
            try:
                yield parse_pending(path.read_bytes())
            except FileNotFoundError:
                continue  # it was dropped meanwhile
            except DamagedCapture as error:
                aside = files.move_aside(path, ".damaged")
                log.warning("%s holds no capture: %s; set aside as %s", path, error, aside.name)

    def _paths(self) -> list[Path]:
        try:
            return [path for path in self.folder.iterdir() if _PENDING_NAME.fullmatch(path.name) and path.is_file()]
        except FileNotFoundError:
            return []


def _may_hold(name: str, message_ids: Iterable[int]) -> bool:
    first, _, last = name.removesuffix(".capture").partition("-")
    return any(int(first) <= each <= int(last) for each in message_ids)


def _since(path: Path) -> str:
    """Return since when a capture waits, of which only the first line is read; empty: it is damaged."""
    try:
        with path.open("rb") as file:
            return str(json.loads(file.readline())["since"])
    except (FileNotFoundError, ValueError, KeyError, TypeError, RecursionError):
        return ""


def revise_pending(folder: PendingFolder, captures: RecentCaptures, revisions: Collection[Revision]) -> None:
    """Write the waiting captures that hold one of these messages as they read now: what is known of edits, deletions
    and doubts is lost with a restart. Those in a deleted place are dropped. Blocking. Raises OSError.
    """
    message_ids = {each.message_id for each in revisions if not each.is_place}
    place_ids = {each.message_id for each in revisions if each.is_place}
    for waiting in folder.all(None if place_ids else message_ids):
        place = waiting.capture.place
        if place is not None and not place_ids.isdisjoint((place.id, place.channel_id)):
            folder.drop(waiting)
        elif any(each.message_id in message_ids for each in waiting.capture.messages):
            revised = waiting.with_messages(captures.with_revisions(waiting.capture).messages)
            if revised.capture.is_exchange:
                folder.keep(revised)
            if not revised.capture.is_exchange or revised.name != waiting.name:
                folder.drop(waiting)
