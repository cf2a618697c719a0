"""What a test holds: a Discord of its own, with one guild to act in."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import discord.gateway
import discord.http
import yarl

from clock.utc import now
from tests.loopback.failures import Failure
from tests.loopback.gateway import Gateway
from tests.loopback.interactions import (
    BUTTON,
    MESSAGE_COMPONENT,
    MODAL_SUBMIT,
    Interaction,
    Said,
    Upload,
    button_of,
    data,
    filled_in,
    find,
    payload,
)
from tests.loopback.listener import API, Listener, Request
from tests.loopback.mentions import pings
from tests.loopback.model import (
    Channel,
    ChannelKind,
    File,
    Guild,
    Link,
    Message,
    MessageKind,
    Overwrite,
    Place,
    Role,
    Thread,
    User,
)
from tests.loopback.payloads import Payload
from tests.loopback.permissions import NOTHING, Permission
from tests.loopback.posts import Post
from tests.loopback.sessions import CloseCode, Intent
from tests.loopback.state import State
from tests.waiting import wait_until

TOKEN = "MTQ1ODc0NTI0NTY3NTAzMjcxMA.loopback.of-the-server-of-the-tests"
INVOKER = "CommandTree-invoker"
"""What discord.py calls the task that runs a command to its end."""


class DiscordServer:
    """A Discord on 127.0.0.1, from `async with` on until its end.

    The guild has an owner, `@everyone`, who may read and talk, and the bot with a role that may open threads
    and post in them. Channels and people are added by the test. Whatever the test does is told to sessions that
    are connected, and kept for those that can still resume.
    """

    def __init__(
        self,
        *,
        token: str = TOKEN,
        approved: Intent = Intent.MESSAGE_CONTENT,
        clock: Callable[[], float] = now,
    ) -> None:
        """`approved`: the privileged intents the application has; `clock`: seconds since 1970, UTC."""
        self.token = token
        self.clock = clock
        self.gateway = Gateway(lambda: self.state, token, approved)
        self.state = State(clock, self.gateway.emit)
        self.state.content_approved = bool(approved & Intent.MESSAGE_CONTENT)
        self._listener = Listener(self.state, self.gateway, token)
        self.origin = ""
        """`http://127.0.0.1:PORT`."""

    async def __aenter__(self) -> Self:
        port = await self._listener.start()
        self.origin = self.state.origin = f"http://127.0.0.1:{port}"
        self.gateway.url = self.state.gateway_url = f"ws://127.0.0.1:{port}/"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.gateway.close()
        await self._listener.stop()
        if self._listener.errors and error is None:
            raise ExceptionGroup("the loopback Discord failed", self._listener.errors)

    def reset_token(self, token: str) -> None:
        """Let nobody in with the old token from the next request and session on. `token`: the new one."""
        self.gateway.token = self._listener.token = token

    @contextlib.contextmanager
    def routes(self) -> Generator[None]:
        """Inside, every discord.py client of this process talks to this server."""
        before = discord.http.Route.BASE, discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY
        discord.http.Route.BASE = self.origin + API
        discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(self.gateway.url)
        try:
            yield
        finally:
            discord.http.Route.BASE, discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = before

    # The guild

    @property
    def guild(self) -> Guild:
        return self.state.guild

    @property
    def bot(self) -> User:
        return self.state.bot

    def add_role(self, name: str, permissions: Permission = NOTHING) -> Role:
        return self.state.add_role(name, permissions)

    def add_member(self, name: str, *roles: Role, bot: bool = False) -> User:
        return self.state.add_member(User(self.state.snowflake(), name, bot), roles).user

    def remove_member(self, user: User) -> None:
        """They have left; what they wrote stays."""
        del self.guild.members[user.id]

    def add_webhook(self, name: str) -> User:
        """An author that is no member."""
        return User(self.state.snowflake(), name, webhook=True)

    def add_channel(self, name: str, *, topic: str | None = None, hidden: bool = False) -> Channel:
        """`hidden`: `@everyone` cannot view it; the bot neither, until `allow`."""
        channel = Channel(self.state.snowflake(), name, topic=topic)
        if hidden:
            channel.overwrites[self.guild.id] = Overwrite(deny=Permission.VIEW_CHANNEL)
        self.state.add_channel(channel)
        return channel

    def add_forum(self, name: str) -> Channel:
        forum = Channel(self.state.snowflake(), name, ChannelKind.FORUM)
        self.state.add_channel(forum)
        return forum

    def allow(self, channel: Channel, target: Role | User, permissions: Permission) -> None:
        rule = channel.overwrites.get(target.id, Overwrite())
        self.state.overwrite(channel, target, Overwrite(rule.allow | permissions, rule.deny & ~permissions))

    def deny(self, channel: Channel, target: Role | User, permissions: Permission) -> None:
        rule = channel.overwrites.get(target.id, Overwrite())
        self.state.overwrite(channel, target, Overwrite(rule.allow & ~permissions, rule.deny | permissions))

    # What people do. Each returns when it is written to the connected clients, which may not have read it yet.

    async def say(
        self,
        place: Place,
        author: User,
        text: str = "",
        *,
        reply_to: Message | None = None,
        ping: bool = True,
        attachments: Sequence[tuple[str, bytes, str | None]] = (),
        ago: float = 0.0,
        kind: int | None = None,
        deliver: bool = True,
    ) -> Message:
        """A message by anybody but the bot's program.

        Args:
            ping: whether a reply mentions the one replied to, as Discord's clients do unless told otherwise.
            attachments: (name, content, media type) of each.
            ago: how many seconds ago it was written; its id says so, too.
            kind: a `MessageKind`; None: a plain message or reply.
            deliver: False loses the event; the message is in the history all the same.
        """
        files = [File(self.state.snowflake(), name, content, media) for name, content, media in attachments]
        replied = reply_to.author.id if reply_to is not None and ping else None
        link = None if reply_to is None else Link(reply_to.id, reply_to.place.id)
        plain = MessageKind.DEFAULT if reply_to is None else MessageKind.REPLY
        message = self.state.write(
            place,
            author,
            text,
            at=self.clock() - ago,
            kind=plain if kind is None else kind,
            link=link,
            files=files,
            pings=pings(text, replied, None),
            deliver=deliver,
        )
        await self.gateway.flush()
        return message

    async def edit(self, message: Message, text: str) -> None:
        self.state.edit(message, text)
        await self.gateway.flush()

    async def delete(self, *messages: Message) -> None:
        """Several, of one place, are deleted in bulk."""
        if len(messages) == 1:
            self.state.delete(messages[0])
        else:
            self.state.delete_many(messages[0].place, messages)
        await self.gateway.flush()

    async def react(self, message: Message, user: User, emoji: str) -> None:
        self.state.react(message, user, emoji)
        await self.gateway.flush()

    async def unreact(self, message: Message, user: User, emoji: str) -> None:
        self.state.unreact(message, user, emoji)
        await self.gateway.flush()

    async def call(self, place: Place, user: User, command: str, **options: str | float | Upload) -> Interaction:
        """A slash command, such as `kb add`, with its options by name; a file as (name, content, media type).

        Raises:
            LookupError: the bot has registered no such command, or another form of it: Discord would not offer it.
        """
        state = self.state
        registered = state.commands.get(f"/applications/{self.bot.id}/guilds/{self.guild.id}/commands", [])
        path = find(registered, command)
        uploads = {name: value for name, value in options.items() if isinstance(value, tuple)}
        files = {
            name: File(state.snowflake(), filename, content, media)
            for name, (filename, content, media) in uploads.items()
        }
        state.files |= {file.id: file for file in files.values()}
        one = self._interaction(place, user)
        sent = data(path, options, files, lambda file: state.attachment(file, place))
        self.gateway.emit("INTERACTION_CREATE", payload(one, sent, self.guild, self.bot))
        await self.gateway.flush()
        return one

    async def press(self, message: Message, user: User, label: str) -> Interaction:
        """A button of a message.

        Raises:
            LookupError: the message has no such button.
        """
        button = button_of(message, label)
        return await self.press_id(message, user, button["custom_id"])

    async def press_id(self, message: Message, user: User, custom_id: str) -> Interaction:
        """A button that was there when somebody saw the message."""
        one = self._interaction(message.place, user)
        sent = {"component_type": BUTTON, "custom_id": custom_id, "id": 9}
        shown = self.state.payload(message)
        self.gateway.emit("INTERACTION_CREATE", payload(one, sent, self.guild, self.bot, MESSAGE_COMPONENT, shown))
        await self.gateway.flush()
        return one

    async def submit(self, shown: Interaction, *texts: str) -> Interaction:
        """A form, filled in by the person whom it was shown to.

        Raises:
            LookupError: the form does not take the texts.
        """
        assert shown.form is not None, "no form was shown"
        one = self._interaction(shown.place, shown.user)
        sent = filled_in(shown.form, *texts)
        self.gateway.emit("INTERACTION_CREATE", payload(one, sent, self.guild, self.bot, MODAL_SUBMIT))
        await self.gateway.flush()
        return one

    def _interaction(self, place: Place, user: User) -> Interaction:
        number = self.state.snowflake()
        one = Interaction(number, f"token-of-{number}", user, place, self.clock())
        self.state.interactions[one.token] = one
        return one

    async def answer_to(self, place: Place, user: User, command: str, **options: str | float | Upload) -> Said:
        """As `call`; gives the first message of the answer.

        Raises:
            LookupError: as `call`.
            TimeoutError: there was no answer.
        """
        one = await self.call(place, user, command, **options)
        await self.until(lambda: one.answered)
        return one.said[0]

    async def until_told(self, one: Interaction) -> None:
        """Wait until a command has its whole answer, from clients of this process: no piece of it is still to come.

        Raises:
            TimeoutError: there was none.
        """
        await self.until(lambda: one.answered and not any(task.get_name() == INVOKER for task in asyncio.all_tasks()))

    async def type_in(self, place: Place, user: User) -> None:
        self.state.type_in(place, user)
        await self.gateway.flush()

    async def open_thread(self, message: Message, owner: User, name: str = "a thread", *, ago: float = 0.0) -> Thread:
        """A thread on a message, with the message's id."""
        thread = self.state.open_thread(message, owner, name, at=self.clock() - ago)
        await self.gateway.flush()
        return thread

    async def start_thread(self, channel: Channel, owner: User, name: str, *, private: bool = False) -> Thread:
        """A thread without a message."""
        kind = ChannelKind.PRIVATE_THREAD if private else ChannelKind.PUBLIC_THREAD
        thread = self.state.start_thread(channel, owner, name, kind)
        await self.gateway.flush()
        return thread

    async def forum_post(self, forum: Channel, author: User, title: str, text: str, *, ago: float = 0.0) -> Thread:
        """A post; its first message has the post's id."""
        at = self.clock() - ago
        thread = self.state.forum_post(forum, author, title, at)
        self.state.write(thread, author, text, at=at, pings=pings(text, None, None), message_id=thread.id)
        await self.gateway.flush()
        return thread

    async def change_thread(
        self, thread: Thread, *, name: str | None = None, archived: bool | None = None, locked: bool | None = None
    ) -> None:
        """None leaves a value as it is."""
        self.state.change_thread(thread, name=name, archived=archived, locked=locked)
        await self.gateway.flush()

    async def delete_place(self, place: Place) -> None:
        self.state.delete_place(place)
        await self.gateway.flush()

    def history(self, place: Place) -> list[Message]:
        """What is there now, oldest first."""
        return self.state.history(place)

    # What the program did

    @property
    def posts(self) -> list[Post]:
        """What the bot posted, in order, deleted or not."""
        return self.state.posts

    @property
    def requests(self) -> list[Request]:
        """Every REST request, failed ones too; downloads are apart."""
        return self._listener.requests

    @property
    def downloads(self) -> list[Request]:
        return self._listener.downloads

    @property
    def unknown(self) -> list[Request]:
        """Requests for routes that this server does not have: assert that there are none."""
        return self._listener.unknown

    def count(self, method: str, path: str) -> int:
        """How many REST requests had this method and a path in which the pattern `path` is found."""
        return sum(request.method == method and bool(re.search(path, request.path)) for request in self.requests)

    async def until(self, condition: Callable[[], object], timeout: float = 5.0) -> None:  # noqa: ASYNC109 (a test reads better so)
        """Wait until `condition()` holds.

        Raises:
            TimeoutError: it never did.
        """
        await wait_until(condition, timeout)

    # What goes wrong

    def fail_next(
        self,
        method: str,
        path: str,
        *,
        status: int | None = None,
        times: int = 1,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        after_effect: bool = False,
        delay: float = 0.0,
        drop: bool = False,
    ) -> None:
        """Let the next `times` requests that match go wrong.

        Args:
            method: or `*`.
            path: a pattern, searched for in the path below `/api/v10`; the gateway's is `^/$`.
            status: what to answer. None without `drop`: only the delay, then all is well.
            body: the JSON of the answer.
            after_effect: do it first. The caller cannot know.
            delay: seconds before anything happens, or `after_effect` before the answer; `math.inf` never answers.
            drop: cut the connection instead of answering. aiohttp repeats a GET once by itself after that.
        """
        pattern = re.compile(path)
        failure = Failure(method, pattern, status, times, body, dict(headers or {}), after_effect, delay, drop)
        self._listener.script.add(failure)

    def rate_limit_next(
        self,
        method: str,
        path: str,
        *,
        retry_after: float = 0.01,
        times: int = 1,
        via: bool = True,
        everywhere: bool = False,
    ) -> None:
        """429 from Discord; without `via` one from its shield, which discord.py takes for a ban.

        `everywhere`: the limit is the bot's as a whole, not the route's.
        """
        body = {"message": "You are being rate limited.", "retry_after": retry_after, "global": everywhere}
        headers = {"Retry-After": str(retry_after), **({"Via": "1.1 loopback"} if via else {})}
        self.fail_next(method, path, status=429, times=times, body=body, headers=headers)

    def forget_failures(self) -> None:
        self._listener.script.clear()

    @property
    def failures_to_come(self) -> int:
        return self._listener.script.pending

    def expire_attachments(self) -> None:
        """The addresses given out so far end in 404; a message fetched again has new ones."""
        self.state.file_key += 1

    async def duplicate(self, message: Message) -> None:
        """Tell about a message once more."""
        self.state.tell("MESSAGE_CREATE", self.state.event(message), message.place)
        await self.gateway.flush()

    async def send_raw(self, event: str, payload: Payload) -> None:
        """Dispatch anything, to every session whose intents cover it."""
        self.gateway.emit(event, payload)
        await self.gateway.flush()

    async def disconnect(self, code: int | None = CloseCode.UNKNOWN_ERROR) -> None:
        """Close the websockets; None cuts the lines. What happens meanwhile is replayed to a RESUME."""
        await self.gateway.disconnect(code)

    async def request_reconnect(self) -> None:
        """Op 7."""
        await self.gateway.request_reconnect()

    async def invalidate_session(self) -> None:
        """Op 9, false: whoever is or was connected has to log in anew, and is told nothing of what was missed."""
        await self.gateway.invalidate()
