"""The world as Discord's API v10 tells it: ids as strings, times as ISO 8601."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tests.loopback.model import (
    Channel,
    ChannelKind,
    Guild,
    Member,
    Message,
    Overwrite,
    Place,
    Role,
    Thread,
    User,
)

Payload = dict[str, Any]
"""A JSON object of Discord's."""

HAS_THREAD = 1 << 5
"""A flag of messages."""


def timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def user(one: User) -> Payload:
    return {
        "id": str(one.id),
        "username": one.name,
        "global_name": None if one.bot or one.webhook else one.name,
        "discriminator": "0000" if one.webhook else "0",
        "avatar": None,
        "bot": one.bot or one.webhook,
        "public_flags": 0,
    }


def member(one: Member, *, with_user: bool = True) -> Payload:
    payload: Payload = {
        "roles": [str(role.id) for role in one.roles],
        "nick": None,
        "avatar": None,
        "joined_at": timestamp(one.joined_at),
        "premium_since": None,
        "deaf": False,
        "mute": False,
        "pending": False,
        "flags": 0,
        "communication_disabled_until": None,
    }
    return {**payload, "user": user(one.user)} if with_user else payload


def role(one: Role, position: int) -> Payload:
    return {
        "id": str(one.id),
        "name": one.name,
        "color": 0,
        "hoist": False,
        "position": position,
        "permissions": str(int(one.permissions)),
        "managed": False,
        "mentionable": False,
        "flags": 0,
    }


def overwrite(target: int, one: Overwrite, guild: Guild) -> Payload:
    return {
        "id": str(target),
        "type": 0 if target in guild.roles else 1,
        "allow": str(int(one.allow)),
        "deny": str(int(one.deny)),
    }


def place(one: Place, guild: Guild, bot: User) -> Payload:
    return thread(one, guild, bot) if isinstance(one, Thread) else channel(one, guild)


def channel(one: Channel, guild: Guild) -> Payload:
    payload: Payload = {
        "id": str(one.id),
        "type": int(one.kind),
        "guild_id": str(guild.id),
        "name": one.name,
        "position": 0,
        "topic": one.topic,
        "nsfw": False,
        "parent_id": None,
        "last_message_id": _id(one.last_message_id),
        "rate_limit_per_user": 0,
        "permission_overwrites": [overwrite(target, rule, guild) for target, rule in one.overwrites.items()],
        "flags": 0,
    }
    if one.kind is ChannelKind.FORUM:
        payload |= {"available_tags": [], "default_reaction_emoji": None, "default_sort_order": None}
        payload |= {"default_forum_layout": 0}
    return payload


def thread(one: Thread, guild: Guild, bot: User) -> Payload:
    payload: Payload = {
        "id": str(one.id),
        "type": int(one.kind),
        "guild_id": str(guild.id),
        "parent_id": str(one.parent.id),
        "owner_id": str(one.owner.id),
        "name": one.name,
        "last_message_id": _id(one.last_message_id),
        "message_count": one.message_count,
        "total_message_sent": one.message_count,
        "member_count": len(one.members),
        "rate_limit_per_user": 0,
        "flags": 0,
        "applied_tags": [str(tag) for tag in one.applied_tags],
        "thread_metadata": {
            "archived": one.archived,
            "locked": one.locked,
            "auto_archive_duration": one.auto_archive_minutes,
            "archive_timestamp": timestamp(one.archive_changed_at),
            "create_timestamp": timestamp(one.created_at),
        },
    }
    if bot.id in one.members:
        payload["member"] = thread_member(one, bot.id)
    return payload


def thread_member(one: Thread, user_id: int) -> Payload:
    joined = timestamp(one.members[user_id])
    return {"id": str(one.id), "user_id": str(user_id), "join_timestamp": joined, "flags": 0}


def guild(one: Guild, channels: list[Channel], threads: list[Thread], bot: User) -> Payload:
    """GUILD_CREATE as a bot without the members intent gets it: of the members only itself."""
    return {
        "id": str(one.id),
        "name": one.name,
        "owner_id": str(one.owner.id),
        "unavailable": False,
        "large": False,
        "joined_at": timestamp(one.members[bot.id].joined_at),
        "member_count": len(one.members),
        "roles": [role(each, position) for position, each in enumerate(one.roles.values())],
        "channels": [channel(each, one) for each in channels],
        "threads": [thread(each, one, bot) for each in threads],
        "members": [member(one.members[bot.id])],
        "emojis": [],
        "stickers": [],
        "features": [],
        "presences": [],
        "voice_states": [],
        "stage_instances": [],
        "guild_scheduled_events": [],
        "soundboard_sounds": [],
        "verification_level": 0,
        "default_message_notifications": 1,
        "explicit_content_filter": 0,
        "mfa_level": 0,
        "nsfw_level": 0,
        "premium_tier": 0,
        "system_channel_flags": 0,
        "preferred_locale": "en-US",
        "afk_timeout": 300,
    }


def emoji(text: str) -> Payload:
    name, _, number = text.partition(":")
    return {"id": number or None, "name": name}


def message(one: Message, guild: Guild, bot: User, attachments: list[Payload]) -> Payload:
    """A message as REST gives it, without the one it replies to."""
    payload: Payload = {
        "id": str(one.id),
        "channel_id": str(one.place.id),
        "type": int(one.kind),
        "author": user(one.author),
        "content": one.content,
        "timestamp": timestamp(one.at),
        "edited_timestamp": None if one.edited_at is None else timestamp(one.edited_at),
        "tts": False,
        "pinned": False,
        "mention_everyone": one.pings.everyone,
        "mentions": [
            {**user(mentioned.user), "member": member(mentioned, with_user=False)}
            for mentioned in (guild.members.get(each) for each in sorted(one.pings.users))
            if mentioned is not None
        ],
        "mention_roles": [str(each) for each in sorted(one.pings.roles)],
        "attachments": attachments,
        "embeds": one.embeds,
        "components": one.components,
        "flags": 0 if one.thread is None else HAS_THREAD,
    }
    if one.author.webhook:
        payload["webhook_id"] = str(one.author.id)
    if one.nonce is not None:
        payload["nonce"] = one.nonce
    if one.reactions:
        payload["reactions"] = [
            {
                "emoji": emoji(name),
                "count": len(users),
                "me": bot.id in users,
                "me_burst": False,
                "count_details": {"burst": 0, "normal": len(users)},
                "burst_colors": [],
            }
            for name, users in one.reactions.items()
        ]
    if one.thread is not None:
        payload["thread"] = thread(one.thread, guild, bot)
    if one.link is not None:
        reference = {"type": 0, "channel_id": str(one.link.channel_id), "guild_id": str(guild.id)}
        if one.link.message_id is not None:
            reference["message_id"] = str(one.link.message_id)
        payload["message_reference"] = reference
    return payload


def without_content(payload: Payload, bot: User) -> Payload:
    """What remains of a message for a bot without the message content intent: its own and its mentions are whole."""
    own = payload.get("author", {}).get("id") == str(bot.id)
    named = any(each["id"] == str(bot.id) for each in payload.get("mentions", ()))
    if own or named:
        return payload
    emptied: Payload = {"content": "", "embeds": [], "attachments": [], "components": []}
    rest = {**payload, **{key: value for key, value in emptied.items() if key in payload}}
    referenced: Payload | None = rest.get("referenced_message")
    if referenced is not None:
        rest["referenced_message"] = without_content(referenced, bot)
    return rest


def _id(number: int | None) -> str | None:
    return None if number is None else str(number)
