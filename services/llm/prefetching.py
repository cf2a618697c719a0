"""Prefetch model calls before it is certain that their answers are needed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TypeVar, cast

from pydantic import BaseModel

from services.llm.endpoint import CallOptions, TimedOut, Unavailable
from services.llm.prompting import Prompt
from services.llm.structured import Asker
from services.llm.tools import Tool, ToolLimits
from services.llm.usage import Usage

M = TypeVar("M", bound=BaseModel)

KEPT = 64  # answers that nobody has asked for yet; of more, the oldest are dropped

_Key = tuple[str, type[BaseModel], Prompt]


class PrefetchingAsker:
    """An `Asker` with prefetching. A question that was prefetched before, word for word, gets that answer; each
    prefetched answer is used once, so that asking again calls the model again.

    Attributes:
        prefetcher: the asker for answers that may turn out not to be needed.
        prefetched: the number of calls that were made through `prefetcher`.
        asked, used: the number of questions asked of this object, and of prefetched answers to them.
    """

    def __init__(self, asker: Asker, max_concurrent: int) -> None:
        """`max_concurrent`: calls under way at one time."""
        self._asker = asker
        self._room = asyncio.Semaphore(max_concurrent)
        self._tasks: dict[_Key, asyncio.Task[BaseModel]] = {}
        self.prefetcher: Asker = _PrefetchAsker(self)
        self.prefetched = self.asked = self.used = 0

    async def ask(
        self,
        step: str,
        prompt: Prompt,
        model: type[M],
        usage: Usage,
        *,
        options: CallOptions | None = None,
        tools: Sequence[Tool] = (),
        limits: ToolLimits | None = None,
    ) -> M:
        """See `Asker.ask`. If the prefetched call did not reach the endpoint, it is made again at once."""
        self.asked += 1
        if (task := self._tasks.pop((step, model, prompt), None)) is not None:
            self.used += 1
            try:
                return cast("M", await task)
            except (Unavailable, TimedOut):
                pass
        async with self._room:
            return await self._asker.ask(step, prompt, model, usage, options=options, tools=tools, limits=limits)

    async def prefetch(self, step: str, prompt: Prompt, model: type[M], usage: Usage) -> M:
        """Ask in advance. If this is cancelled before `ask` takes the answer, the call is cancelled too."""
        key = step, model, prompt
        task = self._tasks.get(key)
        if task is None:
            task = self._tasks[key] = asyncio.create_task(self._call(step, prompt, model, usage))
            task.add_done_callback(_retrieve_error)
            self._drop_oldest()
        try:
            return cast("M", await asyncio.shield(task))
        except asyncio.CancelledError:
            if self._tasks.get(key) is task:
                del self._tasks[key]
                task.cancel()
            raise

    async def _call(self, step: str, prompt: Prompt, model: type[M], usage: Usage) -> BaseModel:
        async with self._room:
            self.prefetched += 1
            return await self._asker.ask(step, prompt, model, usage)

    def _drop_oldest(self) -> None:
        for key in [key for key, task in self._tasks.items() if task.done()][:-KEPT]:
            del self._tasks[key]


class _PrefetchAsker:
    """The `prefetcher` of a `PrefetchingAsker`."""

    def __init__(self, owner: PrefetchingAsker) -> None:
        self._owner = owner

    async def ask(
        self,
        step: str,
        prompt: Prompt,
        model: type[M],
        usage: Usage,
        *,
        options: CallOptions | None = None,
        tools: Sequence[Tool] = (),
        limits: ToolLimits | None = None,
    ) -> M:
        assert options is None, "what is asked ahead is asked with the endpoint's own settings"  # noqa: S101 (a bug of ours)
        assert not tools, "what is asked ahead uses no tools"  # noqa: S101 (as above)
        _ = limits
        return await self._owner.prefetch(step, prompt, model, usage)


def _retrieve_error(task: asyncio.Task[BaseModel]) -> None:
    """Retrieve the error of a task, or asyncio would report it: a prefetched call may fail."""
    if not task.cancelled():
        task.exception()
