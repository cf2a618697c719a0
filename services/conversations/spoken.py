"""The memory of the follower: the newest messages, conversations, people and places, each bounded in number."""

from __future__ import annotations

import sys
from bisect import insort
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from model.batches import Key
from model.messages import AuthorType, Message
from services.conversations.newest import NewestSpoken, Spoken

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

KEPT_MESSAGES = 50_000
KEPT_TALKS = 5_000
KEPT_PEOPLE = 20_000  # and as many names; one person in two places counts as two
KEPT_SCENES = 1_000
KEPT_OF_TALK = 200  # messages: as many as are read of a thread
KEPT_MEMBERS = 64
KEPT_WORDS = 128
KEPT_WAITING = 32


class Last(NamedTuple):
    """The time and conversation of somebody's last message, or of the last message to them."""

    at: float
    conversation: int


@dataclass(slots=True)
class Person:
    """What is remembered of a person in one place.

    Attributes:
        leading: their newest messages, as far as these may turn out to lead to a reply.
    """

    author_type: AuthorType = AuthorType.COMMUNITY_USER
    said: Last | None = None
    heard: Last | None = None
    leading: tuple[int, ...] = ()

    def newest(self, at: float, own: float, heard: float) -> Last | None:
        """Return the newer of the last messages said and heard, if it is less than `own` or `heard` seconds old."""
        near = [last for last, most in ((self.said, own), (self.heard, heard)) if last and at - last.at < most]
        return max(near, key=lambda last: last.at, default=None)


@dataclass(slots=True)
class Talk:
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
class Scene:
    """What is remembered of a channel or thread.

    Attributes:
        waiting: the conversations in which a community user, not the team, has the last word; and since when.
        latest: the one that was spoken in last.
    """

    waiting: dict[int, float] = field(default_factory=dict[int, float])
    latest: int | None = None


class Memory:
    """All that the follower remembers. What was unused for longest is dropped first; of messages, the oldest."""

    def __init__(self) -> None:
        self.spoken = NewestSpoken(KEPT_MESSAGES)
        self.talks: OrderedDict[int, Talk] = OrderedDict()
        self.people: OrderedDict[Key, Person] = OrderedDict()
        self.names: OrderedDict[tuple[int, str], int] = OrderedDict()
        self.scenes: OrderedDict[int, Scene] = OrderedDict()

    def scene(self, place_id: int) -> Scene:
        return _touched(self.scenes, place_id, Scene, KEPT_SCENES)

    def person(self, place_id: int, user_id: int) -> Person:
        return _touched(self.people, Key(place_id, user_id), Person, KEPT_PEOPLE)

    def takes_part(self, user_id: int, conversation: int) -> bool:
        talk = self.talks.get(conversation)
        return talk is not None and user_id in talk.members

    def named(self, place_id: int, name: str) -> int | None:
        """Return the id of the person who lately wrote in this place under a name."""
        return self.names.get((place_id, name.casefold()))

    def add(
        self, message: Message, author_type: AuthorType, conversation: int, words: Iterable[str], scene: Scene
    ) -> Talk:
        """Add a message that was assigned to a conversation; `scene`: its place."""
        author, at = message.author, message.at
        spoken = Spoken(conversation, message.channel_id, author.id, author_type, at)
        self.spoken.add(message.id, spoken)
        if author.name:
            _put(self.names, (message.channel_id, author.name.casefold()), author.id, KEPT_PEOPLE)
        talk = self._joined(message.id, author.id, conversation)
        talk.words.update(dict.fromkeys(map(sys.intern, words)))  # one string for all conversations
        _shorten(talk.words, KEPT_WORDS)
        scene.latest = conversation
        if author_type is not AuthorType.BOT:
            scene.waiting.pop(conversation, None)
        if author_type is AuthorType.COMMUNITY_USER:
            talk.asker_id = author.id if talk.asker_id is None else talk.asker_id
            scene.waiting[conversation] = at
            _shorten(scene.waiting, KEPT_WAITING)
        elif author_type is AuthorType.TEAM_MEMBER:
            talk.helper_id = author.id
        return talk

    def move(self, message_id: int, conversation: int, place_id: int) -> bool:
        """Move a message to another conversation. Returns False if it is unknown or in that one already."""
        spoken = self.spoken.get(message_id)
        if spoken is None or spoken.conversation == conversation:
            return False
        self.spoken.move(message_id, conversation)
        self._joined(message_id, spoken.author_id, conversation)
        self._left(message_id, spoken.conversation, self.scene(place_id))
        return True

    def _joined(self, message_id: int, author_id: int, conversation: int) -> Talk:
        talk = _touched(self.talks, conversation, Talk, KEPT_TALKS)
        insort(talk.message_ids, message_id)
        del talk.message_ids[:-KEPT_OF_TALK]
        talk.members.pop(author_id, None)
        talk.members[author_id] = None
        _shorten(talk.members, KEPT_MEMBERS)
        return talk

    def _left(self, message_id: int, name: int, scene: Scene) -> None:
        """Update a conversation that a message has left: it waits again if a community user now has the last word."""
        talk = self.talks.get(name)
        if talk is not None:
            talk.message_ids = [each for each in talk.message_ids if each != message_id]
            known = (self.spoken.get(each) for each in reversed(talk.message_ids))
            last = next((each for each in known if each is not None), None)
            if last is not None and last.author_type is AuthorType.COMMUNITY_USER:
                scene.waiting[name] = last.at


def _touched(remembered: OrderedDict[K, V], key: K, new: Callable[[], V], most: int) -> V:
    value = remembered.get(key)
    if value is None:
        return _put(remembered, key, new(), most)
    remembered.move_to_end(key)
    return value


def _put(remembered: OrderedDict[K, V], key: K, value: V, most: int) -> V:
    remembered[key] = value
    remembered.move_to_end(key)
    if len(remembered) > most:
        remembered.popitem(last=False)
    return value


def _shorten(remembered: dict[K, V], most: int) -> None:
    while len(remembered) > most:
        del remembered[next(iter(remembered))]
