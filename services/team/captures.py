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
KEPT_REVISIONS = 2_000  # for captures that are not stored yet
KEPT_IN_THREADS = 10_000  # ids of the newest stored messages in threads


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
        part: None if its outcome was given before this try.
        said: the messages, in order of id.
    """

    part: Part | None
    conversation_id: str
    said: tuple[CapturedMessage, ...]

    @property
    def kind(self) -> ConversationKind:
        return kind_of(self.conversation_id)

    @property
    def is_exchange(self) -> bool:
        """As `archive.is_exchange`; else it is not stored."""
        return archive.is_exchange(self.kind, (each.turn for each in self.said))

    @property
    def said_at(self) -> float:
        """The time of the last message, in seconds since 1970, UTC."""
        return snowflake_time(self.said[-1].message_id)


@dataclass(frozen=True, slots=True)
class Revision:
    """The text of a message since it was edited or deleted.

    Attributes:
        text: None: the message was deleted.
        author_id: `archive.UNKNOWN` if the author is not known.
        placeholders: the number of lines at the end of the text that stand for attachments.
    """

    message_id: int
    text: str | None = None
    author_id: int = archive.UNKNOWN
    placeholders: int = 0

    def apply_to(self, turn: PairTurn) -> PairTurn:
        """Return the turn with the new text. A removed text stays removed; descriptions of images stay while the words
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


def apply_revisions(said: Iterable[CapturedMessage], revisions: Mapping[int, Revision]) -> tuple[CapturedMessage, ...]:
    """Return messages with their `revisions`, by message.

    A user's edit of a message before an answer has no effect, as the answer is to the old text. If the last question
    before an answer is deleted the answer is removed too, or it would seem to answer the question before.
    """
    before = tuple(said)
    answered = max((each.message_id for each in before if each.turn.speaker is Speaker.TEAM), default=0)

    def revise(each: CapturedMessage) -> CapturedMessage:
        revision = revisions.get(each.message_id)
        if revision is None or (
            revision.text is not None and each.turn.speaker is Speaker.USER and each.message_id < answered
        ):
            return each
        return replace(each, turn=revision.apply_to(each.turn))

    after = tuple(map(revise, before))
    lost_questions = any(
        old.turn.speaker is Speaker.USER and old.turn != new.turn and new.turn.text == REMOVED
        for old, new in zip(before, after, strict=True)
    )
    return _remove_unasked(after) if lost_questions else after


def _remove_unasked(said: Iterable[CapturedMessage]) -> tuple[CapturedMessage, ...]:
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
    """A stored conversation: its last capture, the hash of its messages, and the ids of messages that were first
    captured in it but are not in its last capture.

    Most conversations are never continued, so the capture is kept compressed: 500 bytes, where objects take 2,000.
    """

    packed: bytes
    hash: bytes
    lost_ids: tuple[int, ...] = ()

    @property
    def pair(self) -> Pair:
        [(_, pair)] = archive.blocks(zlib.decompress(self.packed).decode())
        assert isinstance(pair, Pair), pair  # noqa: S101 (tells the type checker)
        return pair


def _pack(pair: Pair) -> bytes:
    return zlib.compress(archive.render(pair).encode())


class _First(NamedTuple):
    """The conversation that first captured a message, with the number of that capture; one object for all messages of
    the capture.
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
        """`earlier`: the pairs of the archive, oldest first. `withheld`: True for a message that must not be captured,
        since its author has opted out or was forgotten.
        """
        self._unwanted: Callable[[CapturedMessage], bool] = withheld or (lambda _: False)
        self._revisions = BoundedDict[int, Revision](KEPT_REVISIONS)
        self._in_threads = BoundedDict[int, None](KEPT_IN_THREADS)
        self._kept = kept
        # The newest are last:
        self._known: dict[str, _Known] = {}
        self._threads = BoundedDict[str, tuple[str, bytes]](kept)  # id and hash of the last capture
        self._first: dict[int, _First] = {}  # by message
        self._count = 0
        for pair in earlier:
            self.remember(pair)

    def __len__(self) -> int:
        return len(self._known)

    def join(self, capture: Capture) -> Capture:
        """Leave out what is withheld, and join a capture with the stored conversation that it continues, if any: the
        earliest that holds one of its community users' messages. Two stored conversations are never joined. Reply
        chains from the same message of the team, such as an announcement, have the same id and are joined: readers take
        the last capture for the whole conversation.
        """
        capture = self.with_revisions(capture)
        conversation_id, linked = capture.conversation_id, list[int]()
        if capture.kind.joins_by_messages:
            linked = [each.message_id for each in capture.said if each.turn.speaker is Speaker.USER]
        shared = [first for message_id in linked if (first := self._first.get(message_id)) is not None]
        if shared:
            _, conversation_id = min(shared)
        if conversation_id not in self._known:
            return capture
        stored = captured_messages(self._known[conversation_id].pair)
        wanted = (each for each in stored if not self._unwanted(each))
        by_id = {each.message_id: each for each in apply_revisions(wanted, self._revisions)}
        answered = max((each.message_id for each in by_id.values() if each.turn.speaker is Speaker.TEAM), default=0)
        for each in capture.said:  # the newer text wins, except of questions already answered
            if each.message_id not in by_id or each.turn.speaker is Speaker.TEAM or each.message_id > answered:
                by_id[each.message_id] = each
        return replace(capture, conversation_id=conversation_id, said=tuple(by_id[i] for i in sorted(by_id)))

    def permitted(self, pair: Pair) -> Pair | None:
        """Return a pair of another archive without withheld messages; None: question or answer is missing then."""
        withheld = {each.message_id for each in captured_messages(pair) if self.is_withheld(each)}
        if not withheld:
            return pair
        rest = archive.part_of(pair, set(pair.message_ids) - withheld)
        return rest if rest is not None and archive.is_exchange(rest.kind, rest.turns) else None

    def revise(self, revisions: Iterable[Revision]) -> None:
        """Remember revisions, for later captures of their messages."""
        for each in revisions:
            self._revisions[each.message_id] = each

    def with_revisions(self, capture: Capture) -> Capture:
        """Return a capture that is not stored yet with revised texts and without withheld messages."""
        said = (each for each in capture.said if not self.is_withheld(each))
        return replace(capture, said=apply_revisions(said, self._revisions))

    def is_withheld(self, message: CapturedMessage) -> bool:
        """True if a message must not be captured: it was deleted, or its author does not want it."""
        revision = self._revisions.get(message.message_id)
        return (revision is not None and revision.text is None) or self._unwanted(message)

    def hold(self, message_ids: Iterable[int]) -> bool:
        """True if one of these messages was stored lately."""
        return any(each in self._first or each in self._in_threads for each in message_ids)

    def stored_as(self, capture: Capture) -> str | None:
        """Return the id of the conversation's last stored capture if its messages are the same, as after a crash; else
        None.
        """
        known = self._known.get(capture.conversation_id)
        if known is not None:
            return known.pair.id if known.hash == digest_of_messages(capture.said) else None
        pair_id, stored = self._threads.get(capture.conversation_id, (None, b""))
        return pair_id if stored == digest_of_messages(capture.said) else None

    def remember(self, pair: Pair) -> None:
        """Add a stored pair; pairs come in the order of the archive."""
        conversation_id, digest = pair.conversation_id, digest_of_messages(tuple(captured_messages(pair)))
        if not pair.kind.joins_by_messages:
            self._threads[conversation_id] = pair.id, digest
            self._in_threads.update(dict.fromkeys(pair.message_ids))
            return
        self._count += 1
        first = _First(self._count, conversation_id)
        for message_id in pair.message_ids:
            self._first.setdefault(message_id, first)
        known = self._known.pop(conversation_id, None)
        lost = () if known is None else tuple(sorted(self._firsts_of(known).difference(pair.message_ids)))
        self._known[conversation_id] = _Known(_pack(pair), digest, lost)
        if len(self._known) > self._kept:
            for message_id in self._firsts_of(self._known.pop(next(iter(self._known)))):
                del self._first[message_id]

    def _firsts_of(self, known: _Known) -> set[int]:
        """Return the ids of the messages that this conversation was the first to capture."""
        pair = known.pair
        firsts = ((each, self._first.get(each)) for each in {*pair.message_ids, *known.lost_ids})
        return {each for each, first in firsts if first is not None and first.conversation_id == pair.conversation_id}

    def forget(self, author_id: int, replacement: str) -> None:
        """Replace the texts of a person."""
        for revision in [each for each in self._revisions.values() if each.author_id == author_id]:
            del self._revisions[revision.message_id]
        for known in self._known.values():
            pair = known.pair
            authored = zip(pair.author_ids, pair.turns, strict=True)
            turns = tuple(replace(turn, text=replacement) if author == author_id else turn for author, turn in authored)
            known.packed = _pack(replace(pair, turns=turns))


# Captures that wait for image descriptions

log = logging.getLogger(__name__)

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
    contents = [waiting.images.get(ref) for ref in waiting.image_refs]
    head = {
        "since": rfc3339(waiting.since, digits=6),
        "conversation_id": capture.conversation_id,
        "said": [
            {"message_id": str(each.message_id), "author_id": str(each.author_id), **asdict(each.turn)}
            for each in capture.said
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
    conversation_id = head.conversation_id or REPLY.make_id(head.continues or said[0].message_id)
    return PendingCapture(since, Capture(None, conversation_id, said), tuple(refs), images)


@dataclass(frozen=True, slots=True)
class PendingFolder:
    """The waiting captures on disk. Blocking. Raises OSError, as the system reported it.

    Each capture has a file of its own, which is written whole or not at all and holds all that the next try needs.
    """

    folder: Path

    def keep(self, waiting: PendingCapture) -> None:
        """Store a capture; it is on the disk when this returns."""
        files.replace(self.folder / waiting.name, render_pending(waiting))

    def drop(self, waiting: PendingCapture) -> None:
        files.remove(self.folder / waiting.name)

    def is_empty(self) -> bool:
        """True if nothing waits. Never raises: False if the folder cannot be read."""
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
    """Return the line that links a capture to the team's last message in it; None if the server is unknown."""
    part = capture.part
    if part is None or part.place.guild_id is None:
        return None
    return PairPlace(part.place.guild_id, part.place.id, _last_answer(capture)).line(qa_id)


def _last_answer(capture: Capture) -> int:
    answers = [each for each in capture.said if each.turn.speaker is Speaker.TEAM]
    kept = [each for each in answers if each.turn.text != REMOVED]
    return (kept or answers)[-1].message_id


class PairPlace(NamedTuple):
    """The message in Discord that a pair is linked to."""

    guild_id: int
    channel_id: int
    message_id: int

    def line(self, qa_id: str) -> str:
        ids = {name: str(value) for name, value in self._asdict().items()}
        return json.dumps({"qa_id": qa_id, **ids}) + "\n"


@dataclass(frozen=True, slots=True)
class PairLinks:
    """Finds the Discord address of a pair in the file. Nothing is kept in memory, since few are looked up.

    A line is `{"qa_id", "guild_id", "channel_id", "message_id"}`, all strings, no names or words. A lost line costs a
    link.
    """

    path: Path

    def address(self, qa_id: str) -> str | None:
        """Return the address of a pair's message, if known. Blocking, as `place`."""
        place = self.place(qa_id)
        return None if place is None else discord_address(*place)

    def line_of_revised(self, qa_id: str, earlier_id: str, capture: Capture) -> str | None:
        """Return the line to store for a new version of the pair `earlier_id`. Blocking, as `place`."""
        place = self.place(earlier_id)
        return None if place is None else place._replace(message_id=_last_answer(capture)).line(qa_id)

    def place(self, qa_id: str) -> PairPlace | None:
        """Return the place of a pair, from the last line about it; None if it is not known. Blocking, for a moment: a
        thousand pairs take 150 kB.
        """
        try:
            data = self.path.read_bytes()  # bytes, so that a line that is not UTF-8 costs only itself
        except OSError:
            return None
        wanted, end = qa_id.encode(), len(data)
        while (at := data.rfind(wanted, 0, end)) >= 0:
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
