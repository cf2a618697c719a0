"""What the bot may do, channel by channel, as far as Discord has told discord.py's cache."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import discord

Channel = discord.TextChannel | discord.ForumChannel | discord.VoiceChannel | discord.StageChannel

NAMED_CHANNELS = 10
"""How many channels a warning names; a server may have 500."""

_NAMES = {
    "view_channel": "View Channel",
    "read_message_history": "Read Message History",
    "create_public_threads": "Create Public Threads",
    "send_messages_in_threads": "Send Messages in Threads",
}


def chosen_channels(guild: discord.Guild, allowlist: Collection[int], denylist: Collection[int]) -> Sequence[Channel]:
    """The channels of a guild in which people write, narrowed by the two lists (ids; an empty list narrows nothing)."""
    return [
        channel
        for channel in guild.channels
        if isinstance(channel, Channel) and (not allowlist or channel.id in allowlist) and channel.id not in denylist
    ]


def readable_channels(guild: discord.Guild, allowlist: Collection[int], denylist: Collection[int]) -> Sequence[Channel]:
    """Those of the chosen channels whose history the bot may read."""
    readable: list[Channel] = []
    for channel in chosen_channels(guild, allowlist, denylist):
        granted = channel.permissions_for(guild.me)
        if granted.view_channel and granted.read_message_history:
            readable.append(channel)
    return readable


def permission_warning(guild: discord.Guild, allowlist: Collection[int], denylist: Collection[int]) -> str | None:
    """One line that names what the bot lacks and where; None when nothing is missing.

    Channels that the bot cannot see are meant to be so, unless the allowlist asks for them.
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
        for permission in _needed(channel):
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


def _needed(channel: Channel) -> Sequence[str]:
    if isinstance(channel, discord.ForumChannel):
        # A post is a thread already.
        return ("read_message_history", "send_messages_in_threads")
    return ("read_message_history", "create_public_threads", "send_messages_in_threads")


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"#{name}" for name in names[:NAMED_CHANNELS])
    rest = len(names) - NAMED_CHANNELS
    return f"{shown} and {rest} more" if rest > 0 else shown
