"""Gateway sessions: what each is told, and how a websocket follows one, from the start or after a resume."""

from __future__ import annotations

import asyncio
import contextlib
import json
from enum import IntEnum, IntFlag

from aiohttp import web

from tests.loopback.model import User
from tests.loopback.payloads import Payload, without_content


class Op(IntEnum):
    DISPATCH = 0
    HEARTBEAT = 1
    IDENTIFY = 2
    RESUME = 6
    RECONNECT = 7
    REQUEST_GUILD_MEMBERS = 8
    INVALID_SESSION = 9
    HELLO = 10
    HEARTBEAT_ACK = 11


class CloseCode(IntEnum):
    """Discord's "Gateway Close Event Codes"."""

    UNKNOWN_ERROR = 4000
    DECODE_ERROR = 4002
    NOT_AUTHENTICATED = 4003
    AUTHENTICATION_FAILED = 4004
    INVALID_SEQUENCE = 4007
    SESSION_TIMED_OUT = 4009
    DISALLOWED_INTENTS = 4014


class Intent(IntFlag):
    GUILDS = 1 << 0
    GUILD_MEMBERS = 1 << 1
    GUILD_PRESENCES = 1 << 8
    GUILD_MESSAGES = 1 << 9
    GUILD_MESSAGE_REACTIONS = 1 << 10
    GUILD_MESSAGE_TYPING = 1 << 11
    MESSAGE_CONTENT = 1 << 15


PRIVILEGED = Intent.GUILD_MEMBERS | Intent.GUILD_PRESENCES | Intent.MESSAGE_CONTENT

_NEEDED = {
    "GUILD_MEMBER_": Intent.GUILD_MEMBERS,
    "GUILD_": Intent.GUILDS,
    "CHANNEL_": Intent.GUILDS,
    "THREAD_": Intent.GUILDS,
    "MESSAGE_REACTION_": Intent.GUILD_MESSAGE_REACTIONS,
    "MESSAGE_": Intent.GUILD_MESSAGES,
    "TYPING_": Intent.GUILD_MESSAGE_TYPING,
}
"""Which events need which intent, by the start of their names; the first that fits counts. Others need none."""


def needed(event: str) -> Intent:
    return next((intent for start, intent in _NEEDED.items() if event.startswith(start)), Intent(0))


class Session:
    """What one login is told: a log, of which a resume gets the part it missed."""

    def __init__(self, session_id: str, intents: Intent, bot: User) -> None:
        self.id = session_id
        self.intents = intents
        self.log: list[tuple[str, Payload]] = []
        """The event with sequence number n is at n - 1."""
        self.grown = asyncio.Event()
        self._bot = bot

    def tell(self, name: str, payload: Payload, *, always: bool = False) -> None:
        """Log an event if the session's intents cover it. `always`: it is addressed to this session."""
        wanted = needed(name)
        if not always and wanted & self.intents != wanted:
            return
        if name.startswith("MESSAGE_") and not self.intents & Intent.MESSAGE_CONTENT:
            payload = without_content(payload, self._bot)
        self.log.append((name, payload))
        self.grown.set()


class Connection:
    """One websocket. Events are written by one task, so that they keep the order of the log."""

    def __init__(self, socket: web.WebSocketResponse, transport: asyncio.Transport | None) -> None:
        self.socket = socket
        self.session: Session | None = None
        self._transport = transport
        self._written = 0
        self.ended = asyncio.Event()
        self._caught_up = asyncio.Event()
        self._writer: asyncio.Task[None] | None = None

    async def send(self, op: Op, data: object = None) -> None:
        """A frame outside the session's log."""
        await self._frame({"op": op, "d": data, "s": None, "t": None})

    async def _frame(self, frame: Payload) -> None:
        with contextlib.suppress(ConnectionResetError):  # the client has gone; the log keeps what it missed
            await self.socket.send_str(json.dumps(frame))

    def follow(self, session: Session, after: int) -> None:
        """Write the session's events from sequence number `after` on, those missed and those to come."""
        self.session = session
        self._written = after
        self._writer = asyncio.create_task(self._write(session, after), name=f"loopback gateway {session.id}")

    async def _write(self, session: Session, after: int) -> None:
        missed = len(session.log) - 1  # the last one so far is the RESUMED or READY of this connection
        while not self.socket.closed:
            while self._written < len(session.log):
                number, (name, payload) = self._written + 1, session.log[self._written]
                # An earlier RESUMED is no event that a client can have missed.
                if name != "RESUMED" or number > missed:
                    await self._frame({"op": Op.DISPATCH, "d": payload, "s": number, "t": name})
                self._written = number
            self._caught_up.set()
            session.grown.clear()
            await session.grown.wait()
            self._caught_up.clear()

    async def caught_up(self) -> None:
        """Wait until the log so far has been written."""
        while self.session is not None and self._written < len(self.session.log) and not self.ended.is_set():
            self._caught_up.clear()
            await self._caught_up.wait()

    def abort(self) -> None:
        """Cut the line without a close frame."""
        if self._transport is not None:
            self._transport.abort()

    async def stop(self) -> None:
        self.ended.set()
        self._caught_up.set()
        if self._writer is not None:
            self._writer.cancel()
            await asyncio.wait([self._writer])
