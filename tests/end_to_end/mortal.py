"""The bot as a process that kills itself, with SIGKILL, at a step that a test has named.

A step is a change of a file in the data folder, or a request to Discord. Starting takes little, as the processes are
forked from one that has imported everything.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import aiohttp
import discord.http
import yarl
from discord.gateway import DiscordWebSocket

import app
from services.storage.files import LEFTOVER_PREFIX

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload([__name__, "commands.dispatch", "commands.live", "services.llm.chat"])

Moment = Literal["before", "within", "after"]
"""`within`: a half of what is appended is written."""
_NUMBERS = re.compile(r"\d{4}-\d\d-\d\d|\d{15,20}")
REQUEST = "_request"
"""The method of aiohttp's client by which all requests are made."""
_TOKENS = re.compile(r"token-of-\w+")


@dataclass(frozen=True, slots=True)
class Step:
    """The n-th time that something is done since the plan was made; `name` without numbers."""

    name: str
    nth: int = 1
    moment: Moment = "before"


class Plan:
    """A file that says where the process dies. Its name is that of a place where the steps are noted as well."""

    def __init__(self, path: Path) -> None:
        self._path, self._number = path, 0

    @property
    def _noted(self) -> Path:
        return self._path.with_suffix(".steps")

    def make(self, step: Step | None, names: dict[int, str]) -> None:
        """Count from now on, and die at the step, if there is one. `names`: what ids are called."""
        self._number += 1
        self._noted.write_text("")
        plan = {"number": self._number, "step": None if step is None else asdict(step)}
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps(plan | {"names": {str(each): name for each, name in names.items()}}))
        new.rename(self._path)

    @property
    def steps(self) -> list[Step]:
        """The steps that were taken since the plan was made."""
        return [Step(**json.loads(line)) for line in self._noted.read_text().splitlines()]


class _Steps:
    """Counts the steps in the process that is to die."""

    def __init__(self, plan: Path) -> None:
        self._plan, self._number, self._counts = plan, 0, Counter[tuple[str, str]]()
        self._noted = os.open(plan.with_suffix(".steps"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._write = os.write

    def take(self, name: str, moment: Moment, dying: Callable[[], object] | None = None) -> None:
        plan = json.loads(self._plan.read_bytes())
        if plan["number"] != self._number:
            self._number = plan["number"]
            self._counts.clear()
        name = _NUMBERS.sub(lambda found: plan["names"].get(found[0], "#"), _TOKENS.sub("token", name))
        self._counts[name, moment] += 1
        step = asdict(Step(name, self._counts[name, moment], moment))
        if step == plan["step"]:
            if dying is not None:
                dying()
            os.kill(os.getpid(), signal.SIGKILL)
        self._write(self._noted, json.dumps(step).encode() + b"\n")


def _watch_requests(steps: _Steps) -> None:
    request: Callable[..., Awaitable[object]] = getattr(aiohttp.ClientSession, REQUEST)

    async def watched(self: Any, method: str, url: Any, **options: Any) -> Any:
        name = f"{method} {yarl.URL(url).path.removeprefix('/api/v10')}"
        steps.take(name, "before")
        response = await request(self, method, url, **options)
        steps.take(name, "after")
        return response

    setattr(aiohttp.ClientSession, REQUEST, watched)


def _watch_files(steps: _Steps, folder: Path) -> None:
    def name_of(path: Path) -> str | None:
        inside = path.is_relative_to(folder) and not path.name.startswith(LEFTOVER_PREFIX)
        return str(path.relative_to(folder)) if inside else None

    def watch(call: str, verb: str, path_of: Callable[..., Path]) -> None:
        real = getattr(os, call)

        def watched(*args: Any, **options: Any) -> Any:
            name = name_of(Path(path_of(*args)))
            if name is None:
                return real(*args, **options)
            steps.take(f"{verb} {name}", "before")
            if call == "write":
                steps.take(f"{verb} {name}", "within", lambda: real(args[0], args[1][: len(args[1]) // 2]))
            result = real(*args, **options)
            steps.take(f"{verb} {name}", "after")
            return result

        setattr(os, call, watched)

    watch("write", "append", _path_behind)
    watch("rename", "replace", _second)
    watch("unlink", "remove", _first)


def _path_behind(descriptor: int, _data: object) -> Path:
    return Path(f"/proc/self/fd/{descriptor}").readlink()


def _second(_source: object, target: Path) -> Path:
    return target


def _first(path: Path) -> Path:
    return path


def no_fsync(_descriptor: object) -> None:
    pass


def _live(base: str, gateway: str, token: str, config: Path, folder: Path, plan: Path, said: Path) -> None:
    output = os.open(said, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ["APP__DISCORD__TOKEN"] = token
    discord.http.Route.BASE = base
    DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(gateway)
    os.fsync = no_fsync  # what was written outlives the process without it
    steps = _Steps(plan)
    _watch_requests(steps)
    _watch_files(steps, folder)
    sys.exit(app.main(["--config", str(config)]))


class MortalProcess:
    """One life of the bot. `said`: the file to which its output is added."""

    def __init__(
        self, base: str, gateway: str, token: str, *, config: Path, folder: Path, plan: Path, said: Path
    ) -> None:
        self._process = _FORKS.Process(target=_live, args=(base, gateway, token, config, folder, plan, said))
        self._process.start()

    @property
    def is_over(self) -> bool:
        return not self._process.is_alive()

    @property
    def code(self) -> int | None:
        """The exit code; minus the number of the signal that has ended it."""
        return self._process.exitcode

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()
        self._process.join()
