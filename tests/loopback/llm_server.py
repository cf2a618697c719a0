"""An OpenAI-compatible server on loopback that does as it is told.

`python -m tests.loopback.llm_server --port 0 --mode good` runs one by hand and prints its base URL.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from aiohttp import web

import clock
from tests.loopback import llm_scenes as scenes
from tests.loopback.llm_scenes import Scene


@dataclass(frozen=True)
class Seen:
    headers: Mapping[str, str]
    body: dict[str, Any]


@dataclass
class LLMServer:
    """Plays `script` scene by scene, one for each request, and `otherwise` when it is used up; `models` and
    `embeddings` where those are asked for.

    Works on a virtual loop, too: it serves where time is real.

    Attributes:
        seen: the chats that were asked for; `others`: what else was: embeddings, the list of models.
    """

    otherwise: Scene = field(default_factory=scenes.good)
    models: Scene = field(default_factory=lambda: scenes.raw('{"object": "list", "data": [{"id": "m"}]}'))
    embeddings: Scene = field(default_factory=scenes.vectors)
    port: int = 0
    script: deque[Scene] = field(default_factory=deque[Scene])
    seen: list[Seen] = field(default_factory=list[Seen])
    others: list[Seen] = field(default_factory=list[Seen])
    base_url: str = ""
    _runner: web.AppRunner | None = None

    @property
    def requests(self) -> list[Seen]:
        """All that were made, chats first."""
        return [*self.seen, *self.others]

    def then(self, *scene: Scene) -> None:
        self.script.extend(scene)

    async def __aenter__(self) -> Self:
        await clock.run_in_real_time(self._start)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        runner = self._runner
        if runner is not None:
            await clock.run_in_real_time(runner.cleanup)

    async def _start(self) -> None:
        app = web.Application(client_max_size=100_000_000)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_post("/v1/embeddings", self._embed)
        app.router.add_get("/v1/models", self._list)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        self.base_url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.seen.append(Seen(dict(request.headers), body))
        scene = self.script.popleft() if self.script else self.otherwise
        return await scene(request, body)

    async def _embed(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.others.append(Seen(dict(request.headers), body))
        return await self.embeddings(request, body)

    async def _list(self, request: web.Request) -> web.StreamResponse:
        self.others.append(Seen(dict(request.headers), {}))
        return await self.models(request, {})


MODES: dict[str, Callable[[], Scene]] = {
    "good": scenes.good,
    "hang": scenes.hang,
    "fail": lambda: scenes.status(500),
    "nonsense": lambda: scenes.content("The millstream runs backwards on Tuesdays."),
}


async def serve(mode: str, port: int) -> None:
    async with LLMServer(otherwise=MODES[mode](), port=port) as server:
        sys.stdout.write(f"{server.base_url}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--mode", choices=sorted(MODES), default="good")
    arguments = parser.parse_args()
    try:
        asyncio.run(serve(arguments.mode, arguments.port))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
