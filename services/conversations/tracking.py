"""Assigns each message to a conversation, in the order in which messages arrive: rules and time limits, word overlap,
and the bounded memory of messages, conversations, people and places.

`docs/conversations.md` numbers the rules in their order. The result depends on the messages and their order alone:
there is no clock and no look-up, and only the newest messages are remembered.
"""

from __future__ import annotations

import math
import re
import sys
from array import array
from bisect import bisect_left, insort
from collections import Counter, deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

from model.bounded import BoundedDict
from model.conversations import KINDS, REPLY, THREAD, ConversationKind
from model.messages import AuthorType, Key, Message, Place
from services.search import terms


@dataclass(frozen=True, slots=True)
class TrackingRules:
    """For how many seconds an earlier message still decides which conversation the next one belongs to. In threads only
    `breath` and `leading` apply.

    Attributes:
        breath: seconds within which a team member or bot goes on with what they were saying. They are few, since the
            team serves several people in turn.
        own: seconds within which a community user goes on with what they were saying.
        heard: seconds within which a message to the author, or a waiting question, is answered without a reply.
        leading: seconds between a team member's opening line ("let me look…") and the reply that follows it. Both are
            in one batch then, so neither was captured yet.
        remembered: seconds after which a user who turns to the team again begins a new conversation. By then the old
            one is filed (`kb.settle_minutes`).
        named: seconds for which a name or mention stands for what that person was talking about.
    """

    breath: float = 90.0
    own: float = 300.0
    heard: float = 600.0
    leading: float = 60.0
    remembered: float = 600.0
    named: float = 3600.0


# Words in common

MOST_CHARS = 2_000
"""Characters of a message: what follows is a log or code."""
COUNTED_MESSAGES = 1_000
"""Messages, the newest, that say how rare a word is."""


def words_of(text: str) -> frozenset[str]:
    """The words of a message, in any language: stems, or pairs of characters where no blanks are written.

    Always read as the same language, so that a question and its answer never differ in what a word becomes. Words that
    carry no subject in other languages stay in; they weigh little, since they are frequent.
    """
    return frozenset(terms(text[:MOST_CHARS]))


class Rarity:
    """Counts words over the newest messages, to weight them by rarity."""

    __slots__ = ("_counts", "_messages")

    def __init__(self) -> None:
        self._messages: deque[frozenset[str]] = deque()
        self._counts: Counter[str] = Counter()

    def add(self, words: frozenset[str]) -> None:
        """Add the words of a message."""
        self._messages.append(words)
        self._counts.update(words)
        if len(self._messages) > COUNTED_MESSAGES:
            for word in self._messages.popleft():
                left = self._counts[word] - 1
                if left:
                    self._counts[word] = left
                else:
                    del self._counts[word]

    def shared(self, words: Iterable[str], others: Collection[str]) -> float:
        """Return the weight of the words that both have: for each, the logarithm of one over the share of messages that
        contain it.
        """
        both = sorted(word for word in words if word in others)  # sorted: a sum must not depend on the order of a set
        return sum(math.log((len(self._messages) + 1) / (self._counts[word] + 1)) for word in both)


# Compact tables of messages

_TYPES = tuple(AuthorType)


class RecentIds:
    """A bounded table of message ids, each with a number in every column. It keeps the greatest ids, which are the
    newest: they contain the time.

    An id alone takes 8 bytes, where an `OrderedDict` takes 180. The columns are made at full length: arrays that grow
    are moved again and again, and leave holes in memory.
    """

    __slots__ = ("_columns", "_count", "_ids", "_most")

    def __init__(self, most: int, columns: str = "") -> None:
        """`columns`: the type code of each column, as `array` has it."""
        # Room for those that are kept, those that are forgotten together, and the one that is one too many.
        self._columns: list[array[Any]] = [array(code, [0]) * (most + most // 16 + 1) for code in f"Q{columns}"]
        self._ids: array[int] = self._columns[0]
        self._count = 0
        self._most = most

    def __contains__(self, message_id: int) -> bool:
        return self._index_of(message_id) is not None

    def get(self, message_id: int) -> list[Any] | None:
        """Return the numbers of an id, column by column; None if it is not in the table."""
        index = self._index_of(message_id)
        return None if index is None else [column[index] for column in self._columns[1:]]

    def add(self, message_id: int, *numbers: float) -> None:
        """Add an id that is not in the table."""
        count, index = self._count, bisect_left(self._ids, message_id, 0, self._count)
        for column, number in zip(self._columns, (message_id, *numbers), strict=True):
            if index < count:  # nearly always it is the newest, and none has to move
                column[index + 1 : count + 1] = column[index:count]
            column[index] = number
        self._count = count + 1
        if self._count > self._most + self._most // 16:  # many go at once, since all others move up
            for column in self._columns:
                column[: self._most] = column[self._count - self._most : self._count]
            self._count = self._most

    def put(self, message_id: int, column: int, number: float) -> None:
        """Change the number in a column, counted from 0, of an id, if it is in the table."""
        index = self._index_of(message_id)
        if index is not None:
            self._columns[column + 1][index] = number

    def _index_of(self, message_id: int) -> int | None:
        index = bisect_left(self._ids, message_id, 0, self._count)
        return index if index < self._count and self._ids[index] == message_id else None


class KnownMessage(NamedTuple):
    """What is remembered of one message."""

    conversation: int
    place_id: int
    author_id: int
    author_type: AuthorType
    at: float


class KnownMessages:
    """A bounded table of the newest messages by id: 41 bytes for a message, where objects take 300."""

    __slots__ = ("_rows",)

    def __init__(self, most: int) -> None:
        self._rows = RecentIds(most, "QQQBd")

    def get(self, message_id: int) -> KnownMessage | None:
        row = self._rows.get(message_id)
        if row is None:
            return None
        conversation, place_id, author_id, author_type, at = row
        return KnownMessage(conversation, place_id, author_id, _TYPES[author_type], at)

    def add(self, message_id: int, known: KnownMessage) -> None:
        """Add a message that is not in the table."""
        self._rows.add(message_id, *known[:3], _TYPES.index(known.author_type), known.at)

    def move(self, message_id: int, conversation: int) -> None:
        """Change the conversation of a message, if it is in the table."""
        self._rows.put(message_id, 0, conversation)


# The memory

KEPT_MESSAGES = 50_000
KEPT_CONVERSATIONS = 5_000
KEPT_PEOPLE = 20_000  # and as many names; one person in two places counts as two
KEPT_PLACES = 1_000
KEPT_OF_CONVERSATION = 200  # messages: as many as are read of a thread
KEPT_MEMBERS = 64
KEPT_WORDS = 128
KEPT_WAITING = 32


class LastMessage(NamedTuple):
    """The time and conversation of somebody's last message, or of the last message to them."""

    at: float
    conversation: int


@dataclass(slots=True)
class PersonState:
    """What is remembered of a person in one place.

    Attributes:
        leading: their newest messages, as far as these may turn out to lead to a reply.
    """

    author_type: AuthorType = AuthorType.COMMUNITY_USER
    said: LastMessage | None = None
    heard: LastMessage | None = None
    leading: tuple[int, ...] = ()

    def newest(self, at: float, own: float, heard: float) -> LastMessage | None:
        """Return the newer of the last messages said and heard, if it is less than `own` or `heard` seconds old."""
        near = [last for last, most in ((self.said, own), (self.heard, heard)) if last and at - last.at < most]
        return max(near, key=lambda last: last.at, default=None)


@dataclass(slots=True)
class ConversationState:
    """What is remembered of a conversation.

    Attributes:
        asker_id: the first community user in it.
        message_ids: the newest, in order of id.
        members, words: the newest; keys of a `dict`, since those have an order.
        helper_id: the team member who spoke last.
    """

    asker_id: int | None = None
    message_ids: list[int] = field(default_factory=list[int])
    members: dict[int, None] = field(default_factory=dict[int, None])
    words: dict[str, None] = field(default_factory=dict[str, None])
    helper_id: int | None = None


@dataclass(slots=True)
class PlaceState:
    """What is remembered of a channel or thread.

    Attributes:
        waiting: the conversations in which a community user, not the team, has the last word; and since when.
        latest: the one that was spoken in last.
    """

    waiting: dict[int, float] = field(default_factory=dict[int, float])
    latest: int | None = None


class ConversationMemory:
    """All that the tracker remembers. What was unused for longest is dropped first; of messages, the oldest."""

    def __init__(self) -> None:
        self.messages = KnownMessages(KEPT_MESSAGES)
        self.conversations = BoundedDict[int, ConversationState](KEPT_CONVERSATIONS)
        self.people = BoundedDict[Key, PersonState](KEPT_PEOPLE)
        self.names = BoundedDict[tuple[int, str], int](KEPT_PEOPLE)
        self.place_states = BoundedDict[int, PlaceState](KEPT_PLACES)
        self.kinds = BoundedDict[int, ConversationKind](KEPT_CONVERSATIONS)  # of messages that begin with an `opening`

    def place_state(self, place_id: int) -> PlaceState:
        return self.place_states.touch(place_id, PlaceState)

    def person(self, place_id: int, user_id: int) -> PersonState:
        return self.people.touch(Key(place_id, user_id), PersonState)

    def takes_part(self, user_id: int, conversation: int) -> bool:
        state = self.conversations.get(conversation)
        return state is not None and user_id in state.members

    def named(self, place_id: int, name: str) -> int | None:
        """Return the id of the person who lately wrote in this place under a name."""
        return self.names.get((place_id, name.casefold()))

    def add(
        self,
        message: Message,
        author_type: AuthorType,
        conversation: int,
        words: Iterable[str],
        place_state: PlaceState,
    ) -> ConversationState:
        """Add a message that was assigned to a conversation; `place_state`: that of its place."""
        author, at = message.author, message.at
        self.messages.add(message.id, KnownMessage(conversation, message.channel_id, author.id, author_type, at))
        if author.name:
            self.names[message.channel_id, author.name.casefold()] = author.id
        state = self._joined(message.id, author.id, conversation)
        state.words.update(dict.fromkeys(map(sys.intern, words)))  # one string for all conversations
        _drop_oldest(state.words, KEPT_WORDS)
        place_state.latest = conversation
        if author_type is not AuthorType.BOT:
            place_state.waiting.pop(conversation, None)
        if author_type is AuthorType.COMMUNITY_USER:
            state.asker_id = author.id if state.asker_id is None else state.asker_id
            place_state.waiting[conversation] = at
            _drop_oldest(place_state.waiting, KEPT_WAITING)
        elif author_type is AuthorType.TEAM_MEMBER:
            state.helper_id = author.id
        return state

    def move(self, message_id: int, conversation: int, place_id: int) -> bool:
        """Move a message to another conversation. Returns False if it is unknown or in that one already."""
        known = self.messages.get(message_id)
        if known is None or known.conversation == conversation:
            return False
        self.messages.move(message_id, conversation)
        self._joined(message_id, known.author_id, conversation)
        self._left(message_id, known.conversation, self.place_state(place_id))
        return True

    def _joined(self, message_id: int, author_id: int, conversation: int) -> ConversationState:
        state = self.conversations.touch(conversation, ConversationState)
        insort(state.message_ids, message_id)
        del state.message_ids[:-KEPT_OF_CONVERSATION]
        state.members.pop(author_id, None)
        state.members[author_id] = None
        _drop_oldest(state.members, KEPT_MEMBERS)
        return state

    def _left(self, message_id: int, conversation_id: int, place_state: PlaceState) -> None:
        """Update a conversation that a message has left: it waits again if a community user now has the last word."""
        state = self.conversations.get(conversation_id)
        if state is not None:
            state.message_ids = [each for each in state.message_ids if each != message_id]
            known = (self.messages.get(each) for each in reversed(state.message_ids))
            last = next((each for each in known if each is not None), None)
            if last is not None and last.author_type is AuthorType.COMMUNITY_USER:
                place_state.waiting[conversation_id] = last.at


def _drop_oldest(remembered: dict[Any, Any], most: int) -> None:
    while len(remembered) > most:
        del remembered[next(iter(remembered))]


# The tracker

USER, TEAM, BOT = AuthorType.COMMUNITY_USER, AuthorType.TEAM_MEMBER, AuthorType.BOT

_MOST_LEADING = 8
_OPENING = re.compile(r"\s*(?:@(\S{1,32}?)(?=[\s:,，：、]|\Z)|([^\s:,，：、][^:,，：、\n]{0,31})[:,，：、])")
"""The name that a message opens with: after an @, or before a colon or comma. A bare word is too often just a word."""
_ASKS = re.compile("[?？؟]")


class Link(StrEnum):
    """The rule by which a message was assigned to its conversation."""

    REPLY = "reply"
    NAMED = "named"
    OWN = "own"
    HEARD = "heard"
    WAITING = "waiting"
    THREAD = "thread"
    BEGUN = "begun"


class AssignedConversation(NamedTuple):
    """The conversation that a message was assigned to.

    Attributes:
        conversation: its id, which is that of the message that began it.
        link: the rule that decided; None for a message that was assigned before.
        moved: earlier messages of the author that were moved to this conversation because of this message.
    """

    conversation: int
    link: Link | None
    moved: tuple[int, ...] = ()


class _Unassigned(NamedTuple):
    """A message to be assigned, with what is known about its place and author."""

    message: Message
    author_type: AuthorType
    place: Place
    rules: TrackingRules
    place_state: PlaceState
    author: PersonState
    words: frozenset[str]
    addressees: Sequence[int]

    @property
    def at(self) -> float:
        return self.message.at

    @property
    def author_id(self) -> int:
        return self.message.author.id


class ConversationTracker:
    """Assigns messages to conversations. Call `follow` with each message in the order of arrival."""

    def __init__(self, rules: TrackingRules | None = None) -> None:
        self._rules = rules or TrackingRules()
        self._rules_of_threads = replace(self._rules, own=math.inf, heard=math.inf, remembered=math.inf, named=math.inf)
        self._memory = ConversationMemory()
        self._rarity = Rarity()

    def conversation_of(self, message_id: int) -> int | None:
        """Return the id of a message's conversation; None if the message is unknown or was dropped from memory."""
        known = self._memory.messages.get(message_id)
        return None if known is None else known.conversation

    def kind_of(self, message_id: int) -> ConversationKind:
        """Return the kind of a message's conversation; `REPLY` if the message is unknown or was dropped from memory."""
        known = self._memory.messages.get(message_id)
        # A thread has the id of the message that it was opened on.
        by_thread = known is not None and known.conversation in {known.place_id, self.conversation_of(known.place_id)}
        return self._memory.kinds.get(message_id, THREAD if by_thread else REPLY)

    def messages_of(self, conversation: int | None, place_id: int | None = None) -> Sequence[int]:
        """Return a conversation's newest message ids, in order; with `place_id`, only those in that place."""
        state = None if conversation is None else self._memory.conversations.get(conversation)
        ids = () if state is None else tuple(state.message_ids)
        if place_id is None:
            return ids
        known = ((each, self._memory.messages.get(each)) for each in ids)
        return tuple(each for each, message in known if message is not None and message.place_id == place_id)

    def last_said(self, message_id: int) -> float | None:
        """Return the time of the newest message in the conversation of a message; None if the message is unknown or was
        dropped from memory.
        """
        ids = self.messages_of(self.conversation_of(message_id))
        last = self._memory.messages.get(ids[-1]) if ids else None
        return None if last is None else last.at

    def place_of(self, message_id: int) -> int | None:
        """Return the id of a message's place; None if the message is unknown or was dropped from memory."""
        known = self._memory.messages.get(message_id)
        return None if known is None else known.place_id

    def is_among_people(self, message_id: int, *, since_id: int = 0) -> bool:
        """True if somebody other than the author, and not a bot, had spoken in the message's conversation before it,
        after the message `since_id`.
        """
        itself = self._memory.messages.get(message_id)
        author_id = None if itself is None else itself.author_id
        before = self._before(message_id, since_id)
        return any(each.author_id != author_id and each.author_type is not BOT for each in before)

    def is_tentative(self, message: Message) -> bool:
        """True if a team member's message may still be moved to another conversation, namely when the member's next
        message is a reply.
        """
        person = self._memory.people.get(Key(message.channel_id, message.author.id))
        return person is not None and message.id in person.leading

    def helps_user(self, message_id: int) -> bool:
        """True if a community user had spoken in the message's conversation before it."""
        return any(each.author_type is USER for each in self._before(message_id))

    def _before(self, message_id: int, since_id: int = 0) -> Iterable[KnownMessage]:
        """Return the earlier messages in a message's conversation, those after `since_id`."""
        ids = self.messages_of(self.conversation_of(message_id))
        known = (self._memory.messages.get(each) for each in ids if since_id < each < message_id)
        return (each for each in known if each is not None)

    def follow(self, message: Message, author_type: AuthorType, place: Place) -> AssignedConversation:
        """Assign a message to a conversation and remember it. A message that was assigned before keeps its
        conversation.

        Do not pass system messages: nobody wrote them.
        """
        known = self.conversation_of(message.id)
        if known is not None:
            return AssignedConversation(known, None)
        kind = next((kind for kind in KINDS if kind.opening and message.text.startswith(kind.opening)), None)
        if kind is not None and author_type is TEAM:
            alone = KnownMessage(message.id, place.id, message.author.id, author_type, message.at)
            self._memory.messages.add(message.id, alone)
            self._memory.kinds[message.id] = kind
            return AssignedConversation(message.id, Link.BEGUN)
        new = _Unassigned(
            message,
            author_type,
            place,
            self._rules_of_threads if place.is_thread else self._rules,
            self._memory.place_state(place.id),
            self._memory.person(place.id, message.author.id),
            words_of(message.text),
            self._addressees(message, place.id),
        )
        link, conversation = self._by_address(new) or self._by_time(new) or self._begun(new)
        moved = self._led(new, link, conversation)
        self._remember(new, conversation)
        return AssignedConversation(conversation, link, moved)

    def _by_address(self, new: _Unassigned) -> tuple[Link, int] | None:
        """Rule 1: find the conversation of the message replied to, or of a person mentioned or named."""
        reply = new.message.reply_to
        if reply is not None and not reply.gone and reply.channel_id == new.place.id:
            target = self._memory.messages.get(reply.message_id)
            if target is None:
                return Link.REPLY, reply.message_id
            return self._turned_to(new, Link.REPLY, target.conversation, target.author_id, target.author_type)
        for user_id in new.addressees:
            person = self._memory.people.get(Key(new.place.id, user_id))
            if person is not None and person.said is not None and new.at - person.said.at < new.rules.named:
                return self._turned_to(new, Link.NAMED, person.said.conversation, user_id, person.author_type)
        return None

    def _turned_to(
        self, new: _Unassigned, link: Link, theirs: int, user_id: int, author_type: AuthorType
    ) -> tuple[Link, int]:
        """Rule 1: decide between the conversation that the message addresses and the author's own. A user who turns to
        a team member or bot busy with somebody else's question continues their own conversation, or begins one.

        A mention of the bot does not join the conversation of its answer to somebody else. A reply to that answer does.
        """
        memory = self._memory
        if new.author_type is not USER or memory.takes_part(new.author_id, theirs):
            return link, theirs
        last = new.author.newest(new.at, new.rules.remembered, new.rules.remembered)
        if last is not None and (author_type is TEAM or memory.takes_part(user_id, last.conversation)):
            return link, last.conversation
        state = memory.conversations.get(theirs)
        helps_others = state is not None and state.asker_id is not None
        if helps_others and (author_type is TEAM or (author_type is BOT and link is Link.NAMED)):
            return Link.BEGUN, new.message.id
        return link, theirs

    def _addressees(self, message: Message, place_id: int) -> Sequence[int]:
        """Return the ids of the people whom a message mentions, or addresses by name at its beginning."""
        found = [user_id for user_id, _ in message.mentions]
        opening = _OPENING.match(message.text)
        named = None if opening is None else self._memory.named(place_id, (opening[1] or opening[2]).strip())
        if named is not None:
            found.append(named)
        return [user_id for user_id in dict.fromkeys(found) if user_id != message.author.id]

    def _by_time(self, new: _Unassigned) -> tuple[Link, int] | None:
        """Rules 2 to 4: find the conversation of the author's last message, of the last message to the author, or of a
        waiting question.
        """
        said, rules, is_user = new.author.said, new.rules, new.author_type is USER
        in_a_breath = said is not None and new.at - said.at < rules.breath
        if said is not None and in_a_breath and not is_user:
            return Link.OWN, said.conversation
        last = new.author.newest(new.at, rules.own if is_user else rules.breath, rules.heard)
        if last is None:
            question = self._question(new, None) if new.author_type is TEAM else None
            return None if question is None else (Link.WAITING, question)
        current = self._memory.conversations.get(last.conversation)
        helps = current is not None and current.asker_id != new.author_id
        question = self._question(new, current) if helps and not in_a_breath else None
        if question is not None:
            return Link.WAITING, question
        return (Link.OWN if last is said else Link.HEARD), last.conversation

    def _question(self, new: _Unassigned, current: ConversationState | None) -> int | None:
        """Rules 3 and 4: return the waiting question that shares most words with the message; of several, the newest.

        If there is a `current` conversation, the question must share more words than that does.
        """
        waiting = new.place_state.waiting
        for outdated in [each for each, since in waiting.items() if new.at - since >= new.rules.heard]:
            del waiting[outdated]
        found: list[tuple[float, float, int]] = []
        for conversation_id, since in waiting.items():
            state = self._memory.conversations.get(conversation_id)
            if state is not None:
                found.append((self._rarity.shared(new.words, state.words), since, conversation_id))
        best = max(found, default=None)
        if best is None or (current is not None and best[0] <= self._rarity.shared(new.words, current.words)):
            return None
        return best[2]

    def _begun(self, new: _Unassigned) -> tuple[Link, int]:
        """Rule 5: begin a conversation, or return that of the thread."""
        message, place, latest = new.message, new.place, new.place_state.latest
        if not place.is_thread:
            return Link.BEGUN, message.id
        if latest is None:
            # A thread has the id of the message that it was opened on.
            opened_on = self.conversation_of(place.id)
            return Link.THREAD, place.id if opened_on is None else opened_on
        is_newcomer = new.author_type is USER and not self._memory.takes_part(new.author_id, latest)
        if is_newcomer and _ASKS.search(message.text):
            return Link.BEGUN, message.id
        return Link.THREAD, latest

    def _led(self, new: _Unassigned, link: Link, conversation: int) -> tuple[int, ...]:
        """After the rules: move the author's opening lines to the conversation of this message; or note that this
        message may be such a line.
        """
        author = new.author
        led = author.leading if author.said is not None and new.at - author.said.at < new.rules.leading else ()
        author.leading = ()
        if new.author_type is not TEAM:
            return ()
        if link in {Link.REPLY, Link.NAMED}:
            return tuple(each for each in led if self._memory.move(each, conversation, new.place.id))
        if link in {Link.BEGUN, Link.WAITING, Link.THREAD}:
            author.leading = (new.message.id,)
        elif link is Link.OWN and led:
            author.leading = (*led, new.message.id)[-_MOST_LEADING:]
        return ()

    def _remember(self, new: _Unassigned, conversation: int) -> None:
        message, here = new.message, new.place.id
        last = LastMessage(new.at, conversation)
        state = self._memory.add(message, new.author_type, conversation, sorted(new.words), new.place_state)
        self._rarity.add(new.words)
        new.author.author_type, new.author.said = new.author_type, last
        listeners = set(new.addressees)
        target = None if message.reply_to is None else self._memory.messages.get(message.reply_to.message_id)
        if target is not None:
            listeners.add(target.author_id)
        elif not listeners and new.author_type is USER and state.helper_id is not None:
            # Without a word to whom, an asker speaks to who has just helped.
            listeners.add(state.helper_id)
        for user_id in sorted(listeners - {new.author_id}):
            self._memory.person(here, user_id).heard = last
