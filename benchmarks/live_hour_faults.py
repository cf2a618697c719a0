"""What goes wrong in the hour: which faults, when and for how long, drawn from a seed; and how each is made."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from random import Random

from benchmarks.live_hour_world import Hour
from tests.end_to_end.hour_launcher import FLAG
from tests.loopback import llm_scenes
from tests.loopback.llm_scenes import Scene

FIRST_SECONDS, LEAST_SECONDS, MAX_SECONDS = 10.0, 5.0, 60.0
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


def dice_of(seed: str) -> Random:
    """Numbers that are the same for the same seed."""
    return Random(seed)  # noqa: S311 (not a secret)


def schedule(dice: Random, seconds: float) -> list[Fault]:
    """One fault at a time, with quiet in between: all kinds in a random order, then all again."""
    faults, deck, at = list[Fault](), list[str](), FIRST_SECONDS
    most = min(MAX_SECONDS, max(2 * LEAST_SECONDS, seconds / 12))
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


async def bring(hour: Hour, fault: Fault, dice: Random) -> None:
    """Make it, and wait until it is over."""
    await FAULTS[fault.kind](hour, fault.seconds, dice)


Bring = Callable[[Hour, float, Random], Awaitable[None]]


def _repeated(least: float, most: float, once: Callable[[Hour, Random], Awaitable[None]]) -> Bring:
    """The same thing again and again, with pauses of so many seconds, and no more of it at the end."""

    async def bring(hour: Hour, seconds: float, dice: Random) -> None:
        end = asyncio.get_running_loop().time() + seconds
        while (left := end - asyncio.get_running_loop().time()) > 0:
            if not hour.discord.failures_to_come:  # else the tries of one request would meet all of them
                await once(hour, dice)
            await asyncio.sleep(min(left, dice.uniform(least, most)))
        hour.discord.forget_failures()

    return bring


async def _cut(hour: Hour, dice: Random) -> None:
    await hour.discord.disconnect(dice.choice((None, 4000, 1001)))


async def _ask_to_reconnect(hour: Hour, _: Random) -> None:
    await hour.discord.request_reconnect()


async def _end_session(hour: Hour, _: Random) -> None:
    await hour.discord.invalidate_session()


async def _gateway_away(hour: Hour, seconds: float, _: Random) -> None:
    hour.discord.fail_next("GET", GATEWAY, status=502, times=UNTIL_FORGOTTEN)
    await hour.discord.disconnect(None)
    await asyncio.sleep(seconds)
    hour.discord.forget_failures()


async def _gateway_and_session_away(hour: Hour, seconds: float, _: Random) -> None:
    """What was said meanwhile is never told."""
    hour.discord.fail_next("GET", GATEWAY, status=502, times=UNTIL_FORGOTTEN)
    await hour.discord.disconnect(None)
    await asyncio.sleep(seconds)
    await hour.discord.invalidate_session()
    hour.discord.forget_failures()


async def _refuse(hour: Hour, dice: Random) -> None:
    hour.discord.fail_next("*", "^/channels/", status=dice.choice((500, 502, 503)), after_effect=dice.random() < 0.3)  # noqa: PLR2004


async def _rest_away(hour: Hour, seconds: float, _: Random) -> None:
    hour.discord.fail_next("*", "^/(channels|guilds)/", status=502, times=UNTIL_FORGOTTEN)
    await asyncio.sleep(seconds)
    hour.discord.forget_failures()


async def _limit(hour: Hour, dice: Random) -> None:
    hour.discord.rate_limit_next(
        "*",
        "^/channels/",
        retry_after=round(dice.uniform(0.2, 3.0), 2),
        everywhere=dice.random() < 0.3,  # noqa: PLR2004
    )


async def _cut_post(hour: Hour, _: Random) -> None:
    """Discord takes it; the bot is not told."""
    hour.discord.fail_next("POST", POSTS, drop=True, after_effect=True)


async def _delay_post(hour: Hour, dice: Random) -> None:
    hour.discord.fail_next("POST", POSTS, after_effect=True, delay=dice.uniform(3.0, 20.0))


def _model(*scenes: Callable[[Scene], Scene]) -> Bring:
    async def bring(hour: Hour, seconds: float, dice: Random) -> None:
        hour.model.otherwise = dice.choice(scenes)(hour.calm)
        await asyncio.sleep(seconds)
        hour.model.otherwise = hour.calm

    return bring


def _fill_disk(pid: int) -> tuple[int, int]:
    """Let the system refuse every write of the process to a file, whatever makes it: SQLite's as well. Files can still
    be made, renamed and deleted, as on a full disk. Gives what undoes it.
    """
    _, most = before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, most))
    return before


async def _disk_full(hour: Hour, seconds: float, _: Random) -> None:
    before = _fill_disk(hour.pid)
    await asyncio.sleep(seconds)
    resource.prlimit(hour.pid, resource.RLIMIT_FSIZE, before)


async def _clock_back(hour: Hour, seconds: float, _: Random) -> None:
    flag = hour.config.with_name(FLAG)
    flag.touch()
    await asyncio.sleep(seconds)
    flag.unlink()


async def _restart(hour: Hour, _seconds: float, _: Random) -> None:
    await hour.stop()
    await hour.start()


async def _kill(hour: Hour, _seconds: float, _: Random) -> None:
    await hour.kill()
    await hour.start()


async def _disk_full_and_kill(hour: Hour, seconds: float, _: Random) -> None:
    """There is room again for the next process."""
    _fill_disk(hour.pid)
    await asyncio.sleep(seconds)
    await hour.kill()
    await hour.start()


async def _clock_back_and_restart(hour: Hour, seconds: float, _: Random) -> None:
    flag = hour.config.with_name(FLAG)
    flag.touch()
    await hour.stop()
    await hour.start()
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
