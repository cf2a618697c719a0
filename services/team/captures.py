"""Captures before they are stored: how they are revised, and joined with earlier captures of their conversation."""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from model.bounded import BoundedDict
from model.conversations import ConversationKind, kind_of
from model.messages import Attachment, Message, Part, Place, snowflake_time
from services.team import archive
from services.team.archive import LEFT_OUT, REMOVED, Pair, PairTurn, Speaker

KEPT_CONVERSATIONS = 4_000  # conversations in memory; the least recently captured are dropped first
KEPT_REVISIONS = 2_000  # for captures that are not stored yet
KEPT_IN_THREADS = 10_000  # ids of the newest stored messages in threads
FULL_PART = 200
"""With so many messages, the part of a long thread is full, and what is said next begins another."""


@dataclass(frozen=True, slots=True)
class CapturedMessage:
    """One message of a capture.

    Attributes:
        addressee_id: as `archive.addressees_of` returns it. It is not compared: what is said is the same.
        is_doubted: whether somebody has doubted this message of the team.
    """

    message_id: int
    author_id: int
    turn: PairTurn
    addressee_id: int = field(default=archive.UNKNOWN, compare=False, repr=False)
    is_doubted: bool = False


@dataclass(frozen=True, slots=True)
class Capture:
    """A conversation to be stored: a team member's part, and the messages around it.

    Attributes:
        part: None if its outcome was given before this try.
        messages: the messages, in order of id.
        noted_place: where it was captured, if it has no part and that is known: ids alone.
        read_from: the id of the first message that was looked for; 0: all were.
    """

    part: Part | None
    conversation_id: str
    messages: tuple[CapturedMessage, ...]
    noted_place: Place | None = None
    read_from: int = 0

    @property
    def place(self) -> Place | None:
        return self.noted_place if self.part is None else self.part.place

    @property
    def kind(self) -> ConversationKind:
        return kind_of(self.conversation_id)

    @property
    def is_exchange(self) -> bool:
        """As `archive.is_exchange`; else it is not stored."""
        return archive.is_exchange(self.kind, (each.turn for each in self.messages))

    @property
    def said_at(self) -> float:
        """The time of the last message, in seconds since 1970, UTC."""
        return snowflake_time(self.messages[-1].message_id)


@dataclass(frozen=True, slots=True)
class Revision:
    """The new text of a message that was edited or deleted; or that it, or a pair, is doubted; or a place that was
    deleted.

    Attributes:
        message_id: of a deleted place, its id; of a doubted pair 0.
        text: None: the message was deleted.
        author_id: `archive.UNKNOWN` if the author is not known.
        placeholders: the number of lines at the end of the text that stand for attachments.
        is_doubt: True: somebody doubts the message, which reads as before. It has no text and no author.
        is_place: True: a channel or thread was deleted with all its messages, and those of its threads.
        pair_id: with `is_doubt`: the pair of which all is doubted that the team said.
    """

    message_id: int
    text: str | None = None
    author_id: int = archive.UNKNOWN
    placeholders: int = 0
    is_doubt: bool = False
    is_place: bool = False
    pair_id: str = ""

    @property
    def subject(self) -> int | str:
        """The id of what it is about."""
        return self.pair_id or self.message_id

    def apply_to(self, turn: PairTurn, opening: str = "") -> PairTurn:
        """Return the turn with the new text, without the `opening` of its kind. Of a user's, what was edited out is
        left out, and nothing is added. A removed text stays removed; descriptions of images stay while the words are
        the same.
        """
        if self.text is None:
            return replace(turn, text=REMOVED)
        text = self.text.removeprefix(opening)
        if turn.text == REMOVED or self._words(turn.text) == self._words(text):
            return turn
        return replace(turn, text=_without_other_words(turn.text, text) if turn.speaker is Speaker.USER else text)

    def _words(self, text: str) -> list[str]:
        lines = text.split("\n")
        return lines[: len(lines) - self.placeholders]


_WORD = re.compile(r"\S+")
_LEFT_OUT_TWICE = re.compile(rf"{LEFT_OUT}[\s{LEFT_OUT}]*{LEFT_OUT}")


def _without_other_words(text: str, kept_in: str) -> str:
    """Return a text without the words that are not in another one; `REMOVED` if none is."""
    kept = set(kept_in.split()) - {LEFT_OUT}
    if kept.isdisjoint(text.split()):
        return REMOVED
    found = _WORD.sub(lambda word: word[0] if word[0] in kept else LEFT_OUT, text)
    return _LEFT_OUT_TWICE.sub(LEFT_OUT, found)


def apply_revisions(
    messages: Iterable[CapturedMessage], revisions: Mapping[int, Revision], opening: str = ""
) -> tuple[CapturedMessage, ...]:
    """Return messages with their `revisions`, by message. `opening`: that of their kind of conversation, which is still
    there in the new text of a message from before the start.

    Nothing new comes into a user's message: an answer is to the old text, and what is not answered yet is read again
    with its answer. If something of it is gone, it is no longer certain that the team's later ones are to that user. If
    all of the last question before an answer is (of the user whom it is to, if that is known) the answer is removed
    too, or it would seem to answer the question before.
    """
    before = tuple(messages)

    def revise(each: CapturedMessage) -> CapturedMessage:
        revision = revisions.get(each.message_id)
        return each if revision is None else replace(each, turn=revision.apply_to(each.turn, opening))

    after = tuple(map(revise, before))
    changed = {
        old.message_id: new.turn.text
        for old, new in zip(before, after, strict=True)
        if old.turn.speaker is Speaker.USER and old.turn != new.turn
    }
    left = _remove_unasked(after) if REMOVED in changed.values() else after
    return _without_questions(left, changed.keys())


def with_doubts(messages: Iterable[CapturedMessage], doubted: Container[int]) -> tuple[CapturedMessage, ...]:
    """Return messages, those of the team marked that are `doubted`."""
    return tuple(
        replace(each, is_doubted=True) if each.message_id in doubted and each.turn.speaker is Speaker.TEAM else each
        for each in messages
    )


def _without_questions(messages: Iterable[CapturedMessage], gone: AbstractSet[int]) -> tuple[CapturedMessage, ...]:
    found = tuple(messages)
    rows = ((each.message_id, each.author_id, each.turn, each.addressee_id) for each in found)
    to_ids = archive.without_questions(rows, gone)
    return tuple(replace(each, addressee_id=to) for each, to in zip(found, to_ids, strict=True))


def leave_out(
    messages: Iterable[CapturedMessage], is_left_out: Callable[[CapturedMessage], bool]
) -> tuple[CapturedMessage, ...]:
    """Return messages without some. It is no longer certain that the team's later ones are to the authors of these."""
    whole = tuple(messages)
    left = _without_questions(whole, {each.message_id for each in whole if is_left_out(each)})
    return tuple(each for each in left if not is_left_out(each))


def _remove_unasked(messages: Iterable[CapturedMessage]) -> tuple[CapturedMessage, ...]:
    found: list[CapturedMessage] = []
    # By user: whether what the user last wrote without a turn of the team between is still there; `UNKNOWN`: all users.
    is_asked = {archive.UNKNOWN: True}
    spoken = set[int]()  # since the team's last turn
    for each in messages:
        if each.turn.speaker is Speaker.USER:
            for user in (each.author_id, archive.UNKNOWN):
                is_asked[user] = (user in spoken and is_asked[user]) or each.turn.text != REMOVED
                spoken.add(user)
            found.append(each)
            continue
        spoken.clear()
        is_answer = is_asked.get(each.addressee_id, is_asked[archive.UNKNOWN])
        found.append(each if is_answer else replace(each, turn=replace(each.turn, text=REMOVED)))
    return tuple(found)


def _join_messages(
    stored: Sequence[CapturedMessage], captured: Iterable[CapturedMessage]
) -> tuple[CapturedMessage, ...]:
    """Join the stored messages of a conversation with newly captured ones. The newer text wins, except for removed
    texts and for questions that were answered.

    It can only become less certain to whom a stored message of the team is. If a message turns out to be no part of the
    question, it is no longer certain to whom the stored answers to its author are. To whom new answers are is uncertain
    if an answered question reads differently now, if new messages are older than a stored answer, or if that was
    decided without all stored messages of their user.
    """
    newer, known = ({each.message_id: each for each in messages} for messages in (captured, stored))
    answered = max((each.message_id for each in stored if each.turn.speaker is Speaker.TEAM), default=0)
    # The stored messages that turn out to be no part of the question, with their authors.
    apart = {
        message_id: newer[message_id].addressee_id
        for message_id, each in known.items()
        if each.turn.speaker is Speaker.USER and not each.addressee_id
        if message_id in newer and newer[message_id].addressee_id
    }
    changed = {
        message_id
        for message_id, each in known.items()
        if message_id in newer and message_id < answered
        if (newer[message_id].turn, newer[message_id].addressee_id) != (each.turn, each.addressee_id)
    }
    late = {message_id for message_id in newer.keys() - known.keys() if message_id < answered}
    users = {each.author_id for each in newer.values() if each.turn.speaker is Speaker.USER}
    unsure = {user for user in users if not _is_read_whole(user, stored, newer)}
    found = {
        each.message_id: replace(each, addressee_id=each.author_id)
        if each.message_id in late or (each.turn.speaker is Speaker.TEAM and each.addressee_id in unsure)
        else each
        for each in _without_questions(newer.values(), changed | late)
    }
    for each in _without_questions(stored, apart.keys()):
        new = newer.get(each.message_id, each)
        is_user = each.turn.speaker is Speaker.USER
        keeps_text = each.turn.text == REMOVED or (is_user and each.message_id < answered)
        if keeps_text or not is_user:
            to = apart.get(each.message_id, each.addressee_id)
            turn, is_doubted = each.turn if keeps_text else new.turn, each.is_doubted or new.is_doubted
            found[each.message_id] = replace(each, turn=turn, addressee_id=to, is_doubted=is_doubted)
        else:
            found[each.message_id] = new
    return tuple(found[message_id] for message_id in sorted(found))


def _is_read_whole(user_id: int, stored: Iterable[CapturedMessage], newer: Mapping[int, CapturedMessage]) -> bool:
    """Return True if a newer capture has all that is stored from or to a user, since the last answer before it."""
    first = min(each.message_id for each in newer.values() if each.author_id == user_id)
    of_user = [each for each in stored if user_id in {each.author_id, each.addressee_id}]
    answers = (each.message_id for each in of_user if each.turn.speaker is Speaker.TEAM and each.message_id < first)
    since = max(answers, default=0)
    return all(each.message_id in newer or each.turn.text == REMOVED for each in of_user if each.message_id > since)


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
    rows = zip(pair.message_ids, pair.author_ids, pair.turns, archive.addressees_of(pair), strict=True)
    return [CapturedMessage(*each, is_doubted=each[0] in pair.doubted_ids) for each in rows]


def digest_of_messages(messages: tuple[CapturedMessage, ...]) -> bytes:
    return hashlib.blake2b(repr(messages).encode(), digest_size=16).digest()


def captured_images(message: Message) -> tuple[CapturedImage, ...]:
    """Return the images of a message, in order. The text of a captured message ends with one line for each
    attachment.
    """
    count = len(message.attachments)
    images = [(at - count, file) for at, file in enumerate(message.attachments) if file.is_image]
    return tuple(CapturedImage(message.id, index, line, file) for index, (line, file) in enumerate(images))


@dataclass(slots=True)
class _StoredConversation:
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


class _Owner(NamedTuple):
    """The conversation that captured a message first, and the number of that capture."""

    number: int
    conversation_id: str


class RecentCaptures:
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
        self._doubted = BoundedDict[int, None](KEPT_REVISIONS)
        self._in_threads = BoundedDict[int, str](KEPT_IN_THREADS)  # by message, its conversation
        self._kept = kept
        # The newest are last:
        self._known: dict[str, _StoredConversation] = {}
        self._owners: dict[int, _Owner] = {}  # by message
        self._count = 0
        for pair in earlier:
            self.remember(pair)

    def __len__(self) -> int:
        return len(self._known)

    def join(self, capture: Capture) -> Capture:
        """Leave out what is withheld, and join a capture with the stored conversation that it continues, if any: the
        earliest that holds one of its community users' messages. Two stored conversations are never joined. Reply
        chains from one message of the team, such as an announcement, share its id; they are joined, as readers use only
        the last capture of a conversation.

        What is stored counts: the text of a question that was answered, what was removed, and to whom the team's
        messages are. A message that a later reading of a thread lacks has been deleted, if it was looked for. A thread
        that is too long to be read whole is stored in parts, each a conversation.
        """
        capture = self.with_revisions(capture)
        if capture.read_from and not capture.kind.joins_by_messages:
            capture = self._last_part(capture)
        conversation_id, linked = capture.conversation_id, list[int]()
        if capture.kind.joins_by_messages:
            linked = [each.message_id for each in capture.messages if each.turn.speaker is Speaker.USER]
        shared = [owner for message_id in linked if (owner := self._owners.get(message_id)) is not None]
        if shared:
            _, conversation_id = min(shared)
        if conversation_id not in self._known:
            return capture
        stored = leave_out(captured_messages(self._known[conversation_id].pair), self._unwanted)
        lost = dict[int, Revision]()
        if not capture.kind.joins_by_messages:
            gone = {each.message_id for each in stored}.difference(each.message_id for each in capture.messages)
            lost = {message_id: Revision(message_id) for message_id in gone if message_id >= capture.read_from}
        stored = apply_revisions(stored, {**self._revisions, **lost}, capture.kind.opening)
        messages = _join_messages([each for each in stored if each.message_id not in lost], capture.messages)
        return replace(capture, conversation_id=conversation_id, messages=messages)

    def _last_part(self, capture: Capture) -> Capture:
        """Return what goes on with the last stored part of a long thread; if that is full or unknown, what is newer."""
        ids = [each.message_id for each in capture.messages]
        last = next((each for each in reversed(ids) if each in self._in_threads), None)
        start = capture.read_from
        if last is not None:
            newer = [each for each in ids if each > last]
            known = self._known.get(self._in_threads[last])
            is_full = known is None or len(known.pair.message_ids) >= FULL_PART
            start = newer[0] if newer and is_full else capture.kind.number_of(self._in_threads[last])
        messages = leave_out(capture.messages, lambda each: each.message_id < start)
        return replace(capture, conversation_id=capture.kind.make_id(start), messages=messages)

    def without_withheld(self, pair: Pair) -> Pair | None:
        """Return a pair of another archive without withheld messages; None: question or answer is missing then."""
        withheld = {each.message_id for each in captured_messages(pair) if self.is_withheld(each)}
        if not withheld:
            return pair
        rest = archive.piece_of(pair, set(pair.message_ids) - withheld)
        return rest if rest is not None and archive.is_exchange(rest.kind, rest.turns) else None

    def revise(self, revisions: Iterable[Revision]) -> None:
        """Remember revisions, for later captures of their messages."""
        for each in revisions:
            if each.is_doubt:
                self._doubted[each.message_id] = None
            elif not each.is_place:
                self._revisions[each.message_id] = each

    def with_revisions(self, capture: Capture) -> Capture:
        """Return a capture that is not stored yet with revised texts and doubts, and without withheld messages."""
        messages = with_doubts(leave_out(capture.messages, self.is_withheld), self._doubted)
        return replace(capture, messages=apply_revisions(messages, self._revisions, capture.kind.opening))

    def is_withheld(self, message: CapturedMessage) -> bool:
        """Return True if a message must not be captured: it was deleted, or its author does not want it."""
        revision = self._revisions.get(message.message_id)
        return (revision is not None and revision.text is None) or self._unwanted(message)

    def holds(self, message_ids: Iterable[int]) -> bool:
        """Return True if one of these messages was stored lately."""
        return any(each in self._owners or each in self._in_threads for each in message_ids)

    def stored_as(self, capture: Capture) -> str | None:
        """Return the id of the conversation's last stored capture if its messages are the same, as after a crash; else
        None.
        """
        known = self._known.get(capture.conversation_id)
        return None if known is None or known.hash != digest_of_messages(capture.messages) else known.pair.id

    def remember(self, pair: Pair) -> None:
        """Add a stored pair; pairs come in the order of the archive."""
        conversation_id, digest = pair.conversation_id, digest_of_messages(tuple(captured_messages(pair)))
        if pair.kind.joins_by_messages:
            self._count += 1
            owner = _Owner(self._count, conversation_id)
            for message_id in pair.message_ids:
                self._owners.setdefault(message_id, owner)
        else:
            self._in_threads.update(dict.fromkeys(pair.message_ids, conversation_id))
        known = self._known.pop(conversation_id, None)
        lost = () if known is None else tuple(sorted(self._owned_by(known).difference(pair.message_ids)))
        self._known[conversation_id] = _StoredConversation(_pack(pair), digest, lost)
        if len(self._known) > self._kept:
            for message_id in self._owned_by(self._known.pop(next(iter(self._known)))):
                del self._owners[message_id]

    def _owned_by(self, known: _StoredConversation) -> set[int]:
        """Return the ids of the messages that this conversation was the first to capture."""
        pair = known.pair
        owners = ((each, self._owners.get(each)) for each in {*pair.message_ids, *known.lost_ids})
        return {each for each, owner in owners if owner is not None and owner.conversation_id == pair.conversation_id}

    def forget(self, author_id: int) -> None:
        """Remove the texts of a person."""
        for revision in [each for each in self._revisions.values() if each.author_id == author_id]:
            del self._revisions[revision.message_id]
        for known in self._known.values():
            known.packed = _pack(archive.remove_texts(known.pair, author_id))
