"""Where people of the team are helping just now, told from the stream alone."""

from __future__ import annotations

from collections import OrderedDict

from model.batches import Key
from model.messages import AuthorType, Message
from services.history import History
from services.people import People

REMEMBERED = 10_000
"""Pairs kept in memory; those that spoke longest ago are forgotten first."""


class TeamActivity:
    """Who of the team has answered whom, and who has written to whom."""

    def __init__(self, people: People, history: History) -> None:
        self._people = people
        self._history = history
        self._helped: OrderedDict[Key, float] = OrderedDict()
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
            _put(self._helped, key, message.at)
        if self._people.type_of(message.author) is not AuthorType.BOT:
            _put(self._written_to, key, message.at)

    def helped_at(self, place_id: int, asker_id: int) -> float | None:
        """When a team member last replied to this person here."""
        return self._helped.get(Key(place_id, asker_id))

    def written_to_since(self, place_id: int, person_id: int, at: float) -> bool:
        """Whether anybody has replied to this person here after `at`."""
        last = self._written_to.get(Key(place_id, person_id))
        return last is not None and last > at


def _put(remembered: OrderedDict[Key, float], key: Key, at: float) -> None:
    remembered[key] = at
    remembered.move_to_end(key)
    if len(remembered) > REMEMBERED:
        remembered.popitem(last=False)
