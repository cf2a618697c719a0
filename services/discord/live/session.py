"""The discord.py client, and the loop that keeps its gateway session: retries, pauses, and the failures that end it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, NoReturn

import aiohttp
import discord
from discord.gateway import DiscordWebSocket, ReconnectWebSocket

from clock import DAY, now
from services.discord.dispatches import read_frame
from services.discord.live.calls import UNAUTHORIZED, reason, refusal
from services.discord.protocols import GatewayHealth, GatewayRefused

log = logging.getLogger(__name__)

CONNECT_SECONDS = 60.0
CLOSE_SECONDS = 5.0
LONGEST_RATE_LIMIT_SECONDS = 60.0  # a longer wait raises `discord.RateLimited` instead of delaying an answer

CONNECTION_ENDED = (ReconnectWebSocket, discord.ConnectionClosed, aiohttp.ClientError, ConnectionError)
"""Raised by discord.py when a connection ends, and not by its parsers."""
NOT_CACHED = ("MESSAGE_", "TYPING_")
"""The beginnings of events of which discord.py, as it is configured here, keeps nothing."""


def intents(*, feedback: bool) -> discord.Intents:
    """Return the gateway intents that the bot needs, and no others; reactions only with `feedback`."""
    wanted = discord.Intents(guilds=True, guild_messages=True, message_content=True, guild_typing=True)
    wanted.guild_reactions = feedback
    return wanted


class Client(discord.Client):
    """A client with the smallest caches, that cannot mention anybody, and whose REST side outlives its gateway.

    `shard_id` of `shard_count`: it receives the events of this share of the servers only; None: of all.
    """

    def __init__(self, *, feedback: bool = False, shard_id: int | None = None, shard_count: int | None = None) -> None:
        # Voice is not used: no warnings that its libraries are missing.
        discord.VoiceClient.warn_nacl = discord.VoiceClient.warn_dave = False
        answers = aiohttp.TraceConfig()
        answers.on_request_end.append(self._note_time)
        super().__init__(
            intents=intents(feedback=feedback),
            max_messages=None,
            member_cache_flags=discord.MemberCacheFlags.none(),
            chunk_guilds_at_startup=False,
            allowed_mentions=discord.AllowedMentions.none(),
            max_ratelimit_timeout=LONGEST_RATE_LIMIT_SECONDS,
            # discord.py's own `ready` is not used; without the delay no task of it is left at the end.
            guild_ready_timeout=0,
            enable_debug_events=True,
            shard_id=shard_id,
            shard_count=shard_count,
            http_trace=answers,
        )
        self._seconds_ahead = 0.0
        self._on_frame: Callable[[str], None] | None = None
        self._logged_in = False
        self._frame, self._frames = "", 0  # the last one received, and how many there were

    def dispatch(self, event: str, /, *args: Any, **kwargs: Any) -> None:
        # The documented hook, `on_socket_raw_receive`, runs in a task of its own per frame: later than the frame, and
        # with two frames in one turn of the loop, after the second was parsed. discord.py calls this method directly
        # from DiscordWebSocket.received_message, before it reads the frame.
        if event == "socket_raw_receive":
            self._frame, self._frames = args[0], self._frames + 1
            if self._on_frame is not None:
                self._on_frame(args[0])
        # What is sent holds the token (IDENTIFY).
        elif event != "socket_raw_send":
            super().dispatch(event, *args, **kwargs)

    async def _note_time(self, _session: object, _context: object, ended: aiohttp.TraceRequestEndParams) -> None:
        with contextlib.suppress(KeyError, ValueError):  # a proxy may have answered
            self._seconds_ahead = now() - parsedate_to_datetime(ended.response.headers["Date"]).timestamp()

    def discord_time(self) -> float:
        """Return Discord's time by its last answer, in seconds since 1970: ids go by it, and our clock may be wrong."""
        return now() - self._seconds_ahead

    async def log_in(self, token: str) -> None:
        """Make the REST side usable, once. May be called again when it failed. Raises discord.LoginFailure: the token
        is wrong; other errors of discord.py and aiohttp, and OSError: Discord could not be asked.
        """
        if self._logged_in:
            return
        try:
            await self.login(token)
        except BaseException:
            # login() opens a new session each time and would leave the last one open, its connector closed.
            await self.http.close()
            self.http.connector = discord.utils.MISSING
            raise
        self._logged_in = True

    def read(self, type_: str, payload: Mapping[str, Any]) -> None:
        """Let discord.py parse a dispatch of another process, so that cache and commands work without a connection."""
        read_it = self._connection.parsers.get(type_)
        if read_it is None:
            return
        try:
            read_it(payload)
        except Exception as error:  # noqa: BLE001 (an odd payload can make a parser raise anything)
            log.warning("discord.py cannot read one %s (%s); it is dropped", type_, type(error).__name__)

    def own_payload(self) -> Mapping[str, Any]:
        """Return the bot itself in the form of READY, once it is logged in."""
        assert self.user is not None, "it is not logged in"  # noqa: S101 (for the type checker)
        return {"id": str(self.user.id), "username": self.user.name, "bot": True}

    async def concurrent_identifies(self) -> int:
        """Return the number of shards that may begin a session at a time: of those whose numbers are equal modulo this
        number, only one. Call it after `log_in`. Raises as that.
        """
        _, _, limits = await self.http.get_bot_gateway()
        return max(1, int(limits["max_concurrency"]))

    @property
    def is_resumable(self) -> bool:
        """Return True if there is a session that Discord may resume."""
        return self.ws is not None and self.ws.session_id is not None  # pyright: ignore[reportUnnecessaryComparison] (None before the first)

    @property
    def has_connected(self) -> bool:
        """Return True if the gateway has ever taken a connection of this client."""
        return self.ws is not None  # pyright: ignore[reportUnnecessaryComparison] (None before the first)

    async def hold_session(
        self,
        on_frame: Callable[[str], None] | None = None,
        *,
        resume: bool,
        is_paced: bool = False,
        wait_for_room: Callable[[], Awaitable[None]] | None = None,
    ) -> NoReturn:
        """Connect, and deliver frames until the connection ends.

        `is_paced`: the caller has made sure that Discord takes an IDENTIFY now. `wait_for_room` is awaited before each
        frame is read from the connection. Meanwhile no answer to a heartbeat is read either: after a minute discord.py
        ends the connection, and it is resumed.

        `on_frame` gets the text of every gateway frame, decompressed, in order of arrival, before discord.py parses
        it. That is the one source of dispatches: it includes types that the parser does not know, and payloads that
        make it raise.

        This replaces `Client.connect()`, which ends for good when one odd payload makes a parser raise, forgets the
        session then, and pauses up to 17 minutes when the network is away. Here an odd payload is logged and dropped,
        and every other failure is raised for the caller to decide.

        Raises:
            discord.gateway.ReconnectWebSocket: Discord asks to connect again, or the connection broke.
            discord.ConnectionClosed: closed for a reason that connecting again does not cure.
            Exception: what a parser or the network raised.
        """
        self._on_frame = on_frame
        last = self.ws if self.is_resumable and resume else None
        if last is None:
            # Not `initial`: discord.py then waits five seconds before it identifies, as Discord asks after an
            # invalid session.
            opening = DiscordWebSocket.from_client(
                self, initial=is_paced or not self.is_ready(), shard_id=self.shard_id
            )
        else:
            opening = DiscordWebSocket.from_client(
                self,
                gateway=last.gateway,
                session=last.session_id,
                sequence=last.sequence,
                resume=True,
                shard_id=self.shard_id,
            )
        # Not `wait_for`: before 3.12 it forgets that it was cancelled while a connection came about.
        async with asyncio.timeout(CONNECT_SECONDS):
            self.ws = await opening
        try:
            while True:
                if wait_for_room is not None:
                    await wait_for_room()
                await self._next_frame(self.ws)
        except Exception:
            # A code other than 1000 keeps the session, so that it can be resumed; this also ends the heartbeat.
            await self._close_socket(code=4000)
            raise

    async def _next_frame(self, socket: DiscordWebSocket) -> None:
        """Receive one frame. Raises the failures that end the connection; an unreadable payload is only logged."""
        before = self._frames
        try:
            await socket.poll_event()
        except CONNECTION_ENDED:
            raise
        except Exception as error:
            if self._frames == before and not isinstance(error, UnicodeDecodeError):
                raise  # no frame came: the next call would fail in the same way
            dispatch = None if self._frames == before else read_frame(self._frame, 0.0)
            name = "frame" if dispatch is None else dispatch.t
            if name == "READY":
                raise  # without it there is no session
            # discord.py keeps nothing of messages; of these, the decoder reports what is odd.
            level = logging.DEBUG if name.startswith(NOT_CACHED) else logging.WARNING
            log.log(level, "gateway: discord.py cannot read one %s (%s); it is dropped", name, type(error).__name__)
            log.debug("how discord.py failed at it", exc_info=error)

    async def hang_up(self) -> None:
        """Leave the gateway for good. REST still works until `close`, for answers in progress."""
        await self._close_socket(code=1000)

    async def _close_socket(self, *, code: int) -> None:
        if self.ws is None or not self.ws.open:  # pyright: ignore[reportUnnecessaryComparison] (None before the first)
            return
        # A dead line never answers the close frame, for which aiohttp would wait half a minute.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self.ws.close(code=code)


STABLE_SECONDS = 300.0  # after a connection that lasted so long, the back-off starts anew
LONGEST_PAUSE_SECONDS = 60.0
NEW_SESSION_EVERY = 5
"""After so many failures a new session is tried once: the address to resume at may be down. While the network is away
this costs nothing; the old session can still be resumed then."""
FREE_IDENTIFIES = 500
"""Discord resets the token of a bot that identifies more than 1,000 times a day. Half of that goes at the speed of
the back-off, the other half is spread over a day."""


def pause(failures: int, jitter: Callable[[], float] = random.random) -> float:
    """Return the seconds before the next try: 1, 2, 4 … 60, less up to half by `jitter` (0 to 1), lest bots
    return together.
    """
    return min(LONGEST_PAUSE_SECONDS, 2.0 ** (failures - 1)) * (1 - jitter() / 2)


class IdentifyLimiter:
    """Keeps within the 1,000 identifies of a day."""

    def __init__(self) -> None:
        self._at: deque[float] = deque(maxlen=FREE_IDENTIFIES)

    def wait(self, at: float) -> float:
        """Return the seconds until the next may be sent."""
        if len(self._at) < FREE_IDENTIFIES or at - self._at[0] >= DAY:
            return 0.0
        return max(0.0, self._at[-1] + DAY / FREE_IDENTIFIES - at)

    def note_sent(self, at: float) -> None:
        self._at.append(at)


async def keep_session(
    client: Client,
    token: str,
    health: GatewayHealth,
    on_frame: Callable[[str], None] | None = None,
    *,
    pause: Callable[[int], float] = pause,
    before_identify: Callable[[int], Awaitable[None]] | None = None,
    wait_for_room: Callable[[], Awaitable[None]] | None = None,
) -> NoReturn:
    """Log in and hold a gateway session, again and again, until cancelled. `on_frame`: see `Client.hold_session`.

    A lost connection is resumed, so that Discord replays the missed events; if that fails, a new session begins.
    `pause` gives the seconds before each new try. `before_identify` is awaited with the number of the shard before each
    new session: other processes may be about to begin theirs. `wait_for_room`: see `Client.hold_session`.

    Raises:
        GatewayRefused: a retry cannot help, as Discord refuses the token or an intent, for example. Once a connection
            has come about, a handshake is refused for good by 401 only.
    """
    failures = 0
    identifies = IdentifyLimiter()
    while True:
        began, resume = now(), False
        try:
            await client.log_in(token)
            resume = client.is_resumable and (failures == 0 or failures % NEW_SESSION_EVERY != 0)
            if not resume:
                await asyncio.sleep(identifies.wait(now()))
                if before_identify is not None:
                    await before_identify(client.shard_id or 0)
                identifies.note_sent(now())
            await client.hold_session(
                on_frame, resume=resume, is_paced=before_identify is not None, wait_for_room=wait_for_room
            )
        except Exception as error:  # an odd payload can make a parser raise anything
            if not _is_passing_refusal(error, client, resume=resume) and (remedy := refusal(error)):
                raise GatewayRefused(remedy) from error
            _report(error)
        health.note_disconnected(now())
        failures = 1 if now() - began >= STABLE_SECONDS else failures + 1
        await asyncio.sleep(pause(failures))


def _is_passing_refusal(error: Exception, client: Client, *, resume: bool) -> bool:
    """Return True if a handshake was refused that may succeed later."""
    if not isinstance(error, aiohttp.WSServerHandshakeError):
        return False
    # The address at which to resume may be outdated; a new session has another. And where the gateway has taken a
    # connection before, a proxy before it answers so during an outage, or blocks this machine for a while.
    return resume or (client.has_connected and error.status != UNAUTHORIZED)


def _report(error: Exception) -> None:
    if isinstance(error, (ReconnectWebSocket, discord.ConnectionClosed)):
        log.info("gateway: the connection ended; connecting again")
    elif isinstance(error, (discord.HTTPException, aiohttp.ClientError, OSError)):
        log.warning("gateway: no connection: %s; trying again", reason(error))
    else:
        log.error("gateway: discord.py could not read what Discord said; connecting again", exc_info=error)
