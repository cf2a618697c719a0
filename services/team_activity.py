"""Where people of the team are helping just now, told from the stream alone."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import TypeVar

from model.batches import Key
from model.messages import AuthorType, Message
from services.history import History
from services.people import People

T = TypeVar("T")

REMEMBERED = 10_000
"""Pairs kept in memory; those that spoke longest ago are forgotten first."""
REPLIES = 50
"""Kept of one pair: the newest."""


class TeamActivity:
    """Who of the team has answered whom, and who has written to whom."""

    def __init__(self, people: People, history: History) -> None:
        self._people = people
        self._history = history
        self._helped: OrderedDict[Key, deque[float]] = OrderedDict()
        self._written_to: OrderedDict[Key, float] = OrderedDict()

    def observe(self, message: Message) -> None:
        """Take note of a message, once, in the order received."""
        if message.reply_to is None:
            return
        target = self._history.known(message.reply_to.channel_id, message.reply_to.message_id)
        if target is None or target.author.id == message.author.id:
            return
        key = Key(message.channel_id, target.author.id)
        if self._people.is_team(message.author):
            times = self._helped.get(key) or deque(maxlen=REPLIES)
            times.append(message.at)
            _put(self._helped, key, times)
        if self._people.type_of(message.author) is not AuthorType.BOT:
            _put(self._written_to, key, message.at)

    def has_helped(self, place_id: int, asker_id: int, since: float, until: float) -> bool:
        """Whether a team member replied to this person here in that time; what came later does not hide it."""
        return any(since <= at <= until for at in self._helped.get(Key(place_id, asker_id), ()))

    def written_to_since(self, place_id: int, person_id: int, at: float) -> bool:
        """Whether anybody has replied to this person here after `at`."""
        last = self._written_to.get(Key(place_id, person_id))
        return last is not None and last > at


def _put(remembered: OrderedDict[Key, T], key: Key, news: T) -> None:
    remembered[key] = news
    remembered.move_to_end(key)
    if len(remembered) > REMEMBERED:
        remembered.popitem(last=False)
