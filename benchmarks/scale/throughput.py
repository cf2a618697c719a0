"""How fast: messages through one installation, and answers with one worker and with two."""

# pyright: reportUnknownMemberType=false
# nats-py leaves its headers untyped.

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from nats.js import JetStreamContext

from benchmarks.scale import judge
from benchmarks.scale.discord import RECORDING
from benchmarks.scale.findings import Requirement
from benchmarks.scale.scene import Scene
from benchmarks.yardstick import limit_of_wall
from clock.utc import now

MESSAGES_WANTED = 5_000.0
TIMES_WANTED = 1.8
SECONDS = 120.0
FILL_SECONDS = 2.0
WARMING = 3
"""Floods at most until all are answered: the knowledge has arrived, and what only a first question takes is done."""


async def messages(scene: Scene, workers: int) -> list[Requirement]:
    """From publishing to the last outcome, of messages that ask nothing: what the way itself takes."""
    gateway, *_ = await scene.started(gateway=1, worker=workers)
    # It has told of the channels. The recording of what is said without it is published in its place.
    await gateway.stop()
    await scene.discord.flood()
    sent, _ = await scene.discord.report()
    lines = list(created(scene.discord.folder / RECORDING))
    began = now()
    await publish(scene.streams, lines)
    published = now() - began
    settled = await scene.settled(SECONDS)
    await scene.watch.caught_up()
    lost = len(judge.lost(sent, scene.watch.log))
    last = max((ended.at for ended in scene.watch.log.ended), default=began)
    rate = (len(lines) - lost) / (last - began) if last > began else 0.0
    wanted = MESSAGES_WANTED / limit_of_wall(1.0)
    line = f"{len(lines)} messages by {workers} workers, published in {published:.1f} s, {lost} without an outcome"
    return [
        (settled is not None and not lost and rate >= wanted, f"{line}: {rate:.0f}/s, {wanted:,.0f}/s wanted"),
    ]


def created(recording: Path) -> Iterator[tuple[str, str, bytes]]:
    """Subject, id and line of each message, as a gateway publishes them."""
    with recording.open("rb") as file:
        for line in file:
            dispatch = json.loads(line)
            if dispatch["t"] == "MESSAGE_CREATE":
                yield f"messages.{dispatch['d']['channel_id']}", f"C:{dispatch['d']['id']}", line


async def publish(streams: JetStreamContext, lines: Sequence[tuple[str, str, bytes]]) -> None:
    """In order, over one connection, with as many on their way as the client allows. Raises TimeoutError."""
    sent = [
        await streams.publish_async(subject, line, headers={"Nats-Msg-Id": message_id})
        for subject, message_id, line in lines
    ]
    async with asyncio.timeout(SECONDS):
        await asyncio.gather(*sent)


async def answers(scene: Scene) -> list[Requirement]:
    """One worker on one core, two on two, and one again, with the same questions and a model without latency.

    Whatever surrounds them has the same cores: the servers of NATS, of Discord and of the model, and the gateway. Each
    flood leaves threads and posts that make the next one dearer: so the one is measured before and after the two.
    """
    cores = sorted(os.sched_getaffinity(0))
    await scene.started(gateway=1, knowledge=1, worker=1)
    for _ in range(WARMING):
        if await answered(scene):
            break
    free = await answered(scene)
    scene.confine(cores[:1])
    before = await answered(scene)
    second = await scene.processes.start("worker-2", "worker")
    scene.confine(cores[:2])
    await asyncio.sleep(FILL_SECONDS)
    await scene.started()
    await answered(scene)
    both = await answered(scene)
    await second.stop()
    await asyncio.sleep(FILL_SECONDS)
    scene.confine(cores[:1])
    after = await answered(scene)
    scene.confine(cores)
    alone = (before + after) / 2 if before and after else 0.0
    times = both / alone if alone else 0.0
    one = f"{before:.1f} and {after:.1f}/s by one worker on one core ({free:.1f}/s on two)"
    figures = f"{one}, {both:.1f}/s by two on two"
    enough = len(cores) > 1 and times >= TIMES_WANTED
    return [(enough, f"answers: {figures}: {times:.2f} times, {TIMES_WANTED:g} wanted")]


async def answered(scene: Scene) -> float:
    """Replies a second, from the first question of a flood to the last reply; 0: not all came."""
    _, before = await scene.discord.report()
    began = now()
    asked = await scene.discord.flood()
    if await scene.settled(SECONDS) is None:
        return 0.0
    sent, posts = await scene.discord.report()
    new = posts[len(before) :]
    questions = [each for each in sent if each.at >= began]
    assert len(sent) == asked
    return len(new) / (new[-1].at - began) if len(new) >= len(questions) > 0 else 0.0
