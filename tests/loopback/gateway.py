"""The websocket side: who may log in, who may resume, and what a session is told."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

from aiohttp import WSMsgType, web

from tests.loopback import payloads
from tests.loopback.model import Member
from tests.loopback.payloads import Payload
from tests.loopback.sessions import PRIVILEGED, CloseCode, Connection, Intent, Op, Session
from tests.loopback.state import State

CLOSING_SECONDS = 1.0
"""How long to wait for a client to answer a close frame. discord.py does so at once."""


class Gateway:
    """Discord's gateway, version 10, with JSON frames.

    `state` is asked only when a client logs in, because the state tells the gateway what happens, too.
    """

    def __init__(self, state: Callable[[], State], token: str, approved: Intent) -> None:
        self._state = state
        self.token = token
        self.approved = approved
        """The privileged intents that are switched on for the application."""
        self.url = ""
        self.heartbeat_seconds = 41.25
        self.acknowledges_heartbeats = True
        self.sessions: dict[str, Session] = {}
        self.connections: set[Connection] = set()
        self.identified = 0
        """How often a client logged in. Discord allows 1,000 a day."""
        self.resumed = 0
        self.heartbeats = 0
        self._numbers = itertools.count(1)

    def emit(self, name: str, payload: Payload) -> None:
        """Tell every session, connected or not, whose intents cover the event."""
        for session in self.sessions.values():
            session.tell(name, payload)

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        """One connection, from hello until either side closes it."""
        socket = web.WebSocketResponse(timeout=CLOSING_SECONDS, compress=False)
        await socket.prepare(request)
        connection = Connection(socket, request.transport)
        self.connections.add(connection)
        try:
            await connection.send(Op.HELLO, {"heartbeat_interval": round(self.heartbeat_seconds * 1000)})
            await self._listen(connection)
        finally:
            self.connections.discard(connection)
            await connection.stop()
        return socket

    async def _listen(self, connection: Connection) -> None:
        async for frame in connection.socket:
            if frame.type is not WSMsgType.TEXT:
                await connection.close(code=CloseCode.DECODE_ERROR)
                return
            message: Payload = json.loads(frame.data)
            await self._hear(connection, message.get("op"), message.get("d"))
        session = connection.session
        leaves = connection.socket.close_code in {1000, 1001} and not connection.closed_here
        if leaves and session is not None:
            # A client that closes this way says that it will not come back.
            self.sessions.pop(session.id, None)

    async def _hear(self, connection: Connection, op: int | None, data: Any) -> None:
        if op == Op.HEARTBEAT:
            self.heartbeats += 1
            if self.acknowledges_heartbeats:
                await connection.send(Op.HEARTBEAT_ACK)
        elif op == Op.IDENTIFY:
            await self._identify(connection, data)
        elif op == Op.RESUME:
            await self._resume(connection, data)
        elif connection.session is None:
            await connection.close(code=CloseCode.NOT_AUTHENTICATED)
        elif op == Op.REQUEST_GUILD_MEMBERS:
            self._send_members(connection.session, data)

    async def _identify(self, connection: Connection, data: Payload) -> None:
        self.identified += 1
        if data["token"] != self.token:
            await connection.close(code=CloseCode.AUTHENTICATION_FAILED)
            return
        intents = Intent(data["intents"])
        if intents & PRIVILEGED & ~self.approved:
            await connection.close(code=CloseCode.DISALLOWED_INTENTS)
            return
        state = self._state()
        session = Session(f"session{next(self._numbers)}", intents, state.bot)
        self.sessions[session.id] = session
        ready: Payload = {
            "v": 10,
            "user": payloads.user(state.bot) | {"verified": True, "mfa_enabled": False, "email": None},
            "guilds": [{"id": str(state.guild.id), "unavailable": True}],
            "session_id": session.id,
            "session_type": "normal",
            "resume_gateway_url": self.url,
            "application": {"id": str(state.bot.id), "flags": state.application_flags},
        }
        if "shard" in data:
            ready["shard"] = data["shard"]
        session.tell("READY", ready, always=True)
        threads = [thread for thread in state.threads() if not thread.archived]
        session.tell("GUILD_CREATE", payloads.guild(state.guild, state.channels(), threads, state.bot))
        connection.follow(session, after=0)

    async def _resume(self, connection: Connection, data: Payload) -> None:
        if data["token"] != self.token:
            await connection.close(code=CloseCode.AUTHENTICATION_FAILED)
            return
        session = self.sessions.get(data["session_id"] or "")
        if session is None:
            await connection.send(Op.INVALID_SESSION, data=False)
            return
        last_seen: int = data["seq"] or 0
        if last_seen > len(session.log):
            await connection.close(code=CloseCode.INVALID_SEQUENCE)
            return
        self.resumed += 1
        session.tell("RESUMED", {}, always=True)
        connection.follow(session, after=last_seen)

    def _send_members(self, session: Session, data: Payload) -> None:
        """Answer op 8: those asked for by id, or by the start of their name."""
        guild = self._state().guild
        asked = data.get("user_ids")
        ids = {int(each) for each in (asked if isinstance(asked, list) else [asked] if asked else [])}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] (JSON from outside)
        query = str(data.get("query") or "")

        def matches(member: Member) -> bool:
            return member.user.id in ids if ids else member.user.name.startswith(query)

        found = [member for member in guild.members.values() if matches(member)]
        payload: Payload = {
            "guild_id": str(guild.id),
            "members": [payloads.member(member) for member in found[: data.get("limit") or None]],
            "chunk_index": 0,
            "chunk_count": 1,
            "not_found": [str(each) for each in ids - guild.members.keys()],
        }
        if data.get("nonce"):
            payload["nonce"] = data["nonce"]
        session.tell("GUILD_MEMBERS_CHUNK", payload, always=True)

    # What a test does to it

    async def flush(self) -> None:
        """Wait until everything that happened has been written to whoever is connected."""
        for connection in list(self.connections):
            await connection.caught_up()

    async def disconnect(self, code: int | None) -> None:
        """Close every websocket with `code`; None cuts the line. Sessions can be resumed."""
        for connection in list(self.connections):
            if code is None:
                connection.abort()
            else:
                await connection.close(code=code)

    async def request_reconnect(self) -> None:
        """Op 7: clients leave, and resume."""
        for connection in list(self.connections):
            await connection.send(Op.RECONNECT)

    async def invalidate(self) -> None:
        """Op 9, false: the sessions are gone, connected or not, with all that was not delivered."""
        connections = [connection for connection in self.connections if connection.session is not None]
        self.sessions.clear()
        for connection in connections:
            await connection.send(Op.INVALID_SESSION, data=False)

    async def close(self) -> None:
        connections = list(self.connections)
        await self.disconnect(1001)
        for connection in connections:
            # Its handler ends by itself as soon as it sees the socket closed.
            await connection.ended.wait()
