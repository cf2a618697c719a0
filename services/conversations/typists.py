"""Tracks who is typing."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection

from model.batches import Key
from model.events import Typing
from model.messages import Message
from services.conversations.people import People

TYPING_SECONDS = 15.0
"""Somebody types until this long after it was last heard of. Discord's clients repeat it about every ten seconds, for
as long as it is shown (API reference, "Trigger Typing Indicator"); half as long again outlasts a late one."""
TELLS_SECONDS = 600.0
"""Whoever was heard typing this recently has a client that tells. Not for ever: the same person may write from another
one, or after the connection was lost."""
REMEMBERED = 20_000  # people and places; those heard longest ago are forgotten first


class Typists:
    """Remembers who was typing lately, by place; in memory only, and for ten minutes at most.

    Many clients never report typing, and many recordings hold no such events. So the absence of typing means something
    only for people who were seen typing.
    """

    def __init__(self, people: People, guild_of: Callable[[int], int | None] = lambda _place_id: None) -> None:
        """`guild_of`: the server of a place; None: not known."""
        self._people = people
        self._guild_of = guild_of
        self._heard: OrderedDict[Key, float] = OrderedDict()
        self._team: OrderedDict[Key, float] = OrderedDict()

    def heard(self, event: Typing) -> None:
        """Take in a typing event; each once, in the order received."""
        key = Key(event.channel_id, event.author.id)
        _put(self._heard, key, event.at, TELLS_SECONDS)
        if self._people.is_team(event.author, self._guild_of(event.channel_id)):
            _put(self._team, key, event.at, TYPING_SECONDS)

    def posted(self, message: Message) -> None:
        """Take in a message: its author no longer counts as typing."""
        if self._team:
            self._team.pop(Key(message.channel_id, message.author.id), None)

    def tells(self, key: Key, at: float) -> bool:
        """True if typing events of this author arrived from this place within `TELLS_SECONDS` before `at`, or since."""
        return self._heard.get(key, float("-inf")) >= at - TELLS_SECONDS

    def team_types_until(self, place_ids: Collection[int]) -> float:
        """Return the time at which the last team member who types in one of the places counts as having stopped; far in
        the past if nobody types.
        """
        times = (at for key, at in self._team.items() if key.place_id in place_ids)
        return max(times, default=float("-inf")) + TYPING_SECONDS


def _put(remembered: OrderedDict[Key, float], key: Key, at: float, seconds: float) -> None:
    remembered[key] = at
    remembered.move_to_end(key)
    while remembered[next(iter(remembered))] < at - seconds or len(remembered) > REMEMBERED:
        remembered.popitem(last=False)
