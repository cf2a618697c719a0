"""Three servers that are one, of which one after another fails while people write."""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments untyped.

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.scale import judge
from benchmarks.scale.faults import Faults, Story
from benchmarks.scale.findings import Requirement
from benchmarks.scale.judge import Log, Sent
from benchmarks.scale.scene import Scene
from benchmarks.scale.watch import until
from clock.utc import now
from tests.loopback.nats_cluster import SMALL, NatsCluster
from transport.streams import LOG, MESSAGES

CLUSTER_STEPS = ("leader", "cut", "loss", "disk")
AWAY_SECONDS = 10.0
"""How long each of it lasts."""
LOSS, DELAY_SECONDS = 0.02, 0.025
"""The share of pieces that the links lose in the step `loss`, and how long each piece takes one way."""
PATIENCE_SECONDS = 60.0
LEADING_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Disturbance:
    """A step: from when until everything was as before it."""

    step: str
    server: str
    since: float
    until: float


class ClusterFaults(Faults):
    """The story of one scene with three servers, told once."""

    def __init__(self, scene: Scene, poison_channel: int) -> None:
        super().__init__(scene, AWAY_SECONDS, poison_channel)
        assert isinstance(scene.server, NatsCluster)
        self.disturbances: list[Disturbance] = []
        self._servers = scene.server

    def _told(self) -> Mapping[str, Callable[[], Awaitable[None]]]:
        return {
            "leader": lambda: self._step("leader", self._kill_leader),
            "cut": lambda: self._step("cut", self._cut_off_leader),
            "loss": lambda: self._step("loss", self._lose_and_delay),
            "disk": lambda: self._step("disk", self._fill_disk),
        }

    async def _step(self, step: str, work: Callable[[], Awaitable[str]]) -> None:
        since = now()
        server = await work()
        assert await until(self._whole, PATIENCE_SECONDS) is not None, f"{step}: the servers do not become one again"
        await self._calm()
        self.disturbances.append(Disturbance(step, server, since, now()))
        print(f"   {step}: {server}, {now() - since:.1f} s", flush=True)

    async def _leader(self, stream: str = MESSAGES) -> str:
        """The server that leads the stream."""
        found = list[str]()

        async def known() -> bool:
            info = await self._scene.streams.stream_info(stream)
            found.append((info.cluster and info.cluster.leader) or "")
            return bool(found[-1])

        assert await until(known, PATIENCE_SECONDS) is not None, "nobody leads"
        return found[-1]

    async def _whole(self) -> bool:
        """Every stream has a leader, and the others have what it has."""
        for info in await self._scene.streams.streams_info():
            replicas = (info.cluster and info.cluster.replicas) or []
            if len(replicas) != self._servers.replicas - 1 or not all(each.current for each in replicas):
                return False
        return True

    async def _kill_leader(self) -> str:
        leader = await self._leader()
        await self._servers.kill(leader)
        await asyncio.sleep(AWAY_SECONDS)
        await self._servers.start(leader)
        return leader

    async def _cut_off_leader(self) -> str:
        leader = await self._leader()
        self._servers.cut_off(leader)
        await asyncio.sleep(AWAY_SECONDS)
        self._servers.heal()
        return leader

    async def _lose_and_delay(self) -> str:
        self._servers.trouble(LOSS, DELAY_SECONDS)
        await asyncio.sleep(2 * AWAY_SECONDS)
        self._servers.trouble(0.0, 0.0)
        return "all"

    async def _fill_disk(self) -> str:
        """The disk of a server that leads is full for a while; then there is room, and it is started again."""
        disk = self._servers.disk
        if disk is None:
            return ""
        for stream in (MESSAGES, LOG):
            await self._have_lead(stream)
        await disk.fill()
        await asyncio.sleep(AWAY_SECONDS)
        await disk.free()
        await self._servers.kill(SMALL)
        await self._servers.start(SMALL)
        return SMALL

    async def _have_lead(self, stream: str) -> None:
        """Have the server with the small disk lead that stream."""
        wish = json.dumps({"placement": {"preferred": SMALL}}).encode()

        async def leads() -> bool:
            if await self._leader(stream) == SMALL:
                return True
            await self._scene.client.request(f"$JS.API.STREAM.LEADER.STEPDOWN.{stream}", wish, timeout=2)
            return False

        await until(leads, LEADING_SECONDS, 1.0)


def of_disturbances(found: Sequence[Disturbance], story: Story, sent: Sequence[Sent], log: Log) -> list[Requirement]:
    """Tell each step and its longest silence, which is not judged: it is the time that the servers take."""
    lines = list[Requirement]()
    for each in found:
        silence = judge.longest_silence(sent, log, each.since, each.until)
        lasted = each.until - each.since
        where = f" ({each.server})" if each.server else ": not done, as this system lets us mount no small disk"
        lines.append((True, f"{each.step}{where}, over after {lasted:.1f} s: the longest silence {silence:.1f} s"))
    lines.append((story.still_said, f"people wrote until the last step was over: {story.still_said}"))
    return lines
