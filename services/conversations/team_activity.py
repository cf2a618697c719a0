"""Where people of the team are helping just now, told from the stream alone."""

from __future__ import annotations

from collections import OrderedDict, deque

from model.batches import Key
from model.messages import AuthorType, Message
from services.conversations.history import History
from services.conversations.people import People

REMEMBERED = 10_000
"""Pairs kept in memory; those that spoke longest ago are forgotten first."""
TIMES = 16
"""Kept of each pair, newest last: a part is judged a while after it was written, when more has been said."""


class TeamActivity:
    """Who of the team has answered whom, and who has written to whom."""

    def __init__(self, people: People, history: History) -> None:
        self._people = people
        self._history = history
        self._helped: OrderedDict[Key, deque[float]] = OrderedDict()
        self._written_to: OrderedDict[Key, deque[float]] = OrderedDict()

    def observe(self, message: Message) -> None:
        """Take note of a message, once, in the order received."""
        addressees = {user_id for user_id, _ in message.mentions}
        if message.reply_to is not None:
            target = self._history.known(message.reply_to.channel_id, message.reply_to.message_id)
            if target is not None and target.author.id != message.author.id:
                addressees.add(target.author.id)
                if self._people.is_team(message.author):
                    _put(self._helped, Key(message.channel_id, target.author.id), message.at)
        if self._people.type_of(message.author) is not AuthorType.BOT:
            for user_id in addressees - {message.author.id}:
                _put(self._written_to, Key(message.channel_id, user_id), message.at)

    def helped(self, place_id: int, asker_id: int, since: float, until: float) -> bool:
        """Whether a team member replied to this person here, from `since` to `until`."""
        return any(since <= at <= until for at in self._helped.get(Key(place_id, asker_id), ()))

    def written_to(self, place_id: int, person_id: int, after: float, until: float) -> bool:
        """Whether anybody replied to this person here, or mentioned them, after `after` and not after `until`."""
        return any(after < at <= until for at in self._written_to.get(Key(place_id, person_id), ()))


def _put(remembered: OrderedDict[Key, deque[float]], key: Key, at: float) -> None:
    remembered.setdefault(key, deque(maxlen=TIMES)).append(at)
    remembered.move_to_end(key)
    if len(remembered) > REMEMBERED:
        remembered.popitem(last=False)
