"""The roles as processes: started, killed, frozen, woken and told to stop, each by its own id."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

ROOT = Path(__file__).parents[2]
STOP_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Start:
    """How a process is started: what its role and name are put behind, and what it finds in its environment.

    The name is that of the drill; the program makes one of its own, which holds its process id.
    """

    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


class Running:
    """A process of the program."""

    def __init__(self, name: str, role: str, process: asyncio.subprocess.Process, said: Path) -> None:
        self.name, self.role, self.said = name, role, said
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def over(self) -> bool:
        return self._process.returncode is not None

    def owns(self, owner: str) -> bool:
        """Whether a process that calls itself so is this one: host, process id and something random."""
        return owner.rsplit("-", 2)[-2:-1] == [str(self.pid)]

    def send(self, number: signal.Signals) -> None:
        """Any signal, to it alone; nothing where it is over."""
        if not self.over:
            self._process.send_signal(number)

    def kill(self) -> None:
        """As a power cut would."""
        self.send(signal.SIGKILL)

    def wake(self) -> None:
        self.send(signal.SIGCONT)

    async def end(self) -> int:
        """Wait for it; gives the exit code, negative after a signal."""
        return await self._process.wait()

    async def stop(self) -> int:
        """Tell it to stop; gives its exit code, -9 where it had to be killed."""
        self.send(signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP_SECONDS):
                return await self.end()
        except TimeoutError:
            self.kill()
            return await self.end()


class Processes:
    """All that was started, by name, in order. What runs is killed at the end of `async with`."""

    def __init__(
        self, folder: Path, start: Start, environment_of: Mapping[str, str], everything: dict[str, Running]
    ) -> None:
        """`environment_of`: variables whose `{name}` is the name of the process. `everything`: filled here."""
        self.all = everything
        self._folder, self._start, self._environment_of = folder, start, environment_of

    async def start(self, name: str, role: str) -> Running:
        given = {key: value.format(name=name) for key, value in self._environment_of.items()}
        said = self._folder / f"{name}.log"
        with said.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *self._start.command,
                "--role",
                role,
                cwd=ROOT,
                env={**os.environ, **self._start.environment, **given},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.all[name] = Running(name, role, process, said)
        return self.all[name]

    def of(self, role: str) -> list[Running]:
        """Those that run."""
        return [each for each in self.all.values() if each.role == role and not each.over]

    def owner(self, owner: str) -> Running | None:
        """The process that calls itself so."""
        return next((each for each in self.all.values() if each.owns(owner)), None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for each in self.all.values():
            each.kill()
            await each.end()


def program(rest: str, gateway: str, config: Path) -> Sequence[str]:
    """The program itself, pointed at a scripted Discord."""
    return (sys.executable, "-m", "benchmarks.scale.launch", rest, gateway, "--config", str(config))
