"""The guild, and what happens in it. Whatever happens becomes an event, if the bot can see the place."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.loopback import payloads
from tests.loopback.interactions import Interaction
from tests.loopback.mentions import NOBODY, Pings
from tests.loopback.model import (
    Channel,
    ChannelKind,
    File,
    Guild,
    Link,
    Member,
    Message,
    MessageKind,
    Overwrite,
    Place,
    Role,
    Thread,
    User,
)
from tests.loopback.payloads import Payload
from tests.loopback.permissions import ANSWER, TALK, Permission
from tests.loopback.posts import Post
from tests.loopback.snowflakes import Snowflakes

ATTACHMENT_SECONDS = 24 * 3600
"""How long an attachment's address is good."""

MESSAGE_CONTENT_LIMITED = 1 << 19
"""Application flag: message content is switched on, for a bot in fewer than 100 guilds."""

Emit = Callable[[str, Payload], None]


class State:
    """Everything Discord knows. No permission is asked here, except what the bot can see."""

    def __init__(self, clock: Callable[[], float], emit: Emit) -> None:
        self.clock = clock
        self.snowflake = Snowflakes(clock).make
        self.origin = ""
        """Where attachments are downloaded, e.g. `http://127.0.0.1:8080`."""
        self.places: dict[int, Place] = {}
        self.messages: dict[int, dict[int, Message]] = {}
        """By place and message id."""
        self.files: dict[int, File] = {}
        self.posts: list[Post] = []
        self.nonces: dict[tuple[int, str], Message] = {}
        self.commands: dict[str, list[Payload]] = {}
        """Registered application commands, by the path they were put to."""
        self.interactions: dict[str, Interaction] = {}
        """By token."""
        self.gateway_url = ""
        self.file_key = 1
        """Part of every attachment's address; a new one makes the old addresses worthless."""
        self.content_approved = True
        """Whether the application may read message content at all, over REST as well."""
        self.joined = True
        """Whether REST tells that the bot is in the guild."""
        self._emit = emit
        owner = User(self.snowflake(), "owner")
        self.guild = Guild(self.snowflake(), "loopback", owner)
        self.guild.roles[self.guild.id] = Role(self.guild.id, "@everyone", TALK)
        self.bot = User(self.snowflake(), "millrace", bot=True)
        self.add_member(owner)
        self.add_member(self.bot, [self.add_role("millrace", ANSWER)])

    @property
    def application_flags(self) -> int:
        return MESSAGE_CONTENT_LIMITED if self.content_approved else 0

    # Who and where

    def add_role(self, name: str, permissions: Permission) -> Role:
        role = Role(self.snowflake(), name, permissions)
        self.guild.roles[role.id] = role
        self._emit("GUILD_ROLE_CREATE", {"guild_id": str(self.guild.id), "role": payloads.role(role, 1)})
        return role

    def add_member(self, user: User, roles: Sequence[Role] = ()) -> Member:
        member = Member(user, list(roles), self.clock())
        self.guild.members[user.id] = member
        self._emit("GUILD_MEMBER_ADD", {**payloads.member(member), "guild_id": str(self.guild.id)})
        return member

    def add_channel(self, channel: Channel) -> None:
        self.places[channel.id] = channel
        self.messages[channel.id] = {}
        self.tell("CHANNEL_CREATE", payloads.channel(channel, self.guild), channel)

    def overwrite(self, channel: Channel, target: Role | User, rule: Overwrite) -> None:
        channel.overwrites[target.id] = rule
        # Told even when it hides the channel: this is how a bot learns that it lost it.
        self._emit("CHANNEL_UPDATE", payloads.channel(channel, self.guild))

    def change_channel(self, channel: Channel, *, name: str | None = None, topic: str | None = None) -> None:
        channel.name = channel.name if name is None else name
        channel.topic = channel.topic if topic is None else topic
        self.tell("CHANNEL_UPDATE", payloads.channel(channel, self.guild), channel)

    def may(self, needed: Permission, place: Place) -> bool:
        """Whether the bot has all of `needed`."""
        return self.guild.permissions(self.bot, place) & needed == needed

    def channels(self) -> list[Channel]:
        return [place for place in self.places.values() if isinstance(place, Channel)]

    def threads(self) -> list[Thread]:
        """The threads the bot can see, archived ones too."""
        threads = [place for place in self.places.values() if isinstance(place, Thread)]
        return [thread for thread in threads if self.may(Permission.VIEW_CHANNEL, thread)]

    # Messages

    def write(
        self,
        place: Place,
        author: User,
        content: str,
        *,
        at: float | None = None,
        kind: int = MessageKind.DEFAULT,
        link: Link | None = None,
        files: Sequence[File] = (),
        pings: Pings = NOBODY,
        nonce: str | None = None,
        message_id: int | None = None,
        embeds: Sequence[object] = (),
        components: Sequence[object] = (),
        deliver: bool = True,
    ) -> Message:
        """Store a message and tell about it. With `deliver` False the event is lost, as Discord may do."""
        moment = self.clock() if at is None else at
        message = Message(
            id=self.snowflake(at) if message_id is None else message_id,
            place=place,
            author=author,
            # Discord trims what people and bots write.
            content=content.strip(),
            at=moment,
            kind=kind,
            link=link,
            files=list(files),
            embeds=list(embeds),
            components=list(components),
            pings=pings,
            nonce=nonce,
        )
        self.files |= {file.id: file for file in files}
        self.messages[place.id][message.id] = message
        place.last_message_id = max(message.id, place.last_message_id or 0)
        if isinstance(place, Thread):
            self._grow(place, message)
        if deliver:
            self.tell("MESSAGE_CREATE", self.event(message), place)
        return message

    def _grow(self, thread: Thread, message: Message) -> None:
        if thread.archived:
            self.change_thread(thread, archived=False)
        if message.kind != MessageKind.THREAD_STARTER and message.id != thread.id:
            thread.message_count += 1
        self.join(thread, message.author)

    def join(self, thread: Thread, user: User) -> None:
        if user.id in thread.members or user.webhook:
            return
        thread.members[user.id] = self.clock()
        if user is self.bot:
            if thread.kind is ChannelKind.PRIVATE_THREAD:
                self.tell("THREAD_CREATE", payloads.thread(thread, self.guild, self.bot), thread)
            payload = {"id": str(thread.id), "guild_id": str(self.guild.id), "member_count": len(thread.members)}
            joined = [payloads.thread_member(thread, user.id)]
            self.tell("THREAD_MEMBERS_UPDATE", {**payload, "added_members": joined}, thread)

    def find(self, place_id: int, message_id: int) -> Message | None:
        return self.messages.get(place_id, {}).get(message_id)

    def history(self, place: Place) -> list[Message]:
        """Oldest first."""
        messages = self.messages[place.id]
        return [messages[number] for number in sorted(messages)]

    def payload(self, message: Message) -> Payload:
        """As REST gives it."""
        payload = self._payload(message)
        if message.link is not None and message.link.message_id is not None:
            referenced = self.find(message.link.channel_id, message.link.message_id)
            # Not nested further: the referenced message comes without the one it refers to.
            payload["referenced_message"] = None if referenced is None else self._payload(referenced)
        return payload if self.content_approved else payloads.without_content(payload, self.bot)

    def _payload(self, message: Message) -> Payload:
        files = [self.attachment(file, message.place) for file in message.files]
        return payloads.message(message, self.guild, self.bot, files)

    def event(self, message: Message) -> Payload:
        """As the gateway gives it: with the guild, and the author as a member."""
        payload = {**self.payload(message), "guild_id": str(self.guild.id), "channel_type": int(message.place.kind)}
        member = self.guild.members.get(message.author.id)
        if member is not None:
            payload["member"] = payloads.member(member, with_user=False)
        return payload

    def attachment(self, file: File, place: Place) -> Payload:
        expires = int(self.clock()) + ATTACHMENT_SECONDS
        url = f"{self.origin}/attachments/{place.id}/{file.id}/{file.filename}?ex={expires:x}&hm={self.file_key:x}"
        payload: Payload = {
            "id": str(file.id),
            "filename": file.filename,
            "size": len(file.content),
            "url": url,
            "proxy_url": url,
        }
        optional = {"content_type": file.content_type, "description": file.description}
        return payload | {key: value for key, value in optional.items() if value is not None}

    def edit(self, message: Message, content: str) -> None:
        message.content = content.strip()
        message.edited_at = self.clock()
        self.tell("MESSAGE_UPDATE", self.event(message), message.place)

    def delete(self, message: Message) -> None:
        self.messages[message.place.id].pop(message.id)
        payload = {"id": str(message.id), "channel_id": str(message.place.id), "guild_id": str(self.guild.id)}
        self.tell("MESSAGE_DELETE", payload, message.place)

    def delete_many(self, place: Place, messages: Sequence[Message]) -> None:
        for message in messages:
            self.messages[place.id].pop(message.id)
        ids = [str(message.id) for message in messages]
        payload = {"ids": ids, "channel_id": str(place.id), "guild_id": str(self.guild.id)}
        self.tell("MESSAGE_DELETE_BULK", payload, place)

    def type_in(self, place: Place, user: User) -> None:
        payload = {"channel_id": str(place.id), "guild_id": str(self.guild.id), "user_id": str(user.id)}
        member = payloads.member(self.guild.members[user.id])
        self.tell("TYPING_START", {**payload, "timestamp": int(self.clock()), "member": member}, place)

    # Reactions

    def react(self, message: Message, user: User, emoji: str) -> None:
        users = message.reactions.setdefault(emoji, [])
        if user.id in users:
            return
        users.append(user.id)
        payload = self._reaction(message, user, emoji) | {"message_author_id": str(message.author.id)}
        member = self.guild.members.get(user.id)
        if member is not None:
            payload["member"] = payloads.member(member)
        self.tell("MESSAGE_REACTION_ADD", payload, message.place)

    def unreact(self, message: Message, user: User, emoji: str) -> None:
        users = message.reactions.get(emoji, [])
        if user.id not in users:
            return
        users.remove(user.id)
        if not users:
            del message.reactions[emoji]
        self.tell("MESSAGE_REACTION_REMOVE", self._reaction(message, user, emoji), message.place)

    def _reaction(self, message: Message, user: User, emoji: str) -> Payload:
        return {
            "user_id": str(user.id),
            "channel_id": str(message.place.id),
            "message_id": str(message.id),
            "guild_id": str(self.guild.id),
            "emoji": payloads.emoji(emoji),
            "burst": False,
            "type": 0,
        }

    # Threads

    def open_thread(
        self,
        message: Message,
        owner: User,
        name: str,
        *,
        at: float | None = None,
        auto_archive_minutes: int = 1440,
    ) -> Thread:
        """A thread on a message: it has the message's id, and starts with a system message that points there."""
        parent = message.place.home
        thread = self._new_thread(message.id, parent, owner, name, at=at, auto_archive_minutes=auto_archive_minutes)
        message.thread = thread
        self.tell("MESSAGE_UPDATE", self.event(message), message.place)
        link = Link(message.id, message.place.id)
        self.write(thread, owner, "", at=at, kind=MessageKind.THREAD_STARTER, link=link)
        return thread

    def start_thread(
        self, parent: Channel, owner: User, name: str, kind: ChannelKind = ChannelKind.PUBLIC_THREAD
    ) -> Thread:
        """A thread without a message; the channel of a public one says that it was started."""
        thread = self._new_thread(self.snowflake(), parent, owner, name, kind)
        if kind is ChannelKind.PUBLIC_THREAD:
            link = Link(None, thread.id)
            self.write(parent, owner, name, kind=MessageKind.THREAD_CREATED, link=link)
        return thread

    def forum_post(self, forum: Channel, owner: User, name: str, at: float | None = None) -> Thread:
        """An empty post; its first message has to follow with the same id."""
        return self._new_thread(self.snowflake(at), forum, owner, name, at=at)

    def _new_thread(
        self,
        thread_id: int,
        parent: Channel,
        owner: User,
        name: str,
        kind: ChannelKind = ChannelKind.PUBLIC_THREAD,
        *,
        at: float | None = None,
        auto_archive_minutes: int = 1440,
    ) -> Thread:
        now = self.clock() if at is None else at
        thread = Thread(thread_id, name, parent, owner, now, kind, archive_changed_at=now)
        thread.auto_archive_minutes = auto_archive_minutes
        thread.members[owner.id] = now
        self.places[thread.id] = thread
        self.messages[thread.id] = {}
        if parent.kind is ChannelKind.FORUM:
            parent.last_message_id = thread.id
        payload = payloads.thread(thread, self.guild, self.bot)
        self.tell("THREAD_CREATE", {**payload, "newly_created": True}, thread)
        return thread

    def change_thread(
        self, thread: Thread, *, name: str | None = None, archived: bool | None = None, locked: bool | None = None
    ) -> None:
        """None leaves a value as it is."""
        if archived is not None and archived != thread.archived:
            thread.archive_changed_at = self.clock()
        thread.name = thread.name if name is None else name
        thread.archived = thread.archived if archived is None else archived
        thread.locked = thread.locked if locked is None else locked
        self.tell("THREAD_UPDATE", payloads.thread(thread, self.guild, self.bot), thread)

    def delete_place(self, place: Place) -> None:
        """A channel takes its threads with it."""
        children = [thread for thread in self.places.values() if isinstance(thread, Thread) and thread.parent is place]
        if isinstance(place, Thread):
            payload = {"id": str(place.id), "guild_id": str(self.guild.id)}
            payload |= {"parent_id": str(place.parent.id), "type": int(place.kind)}
            self.tell("THREAD_DELETE", payload, place)
        else:
            self.tell("CHANNEL_DELETE", payloads.channel(place, self.guild), place)
        for gone in (place, *children):
            del self.places[gone.id]
            del self.messages[gone.id]

    def tell(self, name: str, payload: Payload, place: Place) -> None:
        """An event in `place`, for the bot if it can see that."""
        if self.may(Permission.VIEW_CHANNEL, place):
            self._emit(name, payload)
