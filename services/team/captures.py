"""Captured conversations before they are stored, and how captures of one conversation are joined (SPEC 6,
"Extraction").
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from model.batches import Part
from model.messages import Attachment, Message, snowflake_time
from services.storage import IdTable
from services.team import archive
from services.team.archive import Pair, PairTurn, Speaker

KEPT = 2_000  # conversations in memory; the least recently captured are dropped first
REPLY = "reply_"  # prefix of the conversation ids of captures outside threads


@dataclass(frozen=True, slots=True)
class Said:
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
    said: tuple[Said, ...]

    @property
    def teaches(self) -> bool:
        """True if both the community and the team have said something."""
        return {said.turn.speaker for said in self.said} == set(Speaker)

    @property
    def said_at(self) -> float:
        """The time of the last message, in seconds since 1970, UTC."""
        return snowflake_time(self.said[-1].message_id)


@dataclass(frozen=True, slots=True)
class Picture:
    """An image in a captured message, the `index`th from 0. `line`: the line of its placeholder, counted from the end
    of the text; -1 is the last.
    """

    message_id: int
    index: int
    line: int
    attachment: Attachment


def said_in(pair: Pair) -> list[Said]:
    """The messages of a pair."""
    return [Said(*each) for each in zip(pair.message_ids, pair.author_ids, pair.turns, strict=True)]


def digest(said: tuple[Said, ...]) -> bytes:
    return hashlib.blake2b(repr(said).encode(), digest_size=16).digest()


def pictures_of(message: Message) -> tuple[Picture, ...]:
    """Return the images of a message, in order. The text of a captured message ends with one line for each attachment."""
    count = len(message.attachments)
    images = [(at - count, file) for at, file in enumerate(message.attachments) if file.is_image]
    return tuple(Picture(message.id, index, line, file) for index, (line, file) in enumerate(images))


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


def _packed(pair: Pair) -> bytes:
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
        self, earlier: Iterable[Pair] = (), withheld: Callable[[int, str], bool] | None = None, *, kept: int = KEPT
    ) -> None:
        """`earlier`: the pairs of the archive, oldest first. `withheld`: whether an author's text must not be captured
        again, since the author has opted out meanwhile.
        """
        self._withheld = withheld
        self._kept = kept
        # Of both the newest last.
        self._known: dict[str, _Known] = {}
        self._threads: dict[str, tuple[str, bytes]] = {}  # the id and the digest of the last capture
        self._first = IdTable(list[_First]())  # by message
        self._count = 0
        for pair in earlier:
            self.remember(pair)

    def __len__(self) -> int:
        return len(self._known)

    def join(self, capture: Capture) -> Capture:
        """Join a capture with the stored conversation that it continues, if any: the earliest that holds one of its
        community users' messages. Two stored conversations are never joined. Chains that begin with the same message
        of the team, such as an announcement, have the same id and are joined; otherwise readers would take the later
        one for the whole conversation.
        """
        conversation_id, linked = capture.conversation_id, list[int]()
        if conversation_id.startswith(REPLY):
            linked = [said.message_id for said in capture.said if said.turn.speaker is Speaker.USER]
        shared = [first for message_id in linked if (first := self._first.get(message_id)) is not None]
        if shared:
            _, conversation_id = min(shared)
        if conversation_id not in self._known:
            return capture
        withheld = self._withheld
        said = {
            each.message_id: each
            for each in said_in(self._known[conversation_id].pair)
            if withheld is None or not withheld(each.author_id, each.turn.text)
        }
        said |= {each.message_id: each for each in capture.said}  # the newer text wins: it may have been edited
        return replace(capture, conversation_id=conversation_id, said=tuple(said[i] for i in sorted(said)))

    def stored_as(self, capture: Capture) -> str | None:
        """Return the id of the conversation's last stored capture if it is word for word the same, as after a crash;
        else None.
        """
        known = self._known.get(capture.conversation_id)
        if known is not None:
            return known.pair.id if known.said == digest(capture.said) else None
        pair_id, said = self._threads.get(capture.conversation_id, (None, b""))
        return pair_id if said == digest(capture.said) else None

    def remember(self, pair: Pair) -> None:
        """Add a stored pair; pairs come in the order of the archive."""
        conversation_id, said = pair.conversation_id, digest(tuple(said_in(pair)))
        if not conversation_id.startswith(REPLY):
            self._threads.pop(conversation_id, None)
            self._threads[conversation_id] = pair.id, said
            if len(self._threads) > self._kept:
                del self._threads[next(iter(self._threads))]
            return
        self._count += 1
        first = _First(self._count, conversation_id)
        for message_id in pair.message_ids:
            if message_id not in self._first:
                self._first.put(message_id, first)
        known = self._known.pop(conversation_id, None)
        left = () if known is None else tuple(sorted(self._firsts_of(known).difference(pair.message_ids)))
        self._known[conversation_id] = _Known(_packed(pair), said, left)
        if len(self._known) > self._kept:
            for message_id in self._firsts_of(self._known.pop(next(iter(self._known)))):
                self._first.discard(message_id)

    def _firsts_of(self, known: _Known) -> set[int]:
        """The messages for which this conversation was the first."""
        pair = known.pair
        firsts = ((each, self._first.get(each)) for each in {*pair.message_ids, *known.left})
        return {each for each, first in firsts if first is not None and first.conversation_id == pair.conversation_id}

    def forget(self, author_id: int, instead: str) -> None:
        """Replace the texts of a person by `instead`."""
        for known in self._known.values():
            pair = known.pair
            said = zip(pair.author_ids, pair.turns, strict=True)
            turns = tuple(replace(turn, text=instead) if author == author_id else turn for author, turn in said)
            known.packed = _packed(replace(pair, turns=turns))
