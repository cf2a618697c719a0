"""The bot's permissions in each channel, by discord.py's cache."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import discord

from services.discord.live.calls import CrowdedChannels, ForbiddenPlaces

Channel = discord.TextChannel | discord.ForumChannel | discord.VoiceChannel | discord.StageChannel

NAMED_CHANNELS = 10  # the most channels that a warning names; a server may have 500

_NAMES = {
    "view_channel": "View Channel",
    "read_message_history": "Read Message History",
    "create_public_threads": "Create Public Threads",
    "send_messages_in_threads": "Send Messages in Threads",
}


def invitation(application_id: int, *, feedback: bool) -> str:
    """Return the address at which a server's owner invites the bot. `feedback`: it also reacts to its own answers."""
    needed = discord.Permissions(**dict.fromkeys(_NAMES, True), add_reactions=feedback)
    return discord.utils.oauth_url(application_id, permissions=needed, scopes=("bot", "applications.commands"))


def chosen_channels(guild: discord.Guild, allowlist: Collection[int], denylist: Collection[int]) -> Sequence[Channel]:
    """Return the channels in which people write and which the lists of ids allow; an empty list allows all."""
    return [
        channel
        for channel in guild.channels
        if isinstance(channel, Channel) and (not allowlist or channel.id in allowlist) and channel.id not in denylist
    ]


def readable_channels(guild: discord.Guild, allowlist: Collection[int], denylist: Collection[int]) -> Sequence[Channel]:
    """Return the chosen channels whose history the bot may read."""
    needed = discord.Permissions(view_channel=True, read_message_history=True)
    chosen = chosen_channels(guild, allowlist, denylist)
    return [channel for channel in chosen if needed <= channel.permissions_for(guild.me)]


def permission_warning(guild: discord.Guild, allowlist: Collection[int], denylist: Collection[int]) -> str | None:
    """Return one line that names the permissions that the bot lacks, by channel; None if it lacks none. A channel that
    it cannot see counts only if the allowlist names it.
    """
    missing: dict[str, list[str]] = {}
    seen = 0
    for channel in chosen_channels(guild, allowlist, denylist):
        # Discord has no threads in the chat of voice and stage channels: nothing can be answered there.
        if isinstance(channel, (discord.VoiceChannel, discord.StageChannel)):
            continue
        granted = channel.permissions_for(guild.me)
        if not granted.view_channel:
            if allowlist:
                missing.setdefault("view_channel", []).append(channel.name)
            continue
        seen += 1
        # A post in a forum is a thread already.
        needless = {"create_public_threads"} if isinstance(channel, discord.ForumChannel) else set[str]()
        for permission in _NAMES.keys() - needless:
            if not getattr(granted, permission):
                missing.setdefault(permission, []).append(channel.name)
    if not seen and not missing:
        return f"server {guild.name!r} ({guild.id}): the bot can see no channel there; grant its role View Channel"
    if not missing:
        return None
    parts = [
        f"{_NAMES[permission]} in {_listed(missing[permission])}" for permission in _NAMES if permission in missing
    ]
    return f"server {guild.name!r} ({guild.id}): the bot lacks {'; '.join(parts)}; grant this to its role there"


def exposure_warnings(guild: discord.Guild, team_channels: Iterable[tuple[str, int]]) -> Sequence[str]:
    """Return a line for each channel of the team, a key and an id, that everybody in the guild can view."""
    advice = "and reads what is posted there; choose a channel that only the team sees"
    exposed = [each for each in team_channels if _is_viewable(guild, each[1])]
    return [f"{key}: everybody can view {channel_id} {advice}" for key, channel_id in exposed]


def _is_viewable(guild: discord.Guild, channel_id: int) -> bool:
    place = guild.get_channel_or_thread(channel_id)
    if isinstance(place, discord.Thread):
        place = None if place.is_private() else place.parent
    return place is not None and place.permissions_for(guild.default_role).view_channel


PERMISSION_EVENTS = frozenset(
    {
        "CHANNEL_CREATE",
        "CHANNEL_UPDATE",
        "GUILD_CREATE",
        "GUILD_MEMBER_UPDATE",  # without the members intent, of the bot alone
        "GUILD_ROLE_CREATE",
        "GUILD_ROLE_DELETE",
        "GUILD_ROLE_UPDATE",
        "GUILD_UPDATE",
        "THREAD_LIST_SYNC",  # the bot has gained access to a channel
        "THREAD_MEMBERS_UPDATE",  # without the members intent, of the bot alone
        "THREAD_UPDATE",
    }
)
"""Events that may change the bot's permissions (API reference, "Gateway Events")."""


class LiveAccess:
    """`Access`, by discord.py's cache and by Discord's recent refusals."""

    def __init__(self, client: discord.Client, forbidden: ForbiddenPlaces, crowded: CrowdedChannels) -> None:
        self._client = client
        self._forbidden = forbidden
        self._crowded = crowded

    def why_not_allowed(self, channel_id: int, thread_id: int | None) -> str | None:
        channel = self._client.get_channel(channel_id)
        if isinstance(channel, discord.TextChannel | discord.ForumChannel):
            # The bot's own member is unknown in an outage; then Discord has to be asked.
            me = channel.guild.me
            # None in an outage at Discord
            granted = channel.permissions_for(me) if me else discord.Permissions.all()
            needed = ["view_channel", "send_messages_in_threads"]
            if thread_id is None:
                needed.insert(1, "create_public_threads")
            missing = [_NAMES[name] for name in needed if not getattr(granted, name)]
            if missing:
                return f"the bot lacks {', '.join(missing)}"
            if thread_id is None and any(self._crowded.is_recent(each.id) for each in channel.guild.channels):
                return "the server has too many active threads"
        refused = any(self._forbidden.is_recent(each) for each in (channel_id, thread_id) if each is not None)
        return "Discord has refused it a moment ago" if refused else None


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"#{name}" for name in names[:NAMED_CHANNELS])
    rest = len(names) - NAMED_CHANNELS
    return f"{shown} and {rest} more" if rest > 0 else shown
