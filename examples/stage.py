"""How the demo's screenplay becomes Discord gateway dispatches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

from scripting import (
    Again,
    Channel,
    Delete,
    Edit,
    File,
    Guild,
    Json,
    Kind,
    Line,
    OpenThread,
    Person,
    Post,
    Quoted,
    React,
    Say,
    Thread,
    made_on,
    snowflake,
)

DAY = datetime(2026, 3, 11, tzinfo=UTC)
PERMISSIONS = str(1 << 6 | 1 << 10 | 1 << 11 | 1 << 14 | 1 << 15 | 1 << 16 | 1 << 35 | 1 << 38)
"""React, view, send, embed, attach, read history, create public threads, write in threads."""


class Stage:
    """Plays a screenplay: lines in, dispatches out."""

    def __init__(self, guild: Guild) -> None:
        self.guild = guild
        self.files: dict[str, bytes] = {}
        """By attachment id."""
        self._ids: dict[str, str] = {}
        self._said: dict[str, Json] = {}
        self._dispatched: dict[str, Json] = {}
        self._last = DAY
        self._number = 0

    def play(self, lines: Iterable[Line]) -> Iterator[Json]:
        yield from self._opening()
        for line in lines:
            now = self._time(line.at)
            match line:
                case Say():
                    yield self._say(line, now)
                case Post():
                    yield from self._post(line, now)
                case OpenThread():
                    yield self._open(line, now)
                case Again():
                    yield self._dispatch(now, "MESSAGE_CREATE", self._dispatched[line.key])
                case Edit():
                    changed = self._said[line.key] | {"content": line.text, "edited_timestamp": _stamp(now)}
                    self._said[line.key] = changed
                    yield self._dispatch(now, "MESSAGE_UPDATE", self._in_guild(changed, self._dispatched[line.key]))
                case Delete():
                    where = {"id": self._ids[line.key], "channel_id": self._said[line.key]["channel_id"]}
                    yield self._dispatch(now, "MESSAGE_DELETE", where | {"guild_id": self.guild.id})
                case React():
                    yield self._react(line, now)

    def _time(self, at: str) -> datetime:
        """The line's time, with milliseconds that look like life."""
        self._number += 1
        hours, minutes, seconds = (int(part) for part in at.split(":"))
        ms = self._number * 389 % 1000
        now = DAY + timedelta(hours=hours, minutes=minutes, seconds=seconds, milliseconds=ms)
        if now <= self._last:
            raise ValueError(f"{at} does not come after {self._last:%H:%M:%S.%f}")
        self._last = now
        return now

    def _opening(self) -> Iterator[Json]:
        guild = self.guild
        ready: Json = {
            "v": 10,
            "user": guild.bot.user(),
            "guilds": [{"id": guild.id, "unavailable": True}],
            "session_id": "demo",
            "resume_gateway_url": "wss://gateway.discord.gg",
            "application": {"id": guild.bot.id, "flags": 0},
        }
        yield self._dispatch(DAY, "READY", ready)
        create: Json = {
            "id": guild.id,
            "name": guild.name,
            "owner_id": guild.people[0].id,
            "member_count": len(guild.people) + 1,
            "roles": [
                {"id": id_, "name": name, "position": place, "permissions": PERMISSIONS, "color": 0, "hoist": False}
                for place, (id_, name) in enumerate(guild.roles)
            ],
            "members": [person.member() | {"user": person.user()} for person in (guild.bot, *guild.people)],
            "channels": [
                {
                    "id": channel.id,
                    "type": channel.type,
                    "name": channel.name,
                    "position": place,
                    "parent_id": None,
                    "permission_overwrites": [],
                }
                for place, channel in enumerate(guild.channels)
            ],
            "threads": [],
        }
        yield self._dispatch(DAY, "GUILD_CREATE", create)

    def _say(self, line: Say, now: datetime) -> Json:
        id_ = str(snowflake(now, self._number))
        kind = Kind.REPLY if line.reply_to and line.kind is Kind.DEFAULT else line.kind
        message = self._message(id_, self._place_id(line.where), line.who, line.text, now) | {
            "type": int(kind),
            "attachments": self._attach(line.files, id_, now),
            "mentions": [person.user() for person in line.mentions],
        }
        if line.sticker:
            message["sticker_items"] = [{"id": made_on("2024-05-02", 1), "name": line.sticker, "format_type": 1}]
        if kind is Kind.THREAD_CREATED and isinstance(line.where, Channel):
            message["message_reference"] = {"channel_id": self._ids[line.key], "guild_id": self.guild.id}
        elif line.key:
            self._ids[line.key] = id_
        extra: Json = {}
        if line.reply_to:
            quoted = self._said[line.reply_to]
            message["message_reference"] = {
                "type": 0,
                "message_id": quoted["id"],
                "channel_id": quoted["channel_id"],
                "guild_id": self.guild.id,
            }
            if line.quoted is not Quoted.ABSENT:
                extra["referenced_message"] = quoted if line.quoted is Quoted.FULL else None
        return self._remember(line.key, line.who, message, extra, now)

    def _post(self, line: Post, now: datetime) -> Iterator[Json]:
        id_ = str(snowflake(now, self._number))
        self._ids[line.key] = id_
        thread = self._thread(id_, line.title, line.forum, line.who, now)
        yield self._dispatch(now, "THREAD_CREATE", thread)
        message = self._message(id_, id_, line.who, line.text, now)
        message["attachments"] = self._attach(line.files, id_, now)
        yield self._remember(line.key, line.who, message, {}, now)

    def _open(self, line: OpenThread, now: datetime) -> Json:
        id_ = self._ids.setdefault(line.thread.key, str(snowflake(now, self._number)))
        name = line.name or str(self._said[line.thread.key]["content"]).split("\n", 1)[0][:100]
        thread = self._thread(id_, name, line.thread.channel, line.who, now)
        return self._dispatch(now, "THREAD_CREATE", thread)

    def _react(self, line: React, now: datetime) -> Json:
        name = "MESSAGE_REACTION_ADD" if line.added else "MESSAGE_REACTION_REMOVE"
        reaction: Json = {
            "user_id": line.who.id,
            "channel_id": self._said[line.key]["channel_id"],
            "message_id": self._ids[line.key],
            "guild_id": self.guild.id,
            "emoji": {"id": None, "name": line.emoji},
            "burst": False,
            "type": 0,
        }
        if line.added:
            reaction["member"] = line.who.member() | {"user": line.who.user()}
        return self._dispatch(now, name, reaction)

    def _message(self, id_: str, channel_id: str, who: Person, text: str, now: datetime) -> Json:
        message: Json = {
            "id": id_,
            "type": 0,
            "channel_id": channel_id,
            "author": who.user(),
            "content": text,
            "timestamp": _stamp(now),
            "edited_timestamp": None,
            "attachments": [],
            "embeds": [],
            "mentions": [],
            "mention_roles": [],
            "mention_everyone": False,
            "pinned": False,
            "tts": False,
        }
        return message | ({"webhook_id": who.id} if who.is_webhook else {})

    def _remember(self, key: str, who: Person, message: Json, extra: Json, now: datetime) -> Json:
        members = {} if who.is_webhook else {"member": who.member()}
        dispatched = message | {"guild_id": self.guild.id} | members | extra
        if key:
            self._said.setdefault(key, message)
            self._dispatched.setdefault(key, dispatched)
        return self._dispatch(now, "MESSAGE_CREATE", dispatched)

    def _in_guild(self, message: Json, dispatched: Json) -> Json:
        return message | {"guild_id": self.guild.id, "member": dispatched["member"]}

    def _attach(self, files: tuple[File, ...], message_id: str, now: datetime) -> list[Json]:
        attachments: list[Json] = []
        for number, file in enumerate(files, start=1):
            id_ = str(int(message_id) | number << 12)
            self.files[id_] = file.content
            address = f"https://cdn.discordapp.com/attachments/{self.guild.channels[0].id}/{id_}/{file.name}"
            attachment: Json = {
                "id": id_,
                "filename": file.name,
                "size": len(file.content),
                "content_type": file.content_type,
                "url": f"{address}?ex={int(now.timestamp()) + 86400:x}",
                "proxy_url": address.replace("cdn.discordapp.com", "media.discordapp.net"),
            }
            if file.width is not None:
                attachment |= {"width": file.width, "height": file.height}
            attachments.append(attachment)
        return attachments

    def _thread(self, id_: str, name: str, parent: Channel, owner: Person, now: datetime) -> Json:
        return {
            "id": id_,
            "type": 11,
            "name": name,
            "guild_id": self.guild.id,
            "parent_id": parent.id,
            "owner_id": owner.id,
            "message_count": 0,
            "member_count": 1,
            "thread_metadata": {
                "archived": False,
                "auto_archive_duration": 1440,
                "archive_timestamp": _stamp(now),
                "locked": False,
            },
            "newly_created": True,
        }

    def _place_id(self, where: Channel | Thread) -> str:
        return where.id if isinstance(where, Channel) else self._ids[where.key]

    @staticmethod
    def _dispatch(at: datetime, name: str, payload: Json) -> Json:
        return {"at": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"), "t": name, "d": payload}


def _stamp(at: datetime) -> str:
    return at.isoformat(timespec="microseconds")
