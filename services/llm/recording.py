"""`--llm-record FILE` and `--llm-replay FILE`: exchanges with a model, recorded and answered from the recording."""

from __future__ import annotations

import asyncio
import difflib
import json
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

import clock
from services.llm.endpoint import Endpoint, Reply, Request
from services.llm.errors import LLMError, UnknownRequest
from services.llm.exchanges import Exchange, kept, read, render, request_hash
from services.storage import files

_MAX_COMPARED = 200
"""Recorded requests of the step among which the nearest is looked for."""
_MAX_SHOWN = 4
"""Differing lines shown of each side."""
_MAX_LINE_CHARS = 100


class RecordingEndpoint:
    """Asks `inner`, and appends each exchange to `path`, failures included, before anybody acts on it.

    On a virtual loop the lines are in the order of the calls, and recording does not change the run; on an ordinary
    loop they are in the order in which the calls ended.

    Raises:
        OSError: on construction, if the file cannot be opened for appending.
    """

    def __init__(self, inner: Endpoint, path: Path) -> None:
        self._inner = inner
        self._turn = asyncio.Lock()
        self._path = path
        with path.open("ab+") as file:
            if file.seek(0, os.SEEK_END):
                file.seek(-1, os.SEEK_END)
                # A line that a crash cut off must not spoil the next one.
                if file.read() != b"\n":
                    file.write(b"\n")

    async def complete(self, request: Request) -> Reply:
        try:
            reply = await self._inner.complete(request)
        except LLMError as error:
            await self._append(render(request, error))
            raise
        await self._append(render(request, reply))
        return reply

    async def aclose(self) -> None:
        await self._inner.aclose()
        async with self._turn:  # wait for a write in progress
            pass

    async def _append(self, line: str) -> None:
        # The path is opened for each line, as forgetting a person replaces the file.
        if isinstance(asyncio.get_running_loop(), clock.VirtualLoop):
            # Not in a thread: other work would overtake, and no heartbeat waits here.
            files.append(self._path, line.encode())
            return
        async with self._turn:
            await clock.run_blocking(files.append, self._path, line.encode())


class ReplayEndpoint:
    """Answers from a file. A request made more than once gets its answers in recorded order, then the last one again.

    A recorded failure is raised again. A request that the file does not hold is an `UnknownRequest`, which shows in one
    line what differs from the nearest recorded request of that step.

    Raises:
        UnreadableExchanges: on construction, if the file is missing or holds no exchange.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._by_hash: defaultdict[str, list[Exchange]] = defaultdict(list)
        self._by_step: defaultdict[str, list[Exchange]] = defaultdict(list)
        self._next: defaultdict[str, int] = defaultdict(int)
        for exchange in read(path):
            self._by_hash[exchange.hash].append(exchange)
            self._by_step[exchange.step].append(exchange)

    async def complete(self, request: Request) -> Reply:
        exchange = self._find(request)

        # Through real time, as the recorded call went, so that both runs do everything in the same order.
        async def answer() -> Reply:
            return exchange.outcome()

        return await clock.real_time(answer)

    async def aclose(self) -> None:
        """Nothing is open."""

    def _find(self, request: Request) -> Exchange:
        key = request_hash(request)
        recorded = self._by_hash.get(key)
        if recorded is None:
            raise UnknownRequest(
                f"{self._path} holds no answer to this request of step {request.step}: {self._differs(request)}"
            )
        turn = self._next[key]
        self._next[key] = turn + 1
        return recorded[min(turn, len(recorded) - 1)]

    def _differs(self, request: Request) -> str:
        candidates = self._by_step.get(request.step, [])[:_MAX_COMPARED]
        if not candidates:
            return f"no exchange of that step is recorded, only of {', '.join(sorted(self._by_step))}"
        mine = list(_lines(kept(request)))

        def likeness(theirs: Sequence[str]) -> float:
            return difflib.SequenceMatcher(None, mine, theirs, autojunk=False).ratio()

        nearest = max((list(_lines(each.request)) for each in candidates), key=likeness)
        changes = list(difflib.ndiff(nearest, mine))
        recorded, asked = ([line[2:] for line in changes if line.startswith(mark)] for mark in ("- ", "+ "))
        return f"the nearest one recorded says {_shown(recorded)}, this one says {_shown(asked)}"


def _lines(request: Mapping[str, object]) -> Iterator[str]:
    """A request as lines of `key: text`, so that a change in a long prompt shows as the line it is in."""
    for key, value in request.items():
        parts = cast("list[object]", value) if isinstance(value, list) else [value]
        for part in parts:
            text = part if isinstance(part, str) else json.dumps(part, sort_keys=True, ensure_ascii=False)
            yield from (f"{key}: {line}" for line in text.replace("\\n", "\n").splitlines())


def _shown(lines: Sequence[str]) -> str:
    if not lines:
        return "nothing there"
    cut = [line if len(line) <= _MAX_LINE_CHARS else f"{line[:_MAX_LINE_CHARS]}…" for line in lines[:_MAX_SHOWN]]
    more = f" and {len(lines) - _MAX_SHOWN} more lines" if len(lines) > _MAX_SHOWN else ""
    return " | ".join(json.dumps(line, ensure_ascii=False) for line in cut) + more
