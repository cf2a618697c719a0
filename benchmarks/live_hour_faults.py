"""What goes wrong in the hour: which faults, when and for how long, drawn from a seed; and how each is made."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Protocol

from tests.end_to_end.hour_launcher import FLAG
from tests.loopback import llm_scenes
from tests.loopback.discord_server import DiscordServer
from tests.loopback.llm_scenes import Scene
from tests.loopback.llm_server import LLMServer

FIRST_SECONDS, LEAST_SECONDS, MOST_SECONDS = 10.0, 5.0, 60.0
QUIET_SECONDS = 8.0, 25.0
"""From the end of a fault to the next one, at least and at most."""
RESTARTS_FROM = 600.0
"""The seconds of the shortest run in which the process is ended as well."""
POSTS = "/messages$|/threads$"
GATEWAY = "^/$"
UNTIL_FORGOTTEN = 1_000_000


@dataclass(frozen=True, slots=True)
class Fault:
    """`at`: seconds from the start; `seconds`: for how long, 0 if it takes the time that it takes."""

    kind: str
    at: float
    seconds: float

    def __str__(self) -> str:
        return f"{self.kind}, {self.seconds:.0f} s" if self.seconds else self.kind


class World(Protocol):
    """The bot and what is around it.

    Attributes:
        calm: what the model does while it is well.
        config: the bot's configuration; flags lie beside it.
        pid: of the bot.
    """

    discord: DiscordServer
    model: LLMServer
    calm: Scene
    config: Path

    @property
    def pid(self) -> int: ...

    async def stop(self) -> None: ...

    async def kill(self) -> None: ...

    async def start(self) -> None: ...


def dice_of(seed: str) -> Random:
    return Random(seed)  # noqa: S311 (not a secret)


def schedule(dice: Random, seconds: float) -> list[Fault]:
    """One fault at a time, with quiet in between: all kinds in a random order, then all again."""
    faults, deck, at = list[Fault](), list[str](), FIRST_SECONDS
    most = min(MOST_SECONDS, max(2 * LEAST_SECONDS, seconds / 12))
    while True:
        deck = deck or dice.sample(list(LASTING), len(LASTING))
        lasting = dice.uniform(LEAST_SECONDS, most)
        if at + lasting > seconds:
            break
        faults.append(Fault(deck.pop(), round(at, 1), round(lasting, 1)))
        at += lasting + dice.uniform(*QUIET_SECONDS)
    if seconds >= RESTARTS_FROM:
        for kind, place in zip(ENDING, dice.sample(range(len(faults)), len(ENDING)), strict=True):
            faults[place] = Fault(kind, faults[place].at, 0.0 if kind in AT_ONCE else faults[place].seconds)
    return faults


async def bring(world: World, fault: Fault, dice: Random) -> None:
    """Make it, and wait until it is over."""
    await FAULTS[fault.kind](world, fault.seconds, dice)


Bring = Callable[[World, float, Random], Awaitable[None]]


def _repeated(least: float, most: float, once: Callable[[World, Random], Awaitable[None]]) -> Bring:
    """The same thing again and again, with pauses of so many seconds, and no more of it at the end."""

    async def bring(world: World, seconds: float, dice: Random) -> None:
        end = asyncio.get_running_loop().time() + seconds
        while (left := end - asyncio.get_running_loop().time()) > 0:
            if not world.discord.failures_to_come:  # else the tries of one request would meet all of them
                await once(world, dice)
            await asyncio.sleep(min(left, dice.uniform(least, most)))
        world.discord.forget_failures()

    return bring


async def _cut(world: World, dice: Random) -> None:
    await world.discord.disconnect(dice.choice((None, 4000, 1001)))


async def _ask_to_reconnect(world: World, _: Random) -> None:
    await world.discord.request_reconnect()


async def _end_session(world: World, _: Random) -> None:
    await world.discord.invalidate_session()


async def _gateway_away(world: World, seconds: float, _: Random) -> None:
    world.discord.fail_next("GET", GATEWAY, status=502, times=UNTIL_FORGOTTEN)
    await world.discord.disconnect(None)
    await asyncio.sleep(seconds)
    world.discord.forget_failures()


async def _gateway_and_session_away(world: World, seconds: float, _: Random) -> None:
    """What was said meanwhile is never told."""
    world.discord.fail_next("GET", GATEWAY, status=502, times=UNTIL_FORGOTTEN)
    await world.discord.disconnect(None)
    await asyncio.sleep(seconds)
    await world.discord.invalidate_session()
    world.discord.forget_failures()


async def _refuse(world: World, dice: Random) -> None:
    world.discord.fail_next("*", "^/channels/", status=dice.choice((500, 502, 503)), after_effect=dice.random() < 0.3)  # noqa: PLR2004


async def _rest_away(world: World, seconds: float, _: Random) -> None:
    world.discord.fail_next("*", "^/(channels|guilds)/", status=502, times=UNTIL_FORGOTTEN)
    await asyncio.sleep(seconds)
    world.discord.forget_failures()


async def _limit(world: World, dice: Random) -> None:
    world.discord.rate_limit_next(
        "*",
        "^/channels/",
        retry_after=round(dice.uniform(0.2, 3.0), 2),
        everywhere=dice.random() < 0.3,  # noqa: PLR2004
    )


async def _cut_post(world: World, _: Random) -> None:
    """Discord takes it; the bot is not told."""
    world.discord.fail_next("POST", POSTS, drop=True, after_effect=True)


async def _delay_post(world: World, dice: Random) -> None:
    world.discord.fail_next("POST", POSTS, after_effect=True, delay=dice.uniform(3.0, 20.0))


def _model(*scenes: Callable[[Scene], Scene]) -> Bring:
    async def bring(world: World, seconds: float, dice: Random) -> None:
        world.model.otherwise = dice.choice(scenes)(world.calm)
        await asyncio.sleep(seconds)
        world.model.otherwise = world.calm

    return bring


def _fill_disk(pid: int) -> tuple[int, int]:
    """Let the system refuse every write of the process to a file, whatever makes it: SQLite's as well. Files can still
    be made, renamed and deleted, as on a full disk. Gives what undoes it.
    """
    _, most = before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, most))
    return before


async def _disk_full(world: World, seconds: float, _: Random) -> None:
    before = _fill_disk(world.pid)
    await asyncio.sleep(seconds)
    resource.prlimit(world.pid, resource.RLIMIT_FSIZE, before)


async def _clock_back(world: World, seconds: float, _: Random) -> None:
    flag = world.config.with_name(FLAG)
    flag.touch()
    await asyncio.sleep(seconds)
    flag.unlink()


async def _restart(world: World, _seconds: float, _: Random) -> None:
    await world.stop()
    await world.start()


async def _kill(world: World, _seconds: float, _: Random) -> None:
    await world.kill()
    await world.start()


async def _disk_full_and_kill(world: World, seconds: float, _: Random) -> None:
    """There is room again for the next process."""
    _fill_disk(world.pid)
    await asyncio.sleep(seconds)
    await world.kill()
    await world.start()


async def _clock_back_and_restart(world: World, seconds: float, _: Random) -> None:
    flag = world.config.with_name(FLAG)
    flag.touch()
    await world.stop()
    await world.start()
    await asyncio.sleep(seconds)
    flag.unlink()


LASTING: Mapping[str, Bring] = {
    "gateway cut, resumable": _repeated(3.0, 12.0, _cut),
    "gateway asks to reconnect": _repeated(5.0, 15.0, _ask_to_reconnect),
    "gateway session ended": _repeated(8.0, 20.0, _end_session),
    "gateway away": _gateway_away,
    "gateway and session away": _gateway_and_session_away,
    "REST 500, 502, 503": _repeated(0.1, 1.0, _refuse),
    "REST away": _rest_away,
    "REST 429": _repeated(0.3, 2.0, _limit),
    "REST cut after a post": _repeated(0.5, 3.0, _cut_post),
    "REST answers late": _repeated(0.5, 3.0, _delay_post),
    "model slow": _model(lambda calm: llm_scenes.slow(10, calm), lambda calm: llm_scenes.slow(25, calm)),
    "model 503": _model(lambda _: llm_scenes.status(503)),
    "model cuts": _model(lambda _: llm_scenes.drop()),
    "disk full": _disk_full,
    "clock an hour back": _clock_back,
}
ENDING: Mapping[str, Bring] = {
    "restart": _restart,
    "kill": _kill,
    "disk full, then kill": _disk_full_and_kill,
    "restart, clock an hour back": _clock_back_and_restart,
}
"""These end the process; one of each in a run that is long enough."""
AT_ONCE = {"restart", "kill"}
FAULTS: Mapping[str, Bring] = {**LASTING, **ENDING}
