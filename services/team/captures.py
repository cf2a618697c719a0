"""Captures before they have an id, and which of them are one conversation (SPEC 6, "Extraction")."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from model.batches import Part
from model.messages import Attachment, Message, snowflake_time
from services.team.archive import Pair, PairTurn, Speaker

KEPT = 2_000
"""Conversations kept in memory; those captured longest ago are forgotten first."""

REPLY = "reply_"
"""Begins the conversation ids of captures outside threads."""


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a capture."""

    message_id: int
    author_id: int
    turn: PairTurn


@dataclass(frozen=True, slots=True)
class Capture:
    """What a team member's part and the messages around it teach."""

    part: Part | None
    """None: that had its end already, and the capture is taken up again."""
    conversation_id: str | None
    """None: that of the message it goes on with, and nothing where that was not captured."""
    said: tuple[Said, ...]
    """In order of message id."""
    continues: int | None = None
    """The message that the same person was captured writing just before."""

    @property
    def teaches(self) -> bool:
        """Whether somebody of the community and somebody of the team have spoken."""
        return {said.turn.speaker for said in self.said} == set(Speaker)

    @property
    def said_at(self) -> float:
        """When the last message was written, seconds since 1970, UTC."""
        return snowflake_time(self.said[-1].message_id)


@dataclass(frozen=True, slots=True)
class Picture:
    """An image that belongs to a captured message, and where its placeholder stands."""

    message_id: int
    index: int
    """Among the images of its message, from 0."""
    line: int
    """Of the message's text, counted from its end: -1 is the last."""
    attachment: Attachment


def said_in(pair: Pair) -> list[Said]:
    """The messages of a pair that is in the archive."""
    return [Said(*each) for each in zip(pair.message_ids, pair.author_ids, pair.turns, strict=True)]


def digest(said: tuple[Said, ...]) -> bytes:
    """Of who said what."""
    plain = [(each.message_id, each.author_id, each.turn.speaker.value, each.turn.text) for each in said]
    return hashlib.sha256(repr(plain).encode()).digest()


def pictures_of(message: Message) -> tuple[Picture, ...]:
    """The images of a message, in its order. Its text ends with a line for each attachment."""
    count = len(message.attachments)
    images = [(at - count, file) for at, file in enumerate(message.attachments) if file.is_image]
    return tuple(Picture(message.id, index, line, file) for index, (line, file) in enumerate(images))


@dataclass(slots=True)
class _Known:
    said: dict[int, Said]
    first_for: set[int] = field(default_factory=set[int])
    """The messages of which this conversation was the first."""


class Captures:
    """The recent captures: those outside threads by the messages in them, since what is in threads is told apart by
    its thread; and as what each conversation was stored last.
    """

    def __init__(
        self,
        earlier: Iterable[Pair] = (),
        withheld: Callable[[int, str], bool] = lambda _author_id, _text: False,
        *,
        kept: int = KEPT,
    ) -> None:
        """`earlier`: what the archive holds, oldest first. `withheld` tells, of an author and a text, what is not to
        be captured again, since the author has opted out meanwhile.
        """
        self._withheld = withheld
        self._kept = kept
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._first: dict[int, tuple[int, str]] = {}
        self._count = 0
        self._stored: OrderedDict[str, tuple[str, bytes]] = OrderedDict()
        """By conversation, the id and the digest of its last capture."""
        for pair in earlier:
            self.remember(pair)

    def __len__(self) -> int:
        return len(self._known)

    def join(self, capture: Capture) -> Capture:
        """The capture as part of the conversation that it goes on with, if there is one.

        That is the one of the earliest capture which holds a community user's message of this one. Two earlier
        conversations are not joined. Chains that begin with one message of the team (an announcement, say) have one id,
        so they are one conversation as well: were the second without the first, readers would take it for the whole.
        """
        conversation_id = capture.conversation_id
        if capture.continues is not None:
            shared = [self._first[capture.continues]] if capture.continues in self._first else []
        elif conversation_id is not None and conversation_id.startswith(REPLY):
            asked = (said.message_id for said in capture.said if said.turn.speaker is Speaker.USER)
            shared = [self._first[message_id] for message_id in asked if message_id in self._first]
        else:
            shared = []
        if shared:
            _, conversation_id = min(shared)
        if conversation_id not in self._known:
            return capture
        earlier = self._known[conversation_id].said
        # What was read just now wins: it may have been edited.
        said = {**self._allowed(earlier), **{each.message_id: each for each in capture.said}}
        return replace(capture, conversation_id=conversation_id, said=tuple(said[i] for i in sorted(said)))

    def stored_as(self, capture: Capture) -> str | None:
        """The id of the last capture of this conversation, when that was word for word the same: messages are read
        again after a crash that kept their end from being noted down.
        """
        pair_id, known = self._stored.get(capture.conversation_id or "", (None, b""))
        return pair_id if known == digest(capture.said) else None

    def remember(self, pair: Pair) -> None:
        """Take note of what has been captured, in the order of the archive."""
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
            _, forgotten = self._known.popitem(last=False)
            for message_id in forgotten.first_for:
                del self._first[message_id]

    def forget(self, author_id: int, instead: str) -> None:
        """Put `instead` in the place of what a person wrote."""
        for known in self._known.values():
            for message_id, said in known.said.items():
                if said.author_id == author_id:
                    known.said[message_id] = replace(said, turn=replace(said.turn, text=instead))

    def _allowed(self, said: dict[int, Said]) -> dict[int, Said]:
        return {i: each for i, each in said.items() if not self._withheld(each.author_id, each.turn.text)}
