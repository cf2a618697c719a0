"""Captures before they are stored: how captures of one conversation are joined, the files in which captures wait for
image descriptions, and the links from stored pairs to Discord.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from clock import from_rfc3339, rfc3339
from model.bounded import BoundedDict
from model.conversations import CONVERSATION_ID, REPLY, ConversationKind, Image, kind_of
from model.messages import Attachment, Message, Part, discord_address, snowflake_time
from model.words import replace_surrogates
from services.storage import files
from services.team import archive
from services.team.archive import REMOVED, Pair, PairTurn, Speaker
from services.team.decisions import why_invalid

# Captures of one conversation

KEPT_CONVERSATIONS = 2_000  # conversations in memory; the least recently captured are dropped first
KEPT_REVISIONS = 2_000  # for captures that are on their way to the archive
KEPT_IN_THREADS = 10_000  # ids of the messages in threads that were stored last


@dataclass(frozen=True, slots=True)
class CapturedMessage:
    """One message of a capture."""

    message_id: int
    author_id: int
    turn: PairTurn


@dataclass(frozen=True, slots=True)
class Capture:
    """A conversation to be stored: a team member's part, and the messages around it.

    Attributes:
        part: None if it had its outcome already, and the capture is tried again.
        said: in order of message id.
    """

    part: Part | None
    conversation_id: str
    said: tuple[CapturedMessage, ...]

    @property
    def kind(self) -> ConversationKind:
        return kind_of(self.conversation_id)

    @property
    def is_exchange(self) -> bool:
        """As `archive.is_exchange`: what is none is not stored."""
        return archive.is_exchange(self.kind, (said.turn for said in self.said))

    @property
    def said_at(self) -> float:
        """The time of the last message, in seconds since 1970, UTC."""
        return snowflake_time(self.said[-1].message_id)


@dataclass(frozen=True, slots=True)
class Revision:
    """How a message reads since it was edited or deleted.

    Attributes:
        text: None: it was deleted.
        author_id: `archive.UNKNOWN` if it is not known.
        placeholders: how many lines at the end of the text stand for attachments.
    """

    message_id: int
    text: str | None = None
    author_id: int = archive.UNKNOWN
    placeholders: int = 0

    def of(self, turn: PairTurn) -> PairTurn:
        """Return the turn as it reads now. What is removed stays so, and so do descriptions of images while the words
        are the same.
        """
        if self.text is None:
            return replace(turn, text=REMOVED)
        if turn.text == REMOVED or self._words(turn.text) == self._words(self.text):
            return turn
        return replace(turn, text=self.text)

    def _words(self, text: str) -> list[str]:
        lines = text.split("\n")
        return lines[: len(lines) - self.placeholders]


def revised(said: Iterable[CapturedMessage], revisions: Mapping[int, Revision]) -> tuple[CapturedMessage, ...]:
    """Return messages as they read after `revisions`, which are by message.

    Under an answer stays what was answered: a user's edit of an earlier message has no effect. With the last question
    before an answer the answer is removed, or it would be an answer to the question before.
    """
    before = tuple(said)
    answered = max((each.message_id for each in before if each.turn.speaker is Speaker.TEAM), default=0)

    def reads(each: CapturedMessage) -> CapturedMessage:
        revision = revisions.get(each.message_id)
        stays = revision is None or (
            revision.text is not None and each.turn.speaker is Speaker.USER and each.message_id < answered
        )
        return each if revision is None or stays else replace(each, turn=revision.of(each.turn))

    after = tuple(map(reads, before))
    asked_less = any(
        old.turn.speaker is Speaker.USER and old.turn != new.turn and new.turn.text == REMOVED
        for old, new in zip(before, after, strict=True)
    )
    return _without_unasked(after) if asked_less else after


def _without_unasked(said: Iterable[CapturedMessage]) -> tuple[CapturedMessage, ...]:
    found: list[CapturedMessage] = []
    is_asked, last = True, Speaker.TEAM
    for each in said:
        if each.turn.speaker is Speaker.USER:
            is_asked = (is_asked and last is Speaker.USER) or each.turn.text != REMOVED
        last = each.turn.speaker
        is_unasked = last is Speaker.TEAM and not is_asked
        found.append(replace(each, turn=replace(each.turn, text=REMOVED)) if is_unasked else each)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class CapturedImage:
    """An image in a captured message, the `index`th from 0. `line`: the line of its placeholder, counted from the end
    of the text; -1 is the last.
    """

    message_id: int
    index: int
    line: int
    attachment: Attachment


def captured_messages(pair: Pair) -> list[CapturedMessage]:
    """The messages of a pair."""
    return [CapturedMessage(*each) for each in zip(pair.message_ids, pair.author_ids, pair.turns, strict=True)]


def digest_of_messages(said: tuple[CapturedMessage, ...]) -> bytes:
    return hashlib.blake2b(repr(said).encode(), digest_size=16).digest()


def captured_images(message: Message) -> tuple[CapturedImage, ...]:
    """Return the images of a message, in order. The text of a captured message ends with one line for each
    attachment.
    """
    count = len(message.attachments)
    images = [(at - count, file) for at, file in enumerate(message.attachments) if file.is_image]
    return tuple(CapturedImage(message.id, index, line, file) for index, (line, file) in enumerate(images))


@dataclass(slots=True)
class _Known:
    """A stored conversation: its last capture, the digest of its messages, and the messages that were first captured in
    it and are no longer part of the last capture.

    Most conversations are never continued, so the capture is kept compressed: 500 bytes, where objects take 2,000.
    """

    packed: bytes
    said: bytes
    left: tuple[int, ...] = ()

    @property
    def pair(self) -> Pair:
        [(_, pair)] = archive.blocks(zlib.decompress(self.packed).decode())
        assert isinstance(pair, Pair), pair  # noqa: S101 (tells the type checker)
        return pair


def _pack(pair: Pair) -> bytes:
    return zlib.compress(archive.render(pair).encode())


class _First(NamedTuple):
    """The conversation that first captured a message, with the number of that capture. All messages of a capture share
    one.
    """

    number: int
    conversation_id: str


class Captures:
    """The recent captures: finds the stored conversation that a new capture continues."""

    def __init__(
        self,
        earlier: Iterable[Pair] = (),
        withheld: Callable[[CapturedMessage], bool] | None = None,
        *,
        kept: int = KEPT_CONVERSATIONS,
    ) -> None:
        """`earlier`: the pairs of the archive, oldest first. `withheld`: whether a message must not be captured, since
        its author has opted out or was forgotten meanwhile.
        """
        self._unwanted: Callable[[CapturedMessage], bool] = withheld or (lambda _: False)
        self._revisions = BoundedDict[int, Revision](KEPT_REVISIONS)
        self._in_threads = BoundedDict[int, None](KEPT_IN_THREADS)
        self._kept = kept
        # Of both the newest last.
        self._known: dict[str, _Known] = {}
        self._threads = BoundedDict[str, tuple[str, bytes]](kept)  # the id and the digest of the last capture
        self._first: dict[int, _First] = {}  # by message
        self._count = 0
        for pair in earlier:
            self.remember(pair)

    def __len__(self) -> int:
        return len(self._known)

    def join(self, capture: Capture) -> Capture:
        """Leave out what is withheld, and join a capture with the stored conversation that it continues, if any: the
        earliest that holds one of its community users' messages. Two stored conversations are never joined. Chains that
        begin with the same message of the team, such as an announcement, have the same id and are joined; otherwise
        readers would take the later one for the whole conversation.
        """
        capture = self.as_it_reads(capture)
        conversation_id, linked = capture.conversation_id, list[int]()
        if capture.kind.joins_by_messages:
            linked = [said.message_id for said in capture.said if said.turn.speaker is Speaker.USER]
        shared = [first for message_id in linked if (first := self._first.get(message_id)) is not None]
        if shared:
            _, conversation_id = min(shared)
        if conversation_id not in self._known:
            return capture
        stored = captured_messages(self._known[conversation_id].pair)
        wanted = (each for each in stored if not self._unwanted(each))
        said = {each.message_id: each for each in revised(wanted, self._revisions)}
        answered = max((each.message_id for each in said.values() if each.turn.speaker is Speaker.TEAM), default=0)
        for each in capture.said:  # the newer text wins, but under an answer stays what was answered
            if each.message_id not in said or each.turn.speaker is Speaker.TEAM or each.message_id > answered:
                said[each.message_id] = each
        return replace(capture, conversation_id=conversation_id, said=tuple(said[i] for i in sorted(said)))

    def permitted(self, pair: Pair) -> Pair | None:
        """Return a pair of another archive without what is withheld; None: what is left of it is no exchange."""
        withheld = {each.message_id for each in captured_messages(pair) if self.is_withheld(each)}
        if not withheld:
            return pair
        left = archive.part_of(pair, set(pair.message_ids) - withheld)
        return left if left is not None and archive.is_exchange(left.kind, left.turns) else None

    def revise(self, revisions: Iterable[Revision]) -> None:
        """Note how messages read now, for captures of them that come later."""
        for each in revisions:
            self._revisions[each.message_id] = each

    def as_it_reads(self, capture: Capture) -> Capture:
        """Return a capture that is not stored yet without what is withheld, and as its messages read now."""
        said = (each for each in capture.said if not self.is_withheld(each))
        return replace(capture, said=revised(said, self._revisions))

    def is_withheld(self, said: CapturedMessage) -> bool:
        """Tell whether a message must not be captured: it was deleted, or its author does not want it."""
        revision = self._revisions.get(said.message_id)
        return (revision is not None and revision.text is None) or self._unwanted(said)

    def hold(self, message_ids: Iterable[int]) -> bool:
        """Tell whether one of these messages was stored lately."""
        return any(each in self._first or each in self._in_threads for each in message_ids)

    def stored_as(self, capture: Capture) -> str | None:
        """Return the id of the conversation's last stored capture if it is word for word the same, as after a crash;
        else None.
        """
        known = self._known.get(capture.conversation_id)
        if known is not None:
            return known.pair.id if known.said == digest_of_messages(capture.said) else None
        pair_id, said = self._threads.get(capture.conversation_id, (None, b""))
        return pair_id if said == digest_of_messages(capture.said) else None

    def remember(self, pair: Pair) -> None:
        """Add a stored pair; pairs come in the order of the archive."""
        conversation_id, said = pair.conversation_id, digest_of_messages(tuple(captured_messages(pair)))
        if not pair.kind.joins_by_messages:
            self._threads[conversation_id] = pair.id, said
            self._in_threads.update(dict.fromkeys(pair.message_ids))
            return
        self._count += 1
        first = _First(self._count, conversation_id)
        for message_id in pair.message_ids:
            self._first.setdefault(message_id, first)
        known = self._known.pop(conversation_id, None)
        left = () if known is None else tuple(sorted(self._firsts_of(known).difference(pair.message_ids)))
        self._known[conversation_id] = _Known(_pack(pair), said, left)
        if len(self._known) > self._kept:
            for message_id in self._firsts_of(self._known.pop(next(iter(self._known)))):
                del self._first[message_id]

    def _firsts_of(self, known: _Known) -> set[int]:
        """The messages for which this conversation was the first."""
        pair = known.pair
        firsts = ((each, self._first.get(each)) for each in {*pair.message_ids, *known.left})
        return {each for each, first in firsts if first is not None and first.conversation_id == pair.conversation_id}

    def forget(self, author_id: int, instead: str) -> None:
        """Replace the texts of a person by `instead`."""
        for revision in [each for each in self._revisions.values() if each.author_id == author_id]:
            del self._revisions[revision.message_id]
        for known in self._known.values():
            pair = known.pair
            said = zip(pair.author_ids, pair.turns, strict=True)
            turns = tuple(replace(turn, text=instead) if author == author_id else turn for author, turn in said)
            known.packed = _pack(replace(pair, turns=turns))


# Captures that wait for image descriptions

log = logging.getLogger(__name__)

_PENDING_NAME = re.compile(r"[0-9]{1,20}-[0-9]{1,20}\.capture")


class DamagedCapture(ValueError):
    """A file that holds no valid capture; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class PendingCapture:
    """A capture whose images are still to be described. It was first tried at `since` (seconds since 1970); `images`
    are those that could be loaded so far.
    """

    since: float
    capture: Capture
    pictures: tuple[CapturedImage, ...]
    images: Mapping[CapturedImage, Image] = field(default_factory=dict[CapturedImage, Image])

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
    conversation_id: Annotated[str, Field(pattern=f"^{CONVERSATION_ID}$")] | None
    continues: _Id | None = None  # written by earlier versions
    said: Annotated[list[_Said], Field(min_length=1)]
    pictures: list[_Picture]


def render_pending(waiting: PendingCapture) -> bytes:
    r"""Return the content of a waiting capture's file: one line of JSON, then the bytes of those images that could be
    loaded, one after another.

        {"since": "2026-02-01T03:10:56.228Z", "conversation_id": "thread_14…",
         "said": [{"message_id": "14…", "author_id": "311", "speaker": "User", "text": "It says\n[image: a.png]"}],
         "pictures": [{"message_id": "14…", "index": 0, "line": -1, "attachment": {…}, "media_type": "image/png",
                       "bytes": 1234, "sha256": "9f86…"}]}
    """
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
    line = replace_surrogates(json.dumps(head, ensure_ascii=False, separators=(",", ":"))) + "\n"
    return b"".join([line.encode(), *(image.data for image in contents if image is not None)])


def _with_text_ids(fields: list[tuple[str, Any]]) -> dict[str, object]:
    return {name: str(value) if name in {"id", "message_id"} else value for name, value in fields}


def parse_pending(data: bytes) -> PendingCapture:
    """The inverse of `render_pending`. Raises DamagedCapture."""
    line, end, rest = data.partition(b"\n")
    if not end:
        raise DamagedCapture("its first line has no end")
    try:
        head = _Head.model_validate_json(line)
        since = from_rfc3339(head.since)
    except ValueError as error:
        raise DamagedCapture(f"its first line: {why_invalid(error)}") from None
    said = tuple(
        CapturedMessage(each.message_id, each.author_id, PairTurn(each.speaker, each.text)) for each in head.said
    )
    lengths = {each.message_id: each.turn.text.count("\n") + 1 for each in said}
    pictures: list[CapturedImage] = []
    images: dict[CapturedImage, Image] = {}
    for each in head.pictures:
        file = Attachment(**dict(each.attachment))
        picture = CapturedImage(each.message_id, each.index, each.line, file)
        if -picture.line > lengths.get(picture.message_id, 0):
            raise DamagedCapture(f"attachment {file.id} has no place in a message")
        pictures.append(picture)
        if each.bytes is not None:
            content, rest = rest[: each.bytes], rest[each.bytes :]
            if hashlib.sha256(content).hexdigest() != each.sha256:
                raise DamagedCapture(f"the content of attachment {file.id} is not what was stored")
            images[picture] = Image(file.filename, each.media_type, content)
    if rest:
        raise DamagedCapture("there is more in it than was stored")
    conversation_id = head.conversation_id or REPLY.make_id(head.continues or said[0].message_id)
    return PendingCapture(since, Capture(None, conversation_id, said), tuple(pictures), images)


@dataclass(frozen=True, slots=True)
class PendingFolder:
    """The captures that wait, on disk. Blocking. Raises OSError, as the system reported it.

    Each capture has a file of its own, which is written whole or not at all and holds all that another try needs.
    """

    folder: Path

    def keep(self, waiting: PendingCapture) -> None:
        """Store a capture. When this returns, it is on the disk."""
        files.replace(self.folder / waiting.name, render_pending(waiting))

    def drop(self, waiting: PendingCapture) -> None:
        files.remove(self.folder / waiting.name)

    def is_empty(self) -> bool:
        """True if nothing waits. Never raises: False where that cannot be told."""
        try:
            return not any(map(_PENDING_NAME.fullmatch, os.listdir(self.folder)))  # noqa: PTH208 (names are enough)
        except OSError as error:
            return isinstance(error, FileNotFoundError)

    def all(self) -> list[PendingCapture]:
        """Return all waiting captures, the oldest first. Damaged files are logged and moved to `<file>.damaged`."""
        try:
            paths = sorted(
                path for path in self.folder.iterdir() if _PENDING_NAME.fullmatch(path.name) and path.is_file()
            )
        except FileNotFoundError:
            return []
        found: list[PendingCapture] = []
        for path in paths:
            try:
                found.append(parse_pending(path.read_bytes()))
            except DamagedCapture as error:
                aside = files.move_aside(path, ".damaged")
                log.warning("%s holds no capture: %s; set aside as %s", path, error, aside.name)
        return sorted(found, key=lambda waiting: (waiting.since, waiting.name))


# Links to Discord


def pair_link_line(qa_id: str, capture: Capture) -> str | None:
    """Return the line to store for a capture, which leads to the team's last message in it; None if the server is
    unknown.
    """
    part = capture.part
    if part is None or part.place.guild_id is None:
        return None
    return PairPlace(part.place.guild_id, part.place.id, _last_answer(capture)).line(qa_id)


def _last_answer(capture: Capture) -> int:
    answers = [said for said in capture.said if said.turn.speaker is Speaker.TEAM]
    left = [said for said in answers if said.turn.text != REMOVED]
    return (left or answers)[-1].message_id


class PairPlace(NamedTuple):
    """Where in Discord a pair comes from."""

    guild_id: int
    channel_id: int
    message_id: int

    def line(self, qa_id: str) -> str:
        ids = {name: str(value) for name, value in self._asdict().items()}
        return json.dumps({"qa_id": qa_id, **ids}) + "\n"


@dataclass(frozen=True, slots=True)
class PairLinks:
    """Finds the Discord address of a pair in the file. Nothing is kept in memory, since few are asked for.

    A line is `{"qa_id", "guild_id", "channel_id", "message_id"}`, all texts: no names and no words. A line that is lost
    costs a link.
    """

    path: Path

    def address(self, qa_id: str) -> str | None:
        """Return the address of a pair's message; None if there is none. Blocking, as `place`."""
        place = self.place(qa_id)
        return None if place is None else discord_address(*place)

    def line_of_revised(self, qa_id: str, earlier_id: str, capture: Capture) -> str | None:
        """Return the line to store for a capture that was stored before as `earlier_id`. Blocking, as `place`."""
        place = self.place(earlier_id)
        return None if place is None else place._replace(message_id=_last_answer(capture)).line(qa_id)

    def place(self, qa_id: str) -> PairPlace | None:
        """Return where a pair comes from; None: nothing tells. Blocking, for a moment: a thousand pairs take 150 kB. Of
        several lines about a pair the last counts.
        """
        try:
            data = self.path.read_bytes()  # bytes, so that a line that is not UTF-8 costs only itself
        except OSError:
            return None
        named, end = qa_id.encode(), len(data)
        while (at := data.rfind(named, 0, end)) >= 0:
            end, stop = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
            found = _place(data[end : stop if stop >= 0 else None], qa_id)
            if found is not None:
                return found
        return None


def _place(line: bytes, qa_id: str) -> PairPlace | None:
    try:
        found = json.loads(line)
        if found["qa_id"] != qa_id:
            return None
        return PairPlace(int(found["guild_id"]), int(found["channel_id"]), int(found["message_id"]))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None  # torn by a crash, or edited
