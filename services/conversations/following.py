"""Assigns each message to a conversation, in the order in which messages arrive.

A conversation is one asker's, or that of people who talk with each other; its name is the id of the message that began
it. The first of these that holds for a message decides:

1. It replies to a message, or mentions or names somebody who wrote lately: that conversation. But whoever turns to the
   team while it is busy with somebody else goes on with their own conversation, or begins one.
2. A team member goes on within a breath: what they were saying.
3. The newer of what its author said and what was last said to them. A helper may have turned to a question that waits
   for the team instead: where the message has more words in common with that.
4. A team member answers a question that waits.
5. It begins a conversation; in a thread, which is about one thing, only a newcomer's question does.

A team member's leading lines ("let me look…") are known for what they are when a reply follows, and are moved then.

Everything here is a function of the messages and their order: no clock, no look-ups, and memory of the newest alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import NamedTuple

from model.batches import Key
from model.messages import AuthorType, Message, Place
from services.conversations.follow_rules import FollowRules
from services.conversations.newest import Spoken
from services.conversations.shared_words import Rarity, words_of
from services.conversations.spoken import Last, Memory, Person, Scene, Talk

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


class Followed(NamedTuple):
    """The conversation that a message was assigned to.

    Attributes:
        conversation: its id, which is that of the message that began it.
        link: the rule that decided; None for a message that was assigned before.
        moved: earlier messages of the author that were moved to this conversation because of this message.
    """

    conversation: int
    link: Link | None
    moved: tuple[int, ...] = ()


class _Turn(NamedTuple):
    """A message to be assigned, with what is known about its place and author."""

    message: Message
    author_type: AuthorType
    place: Place
    rules: FollowRules
    scene: Scene
    me: Person
    words: frozenset[str]
    addressees: Sequence[int]

    @property
    def at(self) -> float:
        return self.message.at

    @property
    def author_id(self) -> int:
        return self.message.author.id


class Follower:
    """Assigns messages to conversations. Call `follow` with each message in the order of arrival."""

    def __init__(self, rules: FollowRules | None = None) -> None:
        self._rules = rules or FollowRules()
        self._rules_of_threads = replace(self._rules, own=math.inf, heard=math.inf, remembered=math.inf, named=math.inf)
        self._memory = Memory()
        self._rarity = Rarity()

    def conversation_of(self, message_id: int) -> int | None:
        """Return the id of a message's conversation; None if the message is unknown or was dropped from memory."""
        return self._memory.spoken.conversation_of(message_id)

    def messages_of(self, conversation: int, place_id: int | None = None) -> Sequence[int]:
        """Return the newest message ids of a conversation, in order of id; with `place_id`, only those in that place."""
        talk = self._memory.talks.get(conversation)
        ids = () if talk is None else tuple(talk.message_ids)
        spoken = self._memory.spoken
        return ids if place_id is None else tuple(each for each in ids if spoken.place_of(each) == place_id)

    def last_said(self, message_id: int) -> float | None:
        """Return the time of the newest message in the conversation of a message; None if the message is unknown or was
        dropped from memory.
        """
        name = self.conversation_of(message_id)
        talk = None if name is None else self._memory.talks.get(name)
        last = None if talk is None or not talk.message_ids else self._memory.spoken.get(talk.message_ids[-1])
        return None if last is None else last.at

    def is_among_people(self, message_id: int, *, since_id: int = 0) -> bool:
        """True if somebody other than the author, and not a bot, had spoken in the message's conversation before it,
        after the message `since_id`.
        """
        itself = self._memory.spoken.get(message_id)
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

    def _before(self, message_id: int, since_id: int = 0) -> Iterable[Spoken]:
        """Return the earlier messages in a message's conversation, those after `since_id`."""
        spoken, name = self._memory.spoken, self.conversation_of(message_id)
        ids = () if name is None else self.messages_of(name)
        known = (spoken.get(each) for each in ids if since_id < each < message_id)
        return (each for each in known if each is not None)

    def follow(self, message: Message, author_type: AuthorType, place: Place) -> Followed:
        """Assign a message to a conversation and remember it. A message that was assigned before keeps its
        conversation.

        Do not pass system messages: nobody wrote them.
        """
        known = self.conversation_of(message.id)
        if known is not None:
            return Followed(known, None)
        turn = _Turn(
            message,
            author_type,
            place,
            self._rules_of_threads if place.is_thread else self._rules,
            self._memory.scene(place.id),
            self._memory.person(place.id, message.author.id),
            words_of(message.text),
            self._addressees(message, place.id),
        )
        link, conversation = self._by_address(turn) or self._by_time(turn) or self._begun(turn)
        moved = self._led(turn, link, conversation)
        self._remember(turn, conversation)
        return Followed(conversation, link, moved)

    def _by_address(self, turn: _Turn) -> tuple[Link, int] | None:
        """Find the conversation of the message replied to, or of a person mentioned or named."""
        reply = turn.message.reply_to
        if reply is not None and not reply.gone and reply.channel_id == turn.place.id:
            target = self._memory.spoken.get(reply.message_id)
            if target is None:
                return Link.REPLY, reply.message_id
            return self._turned_to(turn, Link.REPLY, target.conversation, target.author_id, target.author_type)
        for user_id in turn.addressees:
            person = self._memory.people.get(Key(turn.place.id, user_id))
            if person is not None and person.said is not None and turn.at - person.said.at < turn.rules.named:
                return self._turned_to(turn, Link.NAMED, person.said.conversation, user_id, person.author_type)
        return None

    def _turned_to(
        self, turn: _Turn, link: Link, theirs: int, user_id: int, author_type: AuthorType
    ) -> tuple[Link, int]:
        """Decide between the conversation that the message addresses and the author's own. A user who turns to a team
        member or bot that is busy with somebody else's question continues their own conversation, or begins one.

        Mentioning the bot does not refer to an answer that it gave to somebody else; replying to that answer does.
        """
        memory, me = self._memory, turn.author_id
        if turn.author_type is not USER or memory.takes_part(me, theirs):
            return link, theirs
        last = turn.me.newest(turn.at, turn.rules.remembered, turn.rules.remembered)
        if last is not None and (author_type is TEAM or memory.takes_part(user_id, last.conversation)):
            return link, last.conversation
        talk = memory.talks.get(theirs)
        helps_others = talk is not None and talk.asker_id is not None
        if helps_others and (author_type is TEAM or (author_type is BOT and link is Link.NAMED)):
            return Link.BEGUN, turn.message.id
        return link, theirs

    def _addressees(self, message: Message, place_id: int) -> Sequence[int]:
        """Return the ids of the people whom a message mentions, or addresses by name at its beginning."""
        found = [user_id for user_id, _ in message.mentions]
        opening = _OPENING.match(message.text)
        named = None if opening is None else self._memory.named(place_id, (opening[1] or opening[2]).strip())
        if named is not None:
            found.append(named)
        return [user_id for user_id in dict.fromkeys(found) if user_id != message.author.id]

    def _by_time(self, turn: _Turn) -> tuple[Link, int] | None:
        """Find the conversation of the author's last message, of the last message to the author, or of a waiting
        question.
        """
        said, rules, is_user = turn.me.said, turn.rules, turn.author_type is USER
        in_a_breath = said is not None and turn.at - said.at < rules.breath
        if said is not None and in_a_breath and not is_user:
            return Link.OWN, said.conversation
        last = turn.me.newest(turn.at, rules.own if is_user else rules.breath, rules.heard)
        if last is None:
            question = self._question(turn, None) if turn.author_type is TEAM else None
            return None if question is None else (Link.WAITING, question)
        current = self._memory.talks.get(last.conversation)
        helps = current is not None and current.asker_id != turn.author_id
        question = self._question(turn, current) if helps and not in_a_breath else None
        if question is not None:
            return Link.WAITING, question
        return (Link.OWN if last is said else Link.HEARD), last.conversation

    def _question(self, turn: _Turn, current: Talk | None) -> int | None:
        """Return the waiting question that shares most words with the message; of several, the newest.

        If there is a `current` conversation, the question must share more words than that does.
        """
        waiting = turn.scene.waiting
        for name in [name for name, since in waiting.items() if turn.at - since >= turn.rules.heard]:
            del waiting[name]
        found: list[tuple[float, float, int]] = []
        for name, since in waiting.items():
            talk = self._memory.talks.get(name)
            if talk is not None:
                found.append((self._rarity.shared(turn.words, talk.words), since, name))
        best = max(found, default=None)
        if best is None or (current is not None and best[0] <= self._rarity.shared(turn.words, current.words)):
            return None
        return best[2]

    def _begun(self, turn: _Turn) -> tuple[Link, int]:
        """Begin a conversation, or return that of the thread."""
        message, place, latest = turn.message, turn.place, turn.scene.latest
        if not place.is_thread:
            return Link.BEGUN, message.id
        if latest is None:
            # A thread has the id of the message that it was opened on.
            opened_on = self.conversation_of(place.id)
            return Link.THREAD, place.id if opened_on is None else opened_on
        is_newcomer = turn.author_type is USER and not self._memory.takes_part(turn.author_id, latest)
        if is_newcomer and _ASKS.search(message.text):
            return Link.BEGUN, message.id
        return Link.THREAD, latest

    def _led(self, turn: _Turn, link: Link, conversation: int) -> tuple[int, ...]:
        """Move the author's opening lines to the conversation of this message; or note that this message may be such a
        line.
        """
        me = turn.me
        led = me.leading if me.said is not None and turn.at - me.said.at < turn.rules.leading else ()
        me.leading = ()
        if turn.author_type is not TEAM:
            return ()
        match link:
            case Link.REPLY | Link.NAMED:
                return tuple(each for each in led if self._memory.move(each, conversation, turn.place.id))
            case Link.OWN if led:
                me.leading = (*led, turn.message.id)[-_MOST_LEADING:]
            case Link.BEGUN | Link.WAITING | Link.THREAD:
                me.leading = (turn.message.id,)
            case _:
                pass
        return ()

    def _remember(self, turn: _Turn, conversation: int) -> None:
        message, here = turn.message, turn.place.id
        last = Last(turn.at, conversation)
        talk = self._memory.add(message, turn.author_type, conversation, sorted(turn.words), turn.scene)
        self._rarity.add(turn.words)
        turn.me.author_type, turn.me.said = turn.author_type, last
        listeners = set(turn.addressees)
        target = None if message.reply_to is None else self._memory.spoken.get(message.reply_to.message_id)
        if target is not None:
            listeners.add(target.author_id)
        elif not listeners and turn.author_type is USER and talk.helper_id is not None:
            # Without a word to whom, an asker speaks to who has just helped.
            listeners.add(talk.helper_id)
        for user_id in sorted(listeners - {turn.author_id}):
            self._memory.person(here, user_id).heard = last
