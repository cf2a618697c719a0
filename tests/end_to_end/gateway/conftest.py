"""The live stream against a loopback Discord, through an unmodified discord.py."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Protocol

import pytest
from tenacity import wait_none

from services.discord.dispatches import Dispatch
from services.discord.live.rest import DiscordPoster, RestFetcher
from services.discord.live.session import Client
from streams.gateway import Gateway, GatewayHooks, GatewayRules, observable
from tests.loopback.discord_server import DiscordServer
from tests.loopback.fixtures import discord_server, hurried_discord

__all__ = ["discord_server", "hurried_discord"]


class Live:
    """A running stream, and what has come out of it."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.seen: list[Dispatch] = []
        self.error: Exception | None = None
        self.ended = asyncio.Event()
        self.subscription = observable(gateway).subscribe(self.seen.append, self._failed, self.ended.set)

    def _failed(self, error: Exception) -> None:
        self.error = error
        self.ended.set()

    def of(self, type_: str) -> list[Dispatch]:
        return [dispatch for dispatch in self.seen if dispatch.t == type_]

    @property
    def texts(self) -> list[Any]:
        return [dispatch.d["content"] for dispatch in self.of("MESSAGE_CREATE")]

    async def stop(self) -> None:
        self.gateway.stop()
        async with asyncio.timeout(5):
            await self.ended.wait()


def no_pause(failures: int) -> float:
    return 0.0


class Connect(Protocol):
    def __call__(
        self,
        marks: Callable[[], Mapping[int, int]] = ...,
        *,
        ready: bool = ...,
        token: str = ...,
        rules: GatewayRules = ...,
        hooks: GatewayHooks = ...,
    ) -> Awaitable[Live]: ...


RULES, HOOKS = GatewayRules(catch_up_minutes=60), GatewayHooks()


@pytest.fixture
async def client(discord_server: DiscordServer, hurried_discord: None) -> AsyncIterator[Client]:
    client = Client(feedback=True)
    yield client
    await client.close()


@pytest.fixture
async def logged_in(client: Client, discord_server: DiscordServer) -> Client:
    await client.log_in(discord_server.token)
    return client


@pytest.fixture
def fetcher(logged_in: Client) -> RestFetcher:
    return RestFetcher(logged_in.http, wait=wait_none())


@pytest.fixture
def poster(logged_in: Client) -> DiscordPoster:
    return DiscordPoster(logged_in.http, wait=wait_none())


@pytest.fixture
async def connect(client: Client, discord_server: DiscordServer) -> AsyncIterator[Connect]:
    """Starts the stream and waits until the guild has arrived."""
    started: list[Live] = []

    async def start(
        marks: Callable[[], Mapping[int, int]] = dict[int, int],
        *,
        ready: bool = True,
        token: str = "",
        rules: GatewayRules = RULES,
        hooks: GatewayHooks = HOOKS,
    ) -> Live:
        gateway = Gateway(
            client,
            token or discord_server.token,
            fetcher=RestFetcher(client.http, wait=wait_none()),
            watermarks=marks,
            rules=rules,
            hooks=hooks,
            pause=no_pause,
        )
        live = Live(gateway)
        started.append(live)
        if ready:
            await discord_server.until(lambda: live.of("GUILD_CREATE"))
        return live

    yield start
    for live in started:
        await live.stop()
