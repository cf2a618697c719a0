"""Who is the bot, who is of the team, and who is of the community."""

from __future__ import annotations

from collections import OrderedDict

from model.messages import Author, AuthorType
from services.discord import Fetcher

REMEMBERED = 20_000
"""People whose type is kept in memory; those seen longest ago are forgotten first."""


class People:
    """Tells the type of an author.

    `team_member_ids` and `team_role_ids` make a team member. Live messages carry roles, and what they said is
    remembered; for somebody known from history only, one look-up decides, and only when roles matter at all.
    """

    def __init__(self, team_member_ids: frozenset[int], team_role_ids: frozenset[int], fetcher: Fetcher | None) -> None:
        self.bot_id: int | None = None
        """Known once the session is ready."""
        self._team = team_member_ids
        self._team_roles = team_role_ids
        self._fetcher = fetcher
        self._seen: OrderedDict[int, AuthorType] = OrderedDict()

    def type_of(self, author: Author) -> AuthorType:
        """From what is known now: somebody unknown counts as a community user."""
        return self._known(author) or AuthorType.COMMUNITY_USER

    async def look_up(self, author: Author, guild_id: int | None) -> AuthorType:
        """As `type_of`, but asks Discord about somebody of whom only history tells.

        Raises:
            LookupFailed: Discord could not be asked.
        """
        known = self._known(author)
        if known is not None or self._fetcher is None or guild_id is None:
            return known or AuthorType.COMMUNITY_USER
        return self._remember(author.id, self._by_roles(await self._fetcher.role_ids(guild_id, author.id)))

    def is_team(self, author: Author) -> bool:
        return self.type_of(author) is AuthorType.TEAM_MEMBER

    def is_bot_itself(self, author: Author) -> bool:
        return author.id == self.bot_id

    def _known(self, author: Author) -> AuthorType | None:
        if author.is_bot or author.id == self.bot_id:
            return AuthorType.BOT
        if author.id in self._team:
            return AuthorType.TEAM_MEMBER
        if not self._team_roles:
            return AuthorType.COMMUNITY_USER
        if author.role_ids is not None:
            return self._remember(author.id, self._by_roles(author.role_ids))
        return self._seen.get(author.id)

    def _by_roles(self, role_ids: tuple[int, ...]) -> AuthorType:
        return AuthorType.COMMUNITY_USER if self._team_roles.isdisjoint(role_ids) else AuthorType.TEAM_MEMBER

    def _remember(self, user_id: int, kind: AuthorType) -> AuthorType:
        self._seen[user_id] = kind
        self._seen.move_to_end(user_id)
        if len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)
        return kind
