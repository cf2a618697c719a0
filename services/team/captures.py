"""Captures before they have an id, and which of them belong to one conversation (SPEC 6, "Extraction")."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from model.batches import Part
from model.messages import Attachment, Message, snowflake_time
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
    """What a team member's part and the messages around it teach.

    Attributes:
        part: None if it had its outcome already, and the capture is tried again.
        said: in order of message id.
    """

    part: Part | None
    conversation_id: str
    said: tuple[Said, ...]

    @property
    def teaches(self) -> bool:
        """Whether both the community and the team have said something."""
        return {said.turn.speaker for said in self.said} == set(Speaker)

    @property
    def said_at(self) -> float:
        """When the last message was written, seconds since 1970, UTC."""
        return snowflake_time(self.said[-1].message_id)


@dataclass(frozen=True, slots=True)
class Picture:
    """An image of a captured message: the `index`th, from 0. `line` is that of its placeholder: -1 is the last."""

    message_id: int
    index: int
    line: int
    attachment: Attachment


def said_in(pair: Pair) -> list[Said]:
    """The messages of a pair."""
    return [Said(*each) for each in zip(pair.message_ids, pair.author_ids, pair.turns, strict=True)]


def digest(said: tuple[Said, ...]) -> bytes:
    return hashlib.sha256(repr(said).encode()).digest()


def pictures_of(message: Message) -> tuple[Picture, ...]:
    """The images of a message, in order. Its text ends with a line for each attachment."""
    count = len(message.attachments)
    images = [(at - count, file) for at, file in enumerate(message.attachments) if file.is_image]
    return tuple(Picture(message.id, index, line, file) for index, (line, file) in enumerate(images))


@dataclass(slots=True)
class _Known:
    """A conversation. `first_for`: the messages for which it was the first."""

    said: dict[int, Said]
    first_for: set[int] = field(default_factory=set[int])


class Captures:
    """The recent captures: those outside threads, by message, and what was stored last of each conversation."""

    def __init__(
        self, earlier: Iterable[Pair] = (), withheld: Callable[[int, str], bool] | None = None, *, kept: int = KEPT
    ) -> None:
        """`earlier`: the pairs of the archive, oldest first. `withheld`: whether an author's text must not be captured
        again, since the author has opted out meanwhile.
        """
        self._withheld = withheld
        self._kept = kept
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._first: dict[int, tuple[int, str]] = {}
        self._count = 0
        # By conversation, the id and the digest of its last capture.
        self._stored: OrderedDict[str, tuple[str, bytes]] = OrderedDict()
        for pair in earlier:
            self.remember(pair)

    def __len__(self) -> int:
        return len(self._known)

    def join(self, capture: Capture) -> Capture:
        """The capture as part of the conversation that it continues, if any: the earliest with one of its messages of
        community users. Two earlier conversations are not joined. Chains that begin with the same message of the team
        (say, an announcement) are, as they have one id: otherwise readers would take the second for the whole.
        """
        conversation_id, linked = capture.conversation_id, list[int]()
        if conversation_id.startswith(REPLY):
            linked = [said.message_id for said in capture.said if said.turn.speaker is Speaker.USER]
        shared = [self._first[message_id] for message_id in linked if message_id in self._first]
        if shared:
            _, conversation_id = min(shared)
        if conversation_id not in self._known:
            return capture
        withheld = self._withheld
        said = {
            message_id: each
            for message_id, each in self._known[conversation_id].said.items()
            if withheld is None or not withheld(each.author_id, each.turn.text)
        }
        said |= {each.message_id: each for each in capture.said}  # the newer text wins: it may have been edited
        return replace(capture, conversation_id=conversation_id, said=tuple(said[i] for i in sorted(said)))

    def stored_as(self, capture: Capture) -> str | None:
        """The id of the conversation's last capture, if that is word for word the same, as after a crash."""
        pair_id, known = self._stored.get(capture.conversation_id, (None, b""))
        return pair_id if known == digest(capture.said) else None

    def remember(self, pair: Pair) -> None:
        """Add a stored pair, in the order of the archive."""
        conversation_id, said = pair.conversation_id, tuple(said_in(pair))
        self._stored[conversation_id] = pair.id, digest(said)
        self._stored.move_to_end(conversation_id)
        if len(self._stored) > self._kept:
            self._stored.popitem(last=False)
        if not conversation_id.startswith(REPLY):
            return
        self._count += 1
        known = self._known.setdefault(conversation_id, _Known({}))
        self._known.move_to_end(conversation_id)
        known.said = {each.message_id: each for each in said}
        for message_id in known.said:
            if message_id not in self._first:
                self._first[message_id] = (self._count, conversation_id)
                known.first_for.add(message_id)
        if len(self._known) > self._kept:
            _, dropped = self._known.popitem(last=False)
            for message_id in dropped.first_for:
                del self._first[message_id]

    def forget(self, author_id: int, instead: str) -> None:
        """Replace the texts of a person by `instead`."""
        for known in self._known.values():
            for message_id, said in known.said.items():
                if said.author_id == author_id:
                    known.said[message_id] = replace(said, turn=replace(said.turn, text=instead))
