"""Ask Discord over REST who the bot is and in which servers, without connecting: for `--check` and `--init`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import aiohttp
import discord
from discord.http import Route

import clock
from services.discord.live.calls import CLOSE_REMEDIES
from services.discord.wire import PRIVATE_THREAD, THREAD_TYPES
from services.telemetry import connection_problem

PROBE_SECONDS = 10.0
MESSAGE_CONTENT_FLAGS = 1 << 18 | 1 << 19
"""Flags of an application that have the intent, in servers of any number or in few (API reference, "Application")."""

MAX_SERVERS = 20
"""The most servers that are listed: the roles of each cost a request."""

_BAD_TOKEN, _NO_INTENT = 4004, 4014

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Identity:
    """The bot and its application as Discord reports them, or why they are unknown.

    Attributes:
        name, user_id: of the bot; empty and 0 if unknown.
        application_id: of the bot's application; 0 if unknown.
        refused: why Discord would refuse a start, and what to do.
        unknown: why Discord could not be asked; a start tries again until it can.
    """

    name: str = ""
    user_id: int = 0
    application_id: int = 0
    refused: str | None = None
    unknown: str | None = None


@dataclass(frozen=True, slots=True)
class ServerRole:
    """A role that can be given to people."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class Server:
    """A server that the bot is in; `roles`: the highest first."""

    id: int
    name: str
    roles: tuple[ServerRole, ...]


async def identity(token: str) -> Identity:
    """Ask Discord who the bot with this token is. Never raises: the result says what is wrong."""
    return await _ask(token, _read_identity)


async def servers_of(token: str) -> tuple[Server, ...] | Identity:
    """Return the servers that the bot is in, with their roles; or an `Identity` that says why they are unknown."""
    return await _ask(token, _read_servers)


async def name_of(token: str, user_id: int) -> str | Identity | None:
    """Return the name of a user; None: there is no such user; an `Identity` says why Discord was not reached."""

    async def read_name(session: aiohttp.ClientSession) -> str | None:
        user = await _get(session, f"/users/{user_id}")
        return None if user is None else str(user["username"])

    return await _ask(token, read_name)


class ChannelAccess(NamedTuple):
    """`trouble`: what keeps the bot from posting there; None: nothing does. `is_viewable`: everybody can view it."""

    trouble: str | None
    is_viewable: bool = False


async def access_to(token: str, channel_id: int, bot_id: int) -> ChannelAccess | Identity:
    """Say who may do what in a channel or thread. An `Identity` says why that is unknown. Posts nothing."""

    async def read_permissions(session: aiohttp.ClientSession) -> ChannelAccess:
        place = channel = await _get(session, f"/channels/{channel_id}", missing_ok=True)
        if place is not None and place["type"] in THREAD_TYPES:
            channel = await _get(session, f"/channels/{place['parent_id']}", missing_ok=True)
        if place is None or channel is None:
            return ChannelAccess("there is no such channel, or the bot cannot view it (View Channel)")
        guild_id = channel.get("guild_id")
        if guild_id is None:
            return ChannelAccess("it is not in a server")
        roles = await _get(session, f"/guilds/{guild_id}/roles")
        member = await _get(session, f"/guilds/{guild_id}/members/{bot_id}")
        own = [{guild_id}, set(member["roles"]), {str(bot_id)}]  # @everyone has the id of its server
        overwrites = channel.get("permission_overwrites", ())
        granted, everybody = _permissions(roles, own, overwrites), _permissions(roles, own[:1], overwrites)
        sending = "send_messages" if place is channel else "send_messages_in_threads"
        lacking = [name.replace("_", " ").title() for name in ("view_channel", sending) if not getattr(granted, name)]
        trouble = f"the bot lacks {', '.join(lacking)} there" if lacking else None
        return ChannelAccess(trouble, everybody.view_channel and place["type"] != PRIVATE_THREAD)

    return await _ask(token, read_permissions)


def _permissions(
    roles: Sequence[Mapping[str, Any]], own: Sequence[Collection[str]], overwrites: Sequence[Mapping[str, Any]]
) -> discord.Permissions:
    """Compute what a member may do in a channel, as the API reference says ("Permissions"). `own`: the ids of
    @everyone, of the member's roles, and of the member, in the order in which the channel's rules for them apply.
    """
    granted = 0
    for role in roles:
        if any(role["id"] in ids for ids in own):
            granted |= int(role["permissions"])
    if discord.Permissions(granted).administrator:
        return discord.Permissions.all()
    for ids in own:
        chosen = [each for each in overwrites if each["id"] in ids]
        for each in chosen:
            granted &= ~int(each["deny"])
        for each in chosen:
            granted |= int(each["allow"])
    return discord.Permissions(granted)


class _NoAnswer(Exception):
    """Discord gave no answer to a request; `identity` says why."""

    def __init__(self, identity: Identity) -> None:
        super().__init__()
        self.identity = identity


async def _ask(token: str, request: Callable[[aiohttp.ClientSession], Awaitable[T]]) -> T | Identity:
    headers = {"Authorization": f"Bot {token}"}

    async def in_time() -> T:
        async with asyncio.timeout(PROBE_SECONDS), aiohttp.ClientSession(headers=headers, trust_env=True) as session:
            return await request(session)

    try:
        return await clock.run_in_real_time(in_time)
    except _NoAnswer as failure:
        return failure.identity
    except TimeoutError:
        return Identity(unknown=f"Discord did not answer within {PROBE_SECONDS:g} s: check this machine's network")
    except (aiohttp.ClientError, OSError) as error:
        return Identity(unknown=f"Discord cannot be reached: {connection_problem(error)}")
    except (ValueError, TypeError, LookupError):
        return Identity(unknown="what answers is not Discord: check for a proxy in between")


async def _read_identity(session: aiohttp.ClientSession) -> Identity:
    me = await _get(session, "/users/@me")
    name, user_id = str(me["username"]), int(me["id"])
    try:
        application = await _get(session, "/applications/@me")
    except _NoAnswer as failure:
        return replace(failure.identity, name=name, user_id=user_id)
    missing = not int(application["flags"]) & MESSAGE_CONTENT_FLAGS
    return Identity(name, user_id, int(application["id"]), refused=CLOSE_REMEDIES[_NO_INTENT] if missing else None)


async def _read_servers(session: aiohttp.ClientSession) -> tuple[Server, ...]:
    guilds = await _get(session, "/users/@me/guilds")
    servers: list[Server] = []
    for guild in list(guilds)[:MAX_SERVERS]:
        roles = await _get(session, f"/guilds/{guild['id']}/roles")
        # Without @everyone, which has the id of its server, and without the roles of bots.
        of_people = [role for role in roles or () if role["id"] != guild["id"] and not role.get("managed")]
        of_people.sort(key=lambda role: -int(role["position"]))
        kept = tuple(ServerRole(int(role["id"]), str(role["name"])) for role in of_people)
        servers.append(Server(int(guild["id"]), str(guild["name"]), kept))
    return tuple(servers)


async def _get(session: aiohttp.ClientSession, path: str, *, missing_ok: bool = False) -> Any:
    """Return the JSON of the answer; None: no such user, or with `missing_ok` nothing of the kind. Raises _NoAnswer."""
    async with session.get(f"{Route.BASE}{path}", allow_redirects=False) as response:
        if response.status == 401:  # noqa: PLR2004 (Unauthorized)
            raise _NoAnswer(Identity(refused=CLOSE_REMEDIES[_BAD_TOKEN]))
        if missing_ok and response.status in {403, 404}:
            return None
        if response.status == 404 and path.startswith("/users/") and "@" not in path:  # noqa: PLR2004 (Not Found)
            return None
        if response.status != 200:  # noqa: PLR2004 (OK)
            raise _NoAnswer(Identity(unknown=f"Discord answers with HTTP {response.status}: try again later"))
        return await response.json(content_type=None)
