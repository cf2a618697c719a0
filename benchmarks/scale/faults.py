"""Everything that goes wrong, one thing after another, while people write: what was done, and when."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.scale.model import ANSWERING
from benchmarks.scale.processes import Running
from benchmarks.scale.scene import LEASE_SECONDS, PARTITIONS, Scene
from benchmarks.scale.traffic import POISON
from benchmarks.scale.watch import shares, until
from clock.utc import now
from tests.loopback.nats_server import NatsServer
from transport.streams import MESSAGES

PATIENCE_SECONDS = 30.0
AWAY_SECONDS = 3.0
"""How long the server of NATS is away."""
POISON_SECONDS = 120.0
STEPS = ("join", "kill", "freeze", "restart", "join", "drain", "poison")
CALM_SECONDS = 2.0
"""Between two things that go wrong."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A process that was ended or frozen: what it called itself, which scopes it had, and when."""

    name: str
    scopes: frozenset[str]
    at: float


@dataclass(slots=True)
class Story:
    """What happened.

    Attributes:
        steps: what went wrong, in its order.
        share_seconds: until a newcomer had its share, after it was seen; None: never.
        drained: how a worker ended that was told to stop; `handed_over`: its scopes; `its`: the cases that it had
            the model answer; `others`: those of others since then.
        poison: the message that ends whoever takes it up; `deaths`: how many it has ended.
        by_themselves: processes that ended without being told to.
        codes: how those ended that were told to stop at the end.
        still_said: people wrote until the last step was over.
    """

    steps: Sequence[str] = STEPS
    share_seconds: float | None = None
    killed: Loss | None = None
    frozen: Loss | None = None
    team_killed: Loss | None = None
    team_frozen: Loss | None = None
    drained: int | None = None
    handed_over: frozenset[str] = frozenset()
    its: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    poison: int = 0
    deaths: int = 0
    by_themselves: Sequence[str] = ()
    codes: Sequence[int] = ()
    said: int = 0
    still_said: bool = False
    settled: bool = False


class Faults:
    """The story of one scene, told once."""

    def __init__(self, scene: Scene, frozen_seconds: float, poison_channel: int) -> None:
        self.story = Story()
        self._scene, self._frozen_seconds, self._poison_channel = scene, frozen_seconds, poison_channel
        self._ended_by_us: set[str] = set()

    async def run(self, steps: Sequence[str] = STEPS) -> Story:
        scene, story = self._scene, self.story
        story.steps = steps
        await scene.started(gateway=1, worker=2, team=2, knowledge=1)
        playing = asyncio.create_task(scene.discord.play())
        await asyncio.sleep(CALM_SECONDS)
        told = self._told()
        for step in steps:
            await told[step]()
        story.still_said = not playing.done()
        story.said = await playing
        story.settled = await scene.settled(PATIENCE_SECONDS + LEASE_SECONDS) is not None
        if not story.settled:
            await self._tell_waiting()
        await scene.watch.caught_up()
        await self._stop_all()
        return story

    async def _tell_waiting(self) -> None:
        """Print which leases still have messages, as the server counts them."""
        for each in await self._scene.streams.consumers_info(MESSAGES):
            if each.num_pending or each.num_ack_pending:
                counts = f"{each.num_pending} not delivered, {each.num_ack_pending} not acknowledged"
                print(f"   {each.name}: {counts}, bound {each.push_bound}", flush=True)

    def _told(self) -> Mapping[str, Callable[[], Awaitable[None]]]:
        """Return the function that carries out each step."""
        return {
            "join": self._join,
            "kill": self._kill_worker,
            "freeze": self._freeze,
            "restart": self._restart_server,
            "drain": self._drain,
            "poison": self._poison,
        }

    async def _join(self) -> None:
        """A newcomer: how long until it has its share."""
        newcomer = await self._one_more()
        share = PARTITIONS // len(self._scene.processes.of("worker"))
        assert await until(lambda: self._scene.name_of(newcomer), PATIENCE_SECONDS) is not None, (
            "a newcomer is not seen"
        )
        seconds = await until(lambda: self._has(newcomer, share), PATIENCE_SECONDS)
        if self.story.share_seconds is None:
            self.story.share_seconds = seconds
        await self._calm()

    async def _has(self, running: Running, share: int) -> bool:
        owned = await shares(self._scene.streams)
        return sum(count for name, count in owned.items() if running.owns(name)) >= share

    async def _kill_worker(self) -> None:
        worker = self._scene.processes.of("worker")[0]
        self.story.killed = await self._lose(worker, signal.SIGKILL)
        await worker.end()
        await self._calm()

    async def _freeze(self) -> None:
        """A worker and, after the active team process was killed, the next one: both sleep at the same time."""
        worker = self._scene.processes.of("worker")[0]
        self.story.frozen = await self._lose(worker, signal.SIGSTOP)
        woken = asyncio.get_running_loop().time() + self._frozen_seconds
        active = await self._active_team()
        self.story.team_killed = await self._lose(active, signal.SIGKILL)
        await self._scene.processes.start("team-3", "team")
        second = await self._active_team()
        self.story.team_frozen = await self._lose(second, signal.SIGSTOP)
        await self._active_team()
        await asyncio.sleep(woken - asyncio.get_running_loop().time())
        worker.wake()
        second.wake()
        await self._calm()

    async def _active_team(self) -> Running:
        """The one that writes the archive, once there is one that runs."""
        scene = self._scene
        lost = {each.name for each in (self.story.team_killed, self.story.team_frozen) if each}

        async def somebody() -> bool:
            owner = scene.watch.log.owners.get("team", "")
            return owner not in lost and scene.processes.owner(owner) is not None

        assert await until(somebody, PATIENCE_SECONDS) is not None, "nobody writes the team's archive"
        active = scene.processes.owner(scene.watch.log.owners["team"])
        assert active is not None
        return active

    async def _restart_server(self) -> None:
        server = self._scene.server
        assert isinstance(server, NatsServer)
        server.end(signal.SIGKILL)
        await asyncio.sleep(AWAY_SECONDS)
        await asyncio.to_thread(server.start)
        await self._calm()

    async def _drain(self) -> None:
        worker = self._scene.processes.of("worker")[0]
        self._ended_by_us.add(worker.name)
        story, log, asked = self.story, self._scene.watch.log, self._scene.model.asked
        name = next((owner for owner in set(log.owners.values()) if worker.owns(owner)), "")
        story.handed_over = frozenset(log.owned_by(name))
        before = len(asked)
        story.drained = await worker.stop()
        await self._calm()
        answering = [each for each in asked if each.step == ANSWERING]
        story.its = frozenset(each.case for each in answering if each.who == worker.name)
        later = (each for each in asked[before:] if each.step == ANSWERING)
        story.others = frozenset(each.case for each in later if each.who != worker.name)

    async def _poison(self) -> None:
        """A message that ends its worker each time; whoever runs the program starts another one."""
        scene, story = self._scene, self.story
        story.poison = await scene.discord.ask(self._poison_channel, f"what is {POISON}?")
        buried = set[str]()

        async def given_up() -> bool:
            for each in list(scene.processes.all.values()):
                if each.role == "worker" and each.over and each.name not in self._ended_by_us | buried:
                    buried.add(each.name)
                    story.deaths += 1
                    await self._one_more()
            return story.poison in scene.watch.log.kinds

        await until(given_up, POISON_SECONDS)
        self._ended_by_us |= buried

    async def _one_more(self) -> Running:
        processes = self._scene.processes
        number = 1 + sum(each.role == "worker" for each in processes.all.values())
        return await processes.start(f"worker-{number}", "worker")

    async def _lose(self, running: Running, number: signal.Signals) -> Loss:
        log, at = self._scene.watch.log, now()
        name = next((owner for owner in set(log.owners.values()) if running.owns(owner)), "")
        running.send(number)
        if number == signal.SIGKILL:
            self._ended_by_us.add(running.name)
        return Loss(name, frozenset(log.owned_by(name)), at)

    async def _calm(self) -> None:
        await until(self._scene.balanced, PATIENCE_SECONDS)
        await asyncio.sleep(CALM_SECONDS)

    async def _stop_all(self) -> None:
        everybody = self._scene.processes.all.values()
        self.story.by_themselves = [each.name for each in everybody if each.over and each.name not in self._ended_by_us]
        self.story.codes = await asyncio.gather(*(each.stop() for each in everybody if not each.over))
