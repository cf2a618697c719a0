"""The model of a drill: right answers at once, from an address of its own for each process that asks.

So it knows who asked, and can end that process where somebody is shown the word that ends processes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from benchmarks.scale.traffic import POISON, case_in
from clock.utc import now
from tests.loopback.llm_answers import first_call, plausible, prompt, wanted
from tests.loopback.llm_scenes import calling, saying

ANSWERING = "AnswerResult"
"""The step that writes an answer, by the name of its schema."""
CONVERSATION = "<<<conversation>>>"


@dataclass(frozen=True, slots=True)
class Asked:
    """One call: when, by whom, for which step and case (empty: none is named)."""

    at: float
    who: str
    step: str
    case: str


class Model:
    """Serves from `async with` on. `poisoned` is called with who asked, before anything is answered."""

    def __init__(self, latency: float, poisoned: Callable[[str], object]) -> None:
        self.latency = latency
        self.asked: list[Asked] = []
        self._poisoned = poisoned
        self._origin = ""
        self._runner: web.AppRunner | None = None

    def address(self, who: str) -> str:
        """The base URL for the process of that name."""
        return f"{self._origin}/{who}/v1"

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=100_000_000)
        app.router.add_post("/{who}/v1/chat/completions", self._complete)
        app.router.add_get("/{who}/v1/models", self._list)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self._origin = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        text, who = prompt(body), request.match_info["who"]
        if POISON in text:
            self._poisoned(who)
        step, case = wanted(body)[0], newest_case(text)
        self.asked.append(Asked(now(), who, step, case))
        if self.latency:
            await asyncio.sleep(self.latency)
        call = first_call(body)
        if call is not None:
            return await calling((call[0], json.dumps(call[1])))(request, body)
        return await saying(json.dumps(answer(step, case, body)))(request, body)

    async def _list(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "m"}]})


def newest_case(text: str) -> str:
    """The case that the last message of the conversation in a prompt names; empty: none."""
    return case_in(text.rpartition(CONVERSATION)[2].rpartition("\nUser")[2])


def answer(step: str, case: str, body: dict[str, Any]) -> dict[str, Any]:
    """What a good model says: a case is a question, and no answer is like another."""
    said = plausible(body)
    if step == "GatingResult":
        return said | {"is_question": bool(case), "is_answerable": bool(case)}
    if step == ANSWERING and said["citations"]:
        return said | {"answer": f"About {case}: as {said['citations'][0]} says."}
    return said
