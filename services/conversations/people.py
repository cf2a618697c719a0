"""People: who is in the team, who opted out, who may view a thread, whom the team is helping now, and who is typing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple, Protocol

from clock import run_blocking
from model.bounded import BoundedDict
from model.events import Event, Ready, Typing
from model.messages import Author, AuthorType, Key, Message
from model.servers import Servers
from services.conversations.history import History
from services.discord import Fetcher, LookupFailed
from services.storage import files, json_state

KNOWN_PEOPLE = 20_000  # people whose type is kept in memory; those seen longest ago are forgotten first
KNOWN_HELPED = 10_000  # places and people with times of replies; the oldest are dropped first
REPLY_TIMES = 16  # kept of each, newest last: a part is routed some time after it was written

log = logging.getLogger(__name__)


class TeamIds(NamedTuple):
    """The members of a team: their ids, and the ids of roles that make somebody a member."""

    member_ids: frozenset[int] = frozenset()
    role_ids: frozenset[int] = frozenset()


class People:
    """Tells team members, community users and bots apart.

    Somebody with one of the two kinds of ids is a team member. Live messages carry roles, and the type is remembered;
    people known from history only are looked up, if the team has roles. A team member of a server that has its own team
    is a community user elsewhere, and the other way round.

    Attributes:
        bot_id: the bot's own user; None until the session is ready.
    """

    def __init__(self, teams: Servers[TeamIds], fetcher: Fetcher | None) -> None:
        self.bot_id: int | None = None
        self._teams = teams
        self._fetcher = fetcher
        self._seen = BoundedDict[tuple[int | None, int], AuthorType](KNOWN_PEOPLE)

    def observe(self, event: Event) -> None:
        if isinstance(event, Ready):
            self.bot_id = event.bot_id

    def type_of(self, author: Author, guild_id: int | None) -> AuthorType:
        """Return an author's type in a server, by what is known now; an unknown person counts as a community user."""
        return self._known_type(author, self._teams.owner_of(guild_id)) or AuthorType.COMMUNITY_USER

    async def look_up(self, author: Author, guild_id: int | None, seen_in: int | None = None) -> AuthorType:
        """Return an author's type, asking Discord about somebody known from history only. May raise `LookupFailed`.
        `seen_in`: the server, if the message does not name it (`guild_id` is None); Discord is not asked then.
        """
        owner = self._teams.owner_of(seen_in if guild_id is None else guild_id)
        known = self._known_type(author, owner)
        if known is not None or self._fetcher is None or guild_id is None:
            return known or AuthorType.COMMUNITY_USER
        return self._remember(author.id, await self._fetcher.role_ids(guild_id, author.id), owner)

    def is_team(self, author: Author, guild_id: int | None) -> bool:
        return self.type_of(author, guild_id) is AuthorType.TEAM_MEMBER

    async def is_team_member(self, user_id: int, guild_id: int | None) -> bool:
        """Return True if a person is in the team of a server; Discord is asked if need be. False if it cannot be."""
        try:
            return await self.look_up(Author(user_id, ""), guild_id) is AuthorType.TEAM_MEMBER
        except LookupFailed as error:
            log.warning("whether %d is a team member is not known: %s", user_id, error)
            return False

    def is_bot_itself(self, author: Author) -> bool:
        return author.id == self.bot_id

    def _known_type(self, author: Author, owner: int | None) -> AuthorType | None:
        if author.is_bot or author.id == self.bot_id:
            return AuthorType.BOT
        team = self._teams[owner]
        if author.id in team.member_ids:
            return AuthorType.TEAM_MEMBER
        if not team.role_ids:
            return AuthorType.COMMUNITY_USER
        if author.role_ids is None:
            return self._seen.get((owner, author.id))
        return self._remember(author.id, author.role_ids, owner)

    def _remember(self, user_id: int, role_ids: tuple[int, ...], owner: int | None) -> AuthorType:
        outside = self._teams[owner].role_ids.isdisjoint(role_ids)
        kind = AuthorType.COMMUNITY_USER if outside else AuthorType.TEAM_MEMBER
        self._seen[owner, user_id] = kind
        return kind


class ThreadAccess:
    """Decides who can view a thread now. Discord is asked each time who is a member of a private thread. Without a
    `fetcher` (replay) these are the authors of its messages: Discord makes them members.
    """

    def __init__(self, history: History, fetcher: Fetcher | None) -> None:
        self.history = history
        self._fetcher = fetcher

    async def can_view(self, user_id: int, place_id: int, *, seen_in: int | None) -> bool:
        """Return True if a person is known to be able to view a thread. `seen_in`: the channel or thread where they
        have just written or called a command; None: none is known.
        """
        try:
            place = await self.history.find_place(place_id)
            if place is None:
                return False
            if place.invited_only:
                if self._fetcher is None:
                    return seen_in == place_id
                return await self._fetcher.is_thread_member(place_id, user_id)
        except LookupFailed as error:
            log.warning("whether %d can view %d is not known, so they cannot: %s", user_id, place_id, error)
            return False
        return place.public or (seen_in is not None and seen_in in {place.id, place.parent_id})


class TeamActivity:
    """Remembers whom team members have replied to lately, by place."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._helped = BoundedDict[Key, tuple[float, ...]](KNOWN_HELPED)

    def observe(self, message: Message) -> None:
        """Note a message of a team member; each once, in the order received."""
        if message.reply_to is not None:
            target = self._history.in_memory(message.reply_to.channel_id, message.reply_to.message_id)
            if target is not None and target.author.id != message.author.id:
                key = Key(message.channel_id, target.author.id)
                # Mostly one time: a deque takes 600 bytes at least.
                self._helped[key] = (*self._helped.get(key, ()), message.at)[-REPLY_TIMES:]

    def has_helped(self, place_id: int, asker_id: int, since: float, until: float) -> bool:
        """Return True if a team member replied to this person in this place between `since` and `until`."""
        return any(since <= at <= until for at in self._helped.get(Key(place_id, asker_id), ()))


class OptOutRegistry(Protocol):
    """The people who opted out with `/privacy opt-out`: checked for every message, kept durably. A change takes effect
    before it is written, also for work in progress.
    """

    def __contains__(self, user_id: object, /) -> bool: ...

    async def add(self, user_id: int) -> None:
        """Opt somebody out. Raises OSError: the change was not written, and is lost when this process ends."""
        ...

    async def discard(self, user_id: int) -> None:
        """Opt somebody in again. Raises OSError: as `add`."""
        ...


class OptOutFile:
    def __init__(self, path: Path) -> None:
        """Raises DamagedIds."""
        self._path = path
        self._ids = json_state.read_ids(path)
        self._turn = asyncio.Lock()

    def __contains__(self, user_id: object) -> bool:
        return user_id in self._ids

    async def add(self, user_id: int) -> None:
        """As `OptOutRegistry`."""
        self._ids.add(user_id)
        await self._save()

    async def discard(self, user_id: int) -> None:
        """As `OptOutRegistry`."""
        self._ids.discard(user_id)
        await self._save()

    async def _save(self) -> None:
        async with self._turn:
            await run_blocking(files.replace, self._path, json_state.render_ids(self._ids))


TYPING_SECONDS = 15.0
"""Somebody counts as typing for this long after a typing event. Discord's clients repeat the event about every ten
seconds (API reference, "Trigger Typing Indicator"); five more seconds allow for a late one."""
REPORTS_SECONDS = 600.0
"""A typing event this recent shows that the author's client reports typing. Limited, as the same person may write from
another client, or after the connection was lost."""
KNOWN_TYPISTS = 20_000  # people and places; the oldest are dropped first


class TypingTracker:
    """Remembers who was typing lately, by place; in memory only, and for ten minutes at most.

    Many clients never report typing, and many recordings hold no such events. So the absence of typing means something
    only for people who were seen typing.
    """

    def __init__(self, people: People, guild_of: Callable[[int], int | None] = lambda _place_id: None) -> None:
        """`guild_of`: the server of a place; None: not known."""
        self._people = people
        self._guild_of = guild_of
        self._heard = BoundedDict[Key, float](KNOWN_TYPISTS)
        self._team = BoundedDict[Key, float](KNOWN_TYPISTS)

    def note(self, event: Typing) -> None:
        """Note a typing event; each once, in the order received."""
        key = Key(event.channel_id, event.author.id)
        _add_typing_time(self._heard, key, event.at, REPORTS_SECONDS)
        if self._people.is_team(event.author, self._guild_of(event.channel_id)):
            _add_typing_time(self._team, key, event.at, TYPING_SECONDS)

    def note_message(self, message: Message) -> None:
        """Note a message: its author no longer counts as typing."""
        if self._team:
            self._team.pop(Key(message.channel_id, message.author.id), None)

    def reports_typing(self, key: Key, at: float) -> bool:
        """Return True if this author's client reported typing there within `REPORTS_SECONDS` before `at`, or since."""
        return self._heard.get(key, float("-inf")) >= at - REPORTS_SECONDS

    def team_types_until(self, place_ids: Collection[int]) -> float:
        """Return until when a team member counts as typing in one of the places; far in the past if nobody types."""
        times = (at for key, at in self._team.items() if key.place_id in place_ids)
        return max(times, default=float("-inf")) + TYPING_SECONDS


def _add_typing_time(remembered: BoundedDict[Key, float], key: Key, at: float, seconds: float) -> None:
    remembered[key] = at
    while remembered[next(iter(remembered))] < at - seconds:
        remembered.popitem(last=False)
