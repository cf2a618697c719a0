"""What people ask of the bot where several processes are it: to be left alone, and to be forgotten."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from nats.aio.client import Client
from nats.js.errors import NotFoundError

from tests.end_to_end.bots import answers_to
from tests.end_to_end.processes import ROOT, STARTING, Process, write_config
from tests.loopback.discord_server import DiscordServer
from tests.loopback.fixtures import discord_server
from tests.loopback.interactions import Interaction
from tests.loopback.model import Channel, User
from tests.loopback.nats_server import NatsServer
from tests.transport.connected import begun_anew
from transport.budgets import read_budgets
from transport.connection import streams_of
from transport.streams import BLOBS, LOG, MESSAGES, Layout, read_stream

__all__ = ["discord_server"]

pytestmark = pytest.mark.real_time

WITHIN = 2 * STARTING
PARTITIONS = 4

log = logging.getLogger(__name__)
PAGE = "# Backups\n\nTo restore a backup, stop the program and run `millrace --restore backup.zip`.\n"
QUESTION = "how can I restore a backup?"


@pytest.fixture
async def client(nats_server: NatsServer) -> AsyncGenerator[Client]:
    async with begun_anew(nats_server, Layout(partitions=PARTITIONS)) as connected:
        yield connected


@pytest.fixture
async def ada(discord_server: DiscordServer) -> User:
    return discord_server.add_member("ada")


@pytest.fixture
async def helper(discord_server: DiscordServer) -> User:
    """Of the team."""
    return discord_server.add_member("helper")


@pytest.fixture
def config(tmp_path: Path, nats_server: NatsServer, helper: User, monkeypatch: pytest.MonkeyPatch) -> Path:
    data = tmp_path / "data"
    sources = data / "knowledge-base" / "sources"
    sources.mkdir(parents=True)
    (sources / "backups.md").write_text(PAGE)
    monkeypatch.setitem(os.environ, "APP__TRANSPORT", nats_server.url)
    return write_config(
        data,
        discord={"message_batch_wait_seconds": 0.15, "team_member_ids": [helper.id]},
        nats={"partitions": PARTITIONS},
    )


@asynccontextmanager
async def playing(server: DiscordServer, config: Path, *roles: str) -> AsyncGenerator[list[Process]]:
    """A process for each of the roles; each must end without a word of a bug."""
    async with AsyncExitStack() as stack:
        processes: list[Process] = []
        for role in roles:
            processes.append(await Process.start(server, config, "--role", role))
            stack.push_async_callback(processes[-1].kill)
        try:
            yield processes
        finally:
            for process in processes:
                process.terminate()
            ends = [await process.end(WITHIN) for process in processes]
            for role, (_, said) in zip(roles, ends, strict=True):
                log.warning("%s:\n%s", role, said)  # pytest shows it where the test fails
        for role, (code, said) in zip(roles, ends, strict=True):
            assert code == 0, f"{role}: {said}"
            assert "Traceback" not in said, f"{role}: {said}"


@asynccontextmanager
async def answering(client: Client, server: DiscordServer, config: Path) -> AsyncGenerator[None]:
    """A gateway and two workers, which know the page."""
    async with playing(server, config, "knowledge"):
        await until_held(client, b"kb:backups.md", held=True)
        async with playing(server, config, "gateway", "worker", "worker"):
            await server.until(lambda: server.gateway.sessions, WITHIN)
            async with asyncio.timeout(WITHIN):
                while sorted((await owned(client)).values()) != [PARTITIONS // 2] * 2:  # noqa: ASYNC110 (nobody tells)
                    await asyncio.sleep(0.05)
            yield


async def owned(client: Client) -> Counter[str]:
    """How many partitions each worker has."""
    consumers = await streams_of(client).consumers_info(MESSAGES)
    return Counter((each.config.metadata or {})["process"] for each in consumers)


async def called(server: DiscordServer, place: Channel, user: User, command: str) -> Interaction:
    """A command, once the bot has it, and its answer."""
    await server.until(lambda: server.state.commands, WITHIN)
    one = await server.call(place, user, command)
    await server.until(lambda: one.answered, WITHIN)
    return one


async def holding(client: Client, word: bytes) -> list[str]:
    """Where NATS keeps a word in the files of the program."""
    found = [entry.subject async for entry in read_stream(streams_of(client), LOG, "log.>") if word in entry.data]
    blobs = await streams_of(client).object_store(BLOBS)
    try:
        names = [each.name for each in await blobs.list()]
    except NotFoundError:  # it is empty
        names = []
    for name in names:
        data = (await blobs.get(name or "")).data or b""
        found += [f"{BLOBS}: {name}"] if word in data else []
    return found


@pytest.mark.slow
async def test_who_opts_out_in_one_worker_is_left_alone_by_another(
    client: Client, discord_server: DiscordServer, config: Path, ada: User
) -> None:
    channels = [discord_server.add_channel(f"help-{number}") for number in range(6)]
    async with answering(client, discord_server, config):
        assert "nothing that you write" in (await called(discord_server, channels[0], ada, "privacy opt-out")).texts[0]
        hers = [await discord_server.say(each, ada, QUESTION) for each in channels]
        others = [discord_server.add_member(f"ben-{number}") for number in range(len(channels))]
        asked = [await discord_server.say(*each, QUESTION) for each in zip(channels, others, strict=True)]
        await discord_server.until(lambda: all(answers_to(discord_server, each) for each in asked), WITHIN)
        assert [answers_to(discord_server, each) for each in hers] == [[]] * len(hers)
        await called(discord_server, channels[-1], ada, "privacy opt-in")
        again = [await discord_server.say(each, ada, QUESTION) for each in channels]
        # The same answer twice is one too many, so not each has one.
        await discord_server.until(lambda: any(answers_to(discord_server, each) for each in again), WITHIN)


async def forget_from_the_command_line(config: Path, user: User) -> str:
    """What it prints."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "app.py",
        "--config",
        str(config),
        "--forget",
        str(user.id),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    said, _ = await process.communicate()
    assert process.returncode == 0
    return said.decode()


async def until_held(client: Client, word: bytes, *, held: bool) -> None:
    async with asyncio.timeout(WITHIN):
        while bool(await holding(client, word)) != held:  # noqa: ASYNC110 (of other processes)
            await asyncio.sleep(0.05)


@pytest.mark.slow
async def test_who_is_forgotten_is_so_in_all_processes_and_in_those_that_come_later(
    client: Client, discord_server: DiscordServer, config: Path, ada: User, helper: User
) -> None:
    """Pitfall 49."""
    ben = discord_server.add_member("ben")
    help_ = discord_server.add_channel("help")
    lanterns = discord_server.add_channel("lanterns")
    async with answering(client, discord_server, config):
        async with playing(discord_server, config, "team"):
            asked = await discord_server.say(help_, ada, QUESTION)
            await discord_server.until(lambda: answers_to(discord_server, asked), WITHIN)
            for who, thing in ((ada, "zebra"), (ben, "walrus")):
                hard = await discord_server.say(lanterns, who, f"does a {thing} fit into the lantern?")
                await discord_server.say(lanterns, helper, "Only a folded one; use the large lantern.", reply_to=hard)
                await until_held(client, thing.encode(), held=True)
            assert await holding(client, QUESTION.encode())
            begun = (await read_budgets(streams_of(client)))["shared"].chains
            assert begun
            said = (await called(discord_server, help_, ada, "privacy forget")).texts[0]
            assert (await read_budgets(streams_of(client)))["shared"].chains == begun
            assert "1 answer that I remembered giving you" in said
            assert "1 message in captured conversations" in said
            assert "out of reach just now" not in said
            for word in (b"zebra", QUESTION.encode()):
                assert await holding(client, word) == []
            assert [each for each in await holding(client, str(ada.id).encode()) if ".team." not in each] == []
        said = await forget_from_the_command_line(config, ben)
        assert "Still to come, by itself:" in said
        assert "archive and topics: as soon as a process with the role team runs" in said
        assert await holding(client, b"walrus")
        async with playing(discord_server, config, "team"):
            await until_held(client, b"walrus", held=False)
