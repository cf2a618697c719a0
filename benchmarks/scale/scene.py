"""All that a part of the drill needs: servers of NATS, Discord and a model, and processes of the program."""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments untyped.

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from nats.aio.client import Client
from nats.js import JetStreamContext

from benchmarks.scale.judge import Posted, Sent
from benchmarks.scale.model import Model
from benchmarks.scale.processes import Processes, Running, Start, program
from benchmarks.scale.traffic import Saying, write_plan
from benchmarks.scale.watch import Watch, connected, shares, until
from tests.end_to_end.knowledge import write_knowledge
from tests.loopback.nats_cluster import NatsCluster
from tests.loopback.nats_server import NatsServer
from transport.address import ServersUnusable
from transport.key_value import read_values
from transport.streams import MEMBERS, Layout, create_streams

LINE_BYTES = 1 << 24
STARTING_SECONDS = 60.0
QUIET_SECONDS = 0.15
PARTITIONS, LEASE_SECONDS = 32, 3.0
INDEX = "knowledge-base/index.txt"
"""The last file of the knowledge to be written."""


class Discord:
    """The other end of `benchmarks.scale.discord`, which runs in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path) -> None:
        self.folder = folder
        self.about: Mapping[str, Any] = {}
        self._process = process
        self._answers: dict[str, asyncio.Queue[Any]] = {}
        self._listening: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        return self._process.pid

    async def listen(self) -> None:
        assert self._process.stdout is not None
        self.about = json.loads(await self._process.stdout.readline())
        self._listening = asyncio.create_task(self._hear(self._process.stdout), name="the scripted Discord")

    async def _hear(self, out: asyncio.StreamReader) -> None:
        async for line in out:
            for key, value in json.loads(line).items():
                self._queue(key).put_nowait(value)

    def _queue(self, key: str) -> asyncio.Queue[Any]:
        return self._answers.setdefault(key, asyncio.Queue())

    async def _ask(self, command: str, answer: str) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n".encode())
        await self._process.stdin.drain()
        return await self._queue(answer).get()

    async def play(self) -> int:
        """Have the plan said, in its time; gives how much was."""
        return await self._ask("play", "played")

    async def flood(self) -> int:
        return await self._ask("flood", "flooded")

    async def ask(self, channel: int, text: str) -> int:
        """Have somebody ask that; gives the id of the message."""
        return await self._ask(f"ask {channel} {text}", "asked")

    async def report(self) -> tuple[list[Sent], list[Posted]]:
        """What was said and what the bot posted. Raises AssertionError: it was asked for what it does not have."""
        unknown = await self._ask("report", "reported")
        assert not unknown, f"the scripted Discord has no {unknown[:5]}"
        sent = (self.folder / "sent.jsonl").read_text().splitlines()
        posts = (self.folder / "posts.jsonl").read_text().splitlines()
        return [Sent(**json.loads(line)) for line in sent], [Posted(**json.loads(line)) for line in posts]

    async def end(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
        self._process.kill()
        await self._process.wait()


@dataclass(slots=True)
class Scene:
    """What is there. `config`: of the program, with `transport` at this server."""

    folder: Path
    config: Path
    server: NatsServer | NatsCluster
    client: Client
    discord: Discord
    model: Model
    processes: Processes
    watch: Watch

    @property
    def streams(self) -> JetStreamContext:
        return self.client.jetstream()

    async def members(self) -> set[str]:
        """The processes that are seen."""
        return set(await read_values(self.streams, MEMBERS))

    async def name_of(self, running: Running) -> str:
        """What a process calls itself."""
        return next((name for name in await self.members() if running.owns(name)), "")

    async def started(self, **roles: int) -> list[Running]:
        """Start so many processes of each role, and wait until all are seen and partitions are shared out."""
        numbered = ((role, number) for role, count in roles.items() for number in range(1, count + 1))
        running = [await self.processes.start(f"{role}-{number}", role) for role, number in numbered]

        async def seen() -> bool:
            assert not (ended := [each.name for each in running if each.over]), f"they ended: {ended}"
            names = await self.members()
            return all(any(each.owns(name) for name in names) for each in running) and await self.balanced()

        assert await until(seen, STARTING_SECONDS) is not None, "the processes do not get ready"
        if roles.get("knowledge"):
            assert await until(self._told, STARTING_SECONDS) is not None, "the knowledge does not come"
        return running

    async def _told(self) -> bool:
        """Whether the knowledge is where workers read it."""
        return any(path.endswith(INDEX) for path in self.watch.log.knowledge)

    async def balanced(self) -> bool:
        """Whether every partition has an owner, and no worker has two more than another."""
        workers = self.processes.of("worker")
        owned = await shares(self.streams)
        counts = [sum(count for name, count in owned.items() if each.owns(name)) for each in workers]
        return not counts or (sum(counts) == PARTITIONS and min(counts) >= PARTITIONS // len(workers) - 1)

    def confine(self, cores: Sequence[int]) -> None:
        """Let everything that is here run on these cores only, and each worker on one of them."""
        workers = self.processes.of("worker")
        for number, each in enumerate(workers):
            confine(each.pid, [cores[number % len(cores)]])
        others = (each.pid for each in self.processes.all.values() if not each.over and each not in workers)
        for pid in (os.getpid(), *self.server.pids, self.discord.pid, *others):
            confine(pid, cores)

    async def settled(self, seconds: float) -> float | None:
        """Wait until every message has its outcome and every capture its place; None: not in that time."""

        async def nothing_left() -> bool:
            infos = [await self.streams.stream_info(name) for name in ("MESSAGES", "CAPTURES")]
            return not any(info.state.messages for info in infos)

        return await until(nothing_left, seconds)


def confine(pid: int, cores: Collection[int]) -> None:
    """All threads of a process; what they start afterwards is confined as well."""
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            os.sched_setaffinity(int(thread.name), cores)


@contextlib.asynccontextmanager
async def scene(
    folder: Path,
    sayings: Sequence[Saying],
    channels: int,
    latency: float = 0.0,
    command: Callable[[Discord, Path], Sequence[str]] | None = None,
    *,
    three_servers: bool = False,
) -> AsyncGenerator[Scene]:
    """Everything but the processes of the program, until the end of the block.

    `command`: how a role is started; None: the program itself.
    """
    write_plan(folder / "plan.jsonl", sayings)
    async with contextlib.AsyncExitStack() as stack:
        if three_servers:
            server = await stack.enter_async_context(NatsCluster(folder))
        else:
            server = stack.enter_context(NatsServer(folder))
        client = await stack.enter_async_context(connected(server.url))
        await _make_streams(client, Layout(PARTITIONS, LEASE_SECONDS, server.replicas))
        discord = await _discord(folder, channels)
        stack.push_async_callback(discord.end)
        processes: dict[str, Running] = {}
        model = await stack.enter_async_context(Model(latency, lambda who: processes[who].kill()))
        config = write_config(folder, server.url, discord.about["team"], replicas=server.replicas)
        started = Processes(
            folder,
            Start((command or the_program)(discord, config), {"APP__DISCORD__TOKEN": discord.about["token"]}),
            {"APP__AI_RESPONSE__LLM__BASE_URL": model.address("{name}")},
            processes,
        )
        await stack.enter_async_context(started)
        watch = await stack.enter_async_context(Watch(client))
        yield Scene(folder, config, server, client, discord, model, started, watch)


async def _make_streams(client: Client, layout: Layout) -> None:
    """Several servers have to find each other first."""

    async def made() -> bool:
        try:
            await create_streams(client, layout)
        except ServersUnusable:
            return False
        return True

    assert await until(made, STARTING_SECONDS) is not None, "the servers do not become one"


def the_program(discord: Discord, config: Path) -> Sequence[str]:
    return program(discord.about["rest"], discord.about["gateway"], config)


async def _discord(folder: Path, channels: int) -> Discord:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.scale.discord", str(folder / "plan.jsonl"), str(folder), str(channels)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=LINE_BYTES,
    )
    discord = Discord(process, folder)
    await discord.listen()
    return discord


def write_config(folder: Path, transport: str, team: Sequence[int], name: str = "config", *, replicas: int = 1) -> Path:
    """The configuration of a drill: short times, and replies to those who mention the bot."""
    data = folder / f"{name}-data"
    write_knowledge(data)
    llm = {"base_url": "http://127.0.0.1/v1", "api_key": "none", "model": "m", "timeout_seconds": 30}
    sections: dict[str, Any] = {
        "app": {"data_dir": str(data)},
        "discord": {
            "message_batch_wait_seconds": QUIET_SECONDS,
            "message_batch_settle_seconds": QUIET_SECONDS,
            "team_active_seconds": 1,
            "thread_reuse_minutes": 0.001,
            "reply_mode": "mention",
            "team_member_ids": list(team),
        },
        "ai_response": {"llm": llm},
        "kb": {"settle_minutes": 0},
        "limits": {"chains_per_user_per_hour": 100_000},
        "search": {"embeddings": "none"},
        "transport": transport,
        "nats": {"partitions": PARTITIONS, "lease_seconds": LEASE_SECONDS, "replicas": replicas},
    }
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(sections))
    return path
