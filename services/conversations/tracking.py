"""Assigns each message to a conversation, in the order in which messages arrive: rules and time limits, word overlap,
and the bounded memory of messages, conversations, people and places.

`docs/conversations.md` numbers the rules in their order. The result depends on the messages and their order alone:
there is no clock and no look-up, and only the newest messages are remembered.
"""

from __future__ import annotations

import re
import sys
from array import array
from bisect import bisect_left, insort
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import islice
from math import inf, log
from typing import Any, NamedTuple

from model.bounded import BoundedDict
from model.conversations import KINDS, REPLY, THREAD, ConversationKind
from model.messages import AuthorType, Key, Message, Place
from services.search import terms


@dataclass(frozen=True, slots=True)
class TrackingRules:
    """The time limits of tracking: for how many seconds an earlier message decides to which conversation the next one
    belongs. In threads only `team_gap` and `intro_gap` apply.

    Attributes:
        team_gap: seconds within which a team member or bot goes on in the same conversation; few, since the team serves
            several people in turn.
        own_gap: seconds within which a community user goes on in the same conversation.
        answer_gap: seconds for which a message to somebody, or a waiting question, may be answered without a reply.
        intro_gap: seconds between a team member's opening line ("let me look…") and the reply that follows it. Both are
            in one batch then, so neither was captured yet.
        return_gap: seconds after which a user who turns to the team again begins a new conversation. By then the old
            one is filed (`kb.settle_minutes`).
        name_gap: seconds for which a name or mention stands for that person's last conversation.
    """

    team_gap: float = 90.0
    own_gap: float = 300.0
    answer_gap: float = 600.0
    intro_gap: float = 60.0
    return_gap: float = 600.0
    name_gap: float = 3600.0


# Words in common

READ_CHARS = 2_000
"""The characters of a message that are read: later ones are logs or code."""
COUNTED_MESSAGES = 1_000
"""The number of newest messages that words are counted in."""
MAX_WORDS = 300
"""The words of a message that are read, the first ones: more than 2,000 characters of prose have, and fewer than 2,000
random characters of Chinese.
"""


def words_of(text: str) -> frozenset[str]:
    """Return the words of a message, in any language: stems, or pairs of characters if the script has no blanks.

    Always read as the same language, so that a question and its answer have the same stems. Function words of other
    languages stay in; they weigh little, since they are frequent.
    """
    return frozenset(islice(dict.fromkeys(terms(text[:READ_CHARS])), MAX_WORDS))


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
                count = self._counts[word] - 1
                if count:
                    self._counts[word] = count
                else:
                    del self._counts[word]

    def shared_weight(self, words: Iterable[str], others: Collection[str]) -> float:
        """Return the weight of the common words: the sum of log(1 / share of messages that contain the word)."""
        both = sorted(word for word in words if word in others)  # sorted: a sum must not depend on the order of a set
        return sum(log((len(self._messages) + 1) / (self._counts[word] + 1)) for word in both)


# Compact tables of messages

_TYPES = tuple(AuthorType)


class RecentIds:
    """A bounded table of message ids, each with a number in every column. It keeps the greatest ids, which are the
    newest: they contain the time.

    An id alone takes 8 bytes, where an `OrderedDict` takes 180. The columns are made at full length: arrays that grow
    are moved again and again, and leave holes in memory.
    """

    __slots__ = ("_columns", "_count", "_has_dropped", "_ids", "_most")

    def __init__(self, most: int, columns: str = "") -> None:
        """`columns`: the type code of each column, as `array` has it."""
        # Room for the kept ids, for those that are dropped together, and for one more.
        self._columns: list[array[Any]] = [array(code, [0]) * (most + most // 16 + 1) for code in f"Q{columns}"]
        self._ids: array[int] = self._columns[0]
        self._count = 0
        self._has_dropped = False
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
            if index < count:  # rarely: new ids are nearly always the greatest
                column[index + 1 : count + 1] = column[index:count]
            column[index] = number
        self._count = count + 1
        if self._count > self._most + self._most // 16:  # drops many at once, since all others move up
            for column in self._columns:
                column[: self._most] = column[self._count - self._most : self._count]
            self._count = self._most
            self._has_dropped = True

    def between(self, low: int, high: int) -> Iterator[list[Any]] | None:
        """Yield the rows of the ids from `low` up to `high`, each with its id; None: some may have been dropped."""
        if self._has_dropped and self._ids[0] > low:
            return None
        indices = range(bisect_left(self._ids, low, 0, self._count), bisect_left(self._ids, high, 0, self._count))
        return ([column[index] for column in self._columns] for index in indices)

    def put(self, message_id: int, column: int, number: float) -> None:
        """Change the number in a column, counted from 0, of an id, if it is in the table."""
        index = self._index_of(message_id)
        if index is not None:
            self._columns[column + 1][index] = number

    def _index_of(self, message_id: int) -> int | None:
        index = bisect_left(self._ids, message_id, 0, self._count)
        return index if index < self._count and self._ids[index] == message_id else None


class KnownMessage(NamedTuple):
    """A row of the table of messages."""

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

    def between(self, low: int, high: int) -> Iterator[tuple[int, KnownMessage]] | None:
        """Yield the messages from `low` up to `high` with their ids; None: some may have been dropped."""
        rows = self._rows.between(low, high)
        return (
            None
            if rows is None
            else ((row[0], KnownMessage(row[1], row[2], row[3], _TYPES[row[4]], row[5])) for row in rows)
        )

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
KEPT_DELETED = 1_000


class LastMessage(NamedTuple):
    """The last message from or to a person: its time, its conversation, its id, and who wrote it."""

    at: float
    conversation: int
    message_id: int
    author_type: AuthorType


@dataclass(slots=True)
class PersonState:
    """The memory of a person in one place: the last message from them, and to them. `intro`: the ids of those of their
    newest messages that may be the opening lines of a reply.
    """

    author_type: AuthorType = AuthorType.COMMUNITY_USER
    last_from: LastMessage | None = None
    last_to: LastMessage | None = None
    intro: tuple[int, ...] = ()

    def newest(self, at: float, own_gap: float, answer_gap: float) -> LastMessage | None:
        """Return the newer of the last messages from and to the person, if younger than `own_gap` or `answer_gap`."""
        both = ((self.last_from, own_gap), (self.last_to, answer_gap))
        near = [last for last, gap in both if last and at - last.at < gap]
        return max(near, key=lambda last: last.at, default=None)


@dataclass(slots=True)
class ConversationState:
    """The memory of a conversation.

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
    """The memory of a place. `waiting`: the conversations in which a community user, not the team, has the last word,
    with its time. `latest`: the conversation of the newest message.
    """

    waiting: dict[int, float] = field(default_factory=dict[int, float])
    latest: int | None = None


class ConversationMemory:
    """The memory of the tracker. Entries unused for longest are dropped first; of messages, the oldest."""

    def __init__(self) -> None:
        self.messages = KnownMessages(KEPT_MESSAGES)
        self.conversations = BoundedDict[int, ConversationState](KEPT_CONVERSATIONS)
        self.people = BoundedDict[Key, PersonState](KEPT_PEOPLE)
        self.names = BoundedDict[tuple[int, str], int](KEPT_PEOPLE)  # who wrote lately, by place and name, folded
        self.place_states = BoundedDict[int, PlaceState](KEPT_PLACES)
        self.kinds = BoundedDict[int, ConversationKind](KEPT_CONVERSATIONS)  # of messages that begin with an `opening`
        self.deleted = BoundedDict[int, None](KEPT_DELETED)

    def place_state(self, place_id: int) -> PlaceState:
        return self.place_states.touch(place_id, PlaceState)

    def person(self, place_id: int, user_id: int) -> PersonState:
        return self.people.touch(Key(place_id, user_id), PersonState)

    def takes_part(self, user_id: int, conversation: int) -> bool:
        state = self.conversations.get(conversation)
        return state is not None and user_id in state.members

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
        state = self._join(message.id, author.id, conversation)
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
        self._join(message_id, known.author_id, conversation)
        self._leave(message_id, known.conversation, self.place_state(place_id))
        return True

    def _join(self, message_id: int, author_id: int, conversation: int) -> ConversationState:
        state = self.conversations.touch(conversation, ConversationState)
        insort(state.message_ids, message_id)
        del state.message_ids[:-KEPT_OF_CONVERSATION]
        state.members.pop(author_id, None)
        state.members[author_id] = None
        _drop_oldest(state.members, KEPT_MEMBERS)
        return state

    def _leave(self, message_id: int, conversation_id: int, place_state: PlaceState) -> None:
        """Update a conversation that has lost a message: it waits again if a community user has the last word now."""
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

_MAX_INTRO = 8
_ADDRESSEE = re.compile(r"\s*(?:@(\S{1,32}?)(?=[\s:,，：、]|\Z)|([^\s:,，：、][^:,，：、\n]{0,31})[:,，：、])")
"""The name at the beginning of a message: after an @, or before a colon or comma. A bare word is rarely a name."""
_ASKS = re.compile("[?？؟]")
_MAX_ADDRESSED = 2
"""A community user who names more people at once speaks to none of them."""


class Rule(StrEnum):
    """The rule by which a message was assigned to its conversation."""

    REPLY = "reply"
    NAMED = "named"
    OWN = "own"
    HEARD = "heard"
    WAITING = "waiting"
    THREAD = "thread"
    BEGUN = "begun"


class AssignedConversation(NamedTuple):
    """The id of the conversation that a message was assigned to (that of its first message), and the rule that decided;
    None: it was assigned before. `moved`: earlier messages of the author that came along.
    """

    conversation: int
    rule: Rule | None
    moved: tuple[int, ...] = ()


class _UnassignedMessage(NamedTuple):
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
        self._rules_of_threads = replace(self._rules, own_gap=inf, answer_gap=inf, return_gap=inf, name_gap=inf)
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
        """Return the time of the newest message in a message's conversation; None if the message is unknown."""
        ids = self.messages_of(self.conversation_of(message_id))
        last = self._memory.messages.get(ids[-1]) if ids else None
        return None if last is None else last.at

    def place_of(self, message_id: int) -> int | None:
        """Return the id of a message's place; None if the message is unknown or was dropped from memory."""
        known = self._memory.messages.get(message_id)
        return None if known is None else known.place_id

    def written_by_users(self, place_id: int, low: int, high: int, bot_id: int | None) -> dict[int, int] | None:
        """Return the authors of what community users wrote in a place from the id `low` up to `high`, by message, also
        of messages that were deleted or are withheld, and of the one that a thread was opened on, however old; 0: a bot
        other than `bot_id`, such as a bridge. None: not all of it is in memory.
        """
        rows = self._memory.messages.between(low, high)
        if rows is None:
            return None
        there = {each: row for each, row in rows if row.place_id == place_id}
        opened_on = self._memory.messages.get(place_id)  # a thread has the id of the message that it was opened on
        if opened_on is not None:
            there[place_id] = opened_on
        return {
            each: row.author_id if row.author_type is USER else 0
            for each, row in there.items()
            if row.author_type is not TEAM and row.author_id != bot_id
        }

    def others_wrote(self, message_id: int, *, since_id: int = 0) -> bool:
        """Return True if somebody else, no bot, had written in a message's conversation before it, after `since_id`."""
        known = self._memory.messages.get(message_id)
        author_id = None if known is None else known.author_id
        earlier = self._earlier(message_id, since_id)
        return any(each.author_id != author_id and each.author_type is not BOT for each in earlier)

    def is_tentative(self, message: Message) -> bool:
        """Return True if a team member's message may still be moved, namely when the member's next one is a reply."""
        person = self._memory.people.get(Key(message.channel_id, message.author.id))
        return person is not None and message.id in person.intro

    def helps_user(self, message_id: int) -> bool:
        """Return True if a community user had written in the message's conversation before it."""
        return any(each.author_type is USER for each in self._earlier(message_id))

    def _earlier(self, message_id: int, since_id: int = 0) -> Iterable[KnownMessage]:
        """Return the earlier messages in a message's conversation, those after `since_id`."""
        ids = self.messages_of(self.conversation_of(message_id))
        known = (self._memory.messages.get(each) for each in ids if since_id < each < message_id)
        return (each for each in known if each is not None)

    def delete(self, message_ids: Iterable[int]) -> None:
        """Note that messages were deleted: from now on nobody answers what they said."""
        for message_id in message_ids:
            self._memory.deleted[message_id] = None

    def follow(self, message: Message, author_type: AuthorType, place: Place) -> AssignedConversation:
        """Assign a message to a conversation and remember it. One that was assigned before keeps its conversation. Do
        not pass system messages: nobody wrote them.
        """
        known = self.conversation_of(message.id)
        if known is not None:
            return AssignedConversation(known, None)
        kind = next((kind for kind in KINDS if kind.opening and message.text.startswith(kind.opening)), None)
        if kind is not None and author_type is TEAM:
            row = KnownMessage(message.id, place.id, message.author.id, author_type, message.at)
            self._memory.messages.add(message.id, row)
            self._memory.kinds[message.id] = kind
            return AssignedConversation(message.id, Rule.BEGUN)
        new = _UnassignedMessage(
            message,
            author_type,
            place,
            self._rules_of_threads if place.is_thread else self._rules,
            self._memory.place_state(place.id),
            self._memory.person(place.id, message.author.id),
            words_of(message.text),
            self._addressees(message, place.id),
        )
        rule, conversation = self._by_address(new) or self._by_time(new) or self._begin(new)
        moved = self._move_intro(new, rule, conversation)
        self._remember(new, conversation)
        return AssignedConversation(conversation, rule, moved)

    def _by_address(self, new: _UnassignedMessage) -> tuple[Rule, int] | None:
        """Rule 1: find the conversation of the message replied to, or of a person mentioned or named."""
        reply = new.message.reply_to
        if reply is not None and not reply.gone and reply.channel_id == new.place.id:
            target = self._memory.messages.get(reply.message_id)
            if target is None:
                return Rule.REPLY, reply.message_id
            return self._choose_conversation(new, Rule.REPLY, target.conversation, target.author_id, target.author_type)
        for user_id in new.addressees:
            person = self._memory.people.get(Key(new.place.id, user_id))
            if person is not None and (last := person.last_from) is not None and new.at - last.at < new.rules.name_gap:
                return self._choose_conversation(new, Rule.NAMED, last.conversation, user_id, person.author_type)
        return None

    def _choose_conversation(
        self, new: _UnassignedMessage, rule: Rule, theirs: int, user_id: int, author_type: AuthorType
    ) -> tuple[Rule, int]:
        """Rule 1: decide between `theirs`, the conversation of the person addressed, and the author's own. A user who
        addresses a team member or bot busy with another's question goes on with their own conversation, or begins one.

        A mention of the bot does not join the conversation of its answer to somebody else. A reply to that answer does.
        """
        memory = self._memory
        if new.author_type is not USER or memory.takes_part(new.author_id, theirs):
            return rule, theirs
        last = new.author.newest(new.at, new.rules.return_gap, new.rules.return_gap)
        if last is not None and (author_type is TEAM or memory.takes_part(user_id, last.conversation)):
            return rule, last.conversation
        state = memory.conversations.get(theirs)
        helps_others = state is not None and state.asker_id is not None
        if helps_others and (author_type is TEAM or (author_type is BOT and rule is Rule.NAMED)):
            return Rule.BEGUN, new.message.id
        return rule, theirs

    def _addressees(self, message: Message, place_id: int) -> Sequence[int]:
        """Return the ids of the people whom a message mentions, or addresses by name at its beginning."""
        found = [mentioned for mentioned, _ in message.mentions]
        name = _ADDRESSEE.match(message.text)
        user_id = None if name is None else self._memory.names.get((place_id, (name[1] or name[2]).strip().casefold()))
        if user_id is not None:
            found.append(user_id)
        return [each for each in dict.fromkeys(found) if each != message.author.id]

    def _by_time(self, new: _UnassignedMessage) -> tuple[Rule, int] | None:
        """Rules 2 to 4: find the conversation of the author's last message, of the last to them, or of a question."""
        own, rules, is_user = new.author.last_from, new.rules, new.author_type is USER
        in_burst = own is not None and new.at - own.at < rules.team_gap
        if own is not None and in_burst and not is_user:
            return Rule.OWN, own.conversation
        answer_gap = 0.0 if is_user and self._is_unrelated(new) else rules.answer_gap
        last = new.author.newest(new.at, rules.own_gap if is_user else rules.team_gap, answer_gap)
        if last is None:
            question = self._find_question(new, None) if new.author_type is TEAM else None
            return None if question is None else (Rule.WAITING, question)
        current = self._memory.conversations.get(last.conversation)
        helps = current is not None and current.asker_id != new.author_id
        question = self._find_question(new, current) if helps and not in_burst else None
        if question is not None:
            return Rule.WAITING, question
        return (Rule.OWN if last is own else Rule.HEARD), last.conversation

    def _is_unrelated(self, new: _UnassignedMessage) -> bool:
        """Return True if the last message to a community user was deleted, or is not what the user's message is about:
        another user had turned to them, and they ask something else. Anybody could keep a person's questions from an
        answer by a mention otherwise.
        """
        last = new.author.last_to
        if last is None or last.message_id in self._memory.deleted:
            return True
        state = self._memory.conversations.get(last.conversation)
        return (
            last.author_type is USER
            and state is not None
            and new.author_id not in state.members
            and _ASKS.search(new.message.text) is not None
            and new.words.isdisjoint(state.words)
        )

    def _find_question(self, new: _UnassignedMessage, current: ConversationState | None) -> int | None:
        """Rules 3 and 4: return the waiting question that shares most words with the message, and more than the
        `current` conversation does; of several, the newest.
        """
        waiting = new.place_state.waiting
        for outdated in [each for each, since in waiting.items() if new.at - since >= new.rules.answer_gap]:
            del waiting[outdated]
        found: list[tuple[float, float, int]] = []
        for conversation_id, since in waiting.items():
            state = self._memory.conversations.get(conversation_id)
            if state is not None:
                found.append((self._rarity.shared_weight(new.words, state.words), since, conversation_id))
        best = max(found, default=None)
        if best is None or (current is not None and best[0] <= self._rarity.shared_weight(new.words, current.words)):
            return None
        return best[2]

    def _begin(self, new: _UnassignedMessage) -> tuple[Rule, int]:
        """Rule 5: begin a conversation, or return the thread's."""
        message, place, latest = new.message, new.place, new.place_state.latest
        if not place.is_thread:
            return Rule.BEGUN, message.id
        if latest is None:
            # A thread has the id of the message that it was opened on.
            opened_on = self.conversation_of(place.id)
            return Rule.THREAD, place.id if opened_on is None else opened_on
        is_newcomer = new.author_type is USER and not self._memory.takes_part(new.author_id, latest)
        if is_newcomer and _ASKS.search(message.text):
            return Rule.BEGUN, message.id
        return Rule.THREAD, latest

    def _move_intro(self, new: _UnassignedMessage, rule: Rule, conversation: int) -> tuple[int, ...]:
        """After the rules: move the author's opening lines to this conversation, or note that this may be one."""
        author = new.author
        last = author.last_from
        intro = author.intro if last is not None and new.at - last.at < new.rules.intro_gap else ()
        author.intro = ()
        if new.author_type is not TEAM:
            return ()
        if rule in {Rule.REPLY, Rule.NAMED}:
            return tuple(each for each in intro if self._memory.move(each, conversation, new.place.id))
        if rule in {Rule.BEGUN, Rule.WAITING, Rule.THREAD}:
            author.intro = (new.message.id,)
        elif rule is Rule.OWN and intro:
            author.intro = (*intro, new.message.id)[-_MAX_INTRO:]
        return ()

    def _remember(self, new: _UnassignedMessage, conversation: int) -> None:
        message, here = new.message, new.place.id
        last = LastMessage(new.at, conversation, message.id, new.author_type)
        state = self._memory.add(message, new.author_type, conversation, sorted(new.words), new.place_state)
        self._rarity.add(new.words)
        new.author.author_type, new.author.last_from = new.author_type, last
        is_said_to_many = new.author_type is USER and len(new.addressees) > _MAX_ADDRESSED
        listeners = set(() if is_said_to_many else new.addressees)
        target = None if message.reply_to is None else self._memory.messages.get(message.reply_to.message_id)
        if target is not None:
            listeners.add(target.author_id)
        elif not new.addressees and new.author_type is USER and state.helper_id is not None:
            # An asker who addresses nobody speaks to the last helper.
            listeners.add(state.helper_id)
        for user_id in sorted(listeners - {new.author_id}):
            self._memory.person(here, user_id).last_to = last
