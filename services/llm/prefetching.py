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
    """An `Asker` with prefetching. A question that was asked through `ahead` before, word for word, gets that answer;
    each prefetched answer is given once, so that asking again calls the model again.

    Attributes:
        ahead: the asker for what may turn out not to be needed.
        guessed: calls that were made through `ahead`.
        asked, used: what was asked in earnest; and of that, what `ahead` had asked already.
    """

    def __init__(self, asker: Asker, most: int) -> None:
        """`most`: calls under way at one time."""
        self._asker = asker
        self._room = asyncio.Semaphore(most)
        self._made: dict[_Key, asyncio.Task[BaseModel]] = {}
        self.ahead: Asker = _PrefetchAsker(self)
        self.guessed = self.asked = self.used = 0

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
        if (task := self._made.pop((step, model, prompt), None)) is not None:
            self.used += 1
            try:
                return cast("M", await task)
            except (Unavailable, TimedOut):
                pass
        async with self._room:
            return await self._asker.ask(step, prompt, model, usage, options=options, tools=tools, limits=limits)

    async def guess(self, step: str, prompt: Prompt, model: type[M], usage: Usage) -> M:
        """Ask ahead. Cancelled before anybody asked in earnest, it cancels the call."""
        key = step, model, prompt
        task = self._made.get(key)
        if task is None:
            task = self._made[key] = asyncio.create_task(self._call(step, prompt, model, usage))
            task.add_done_callback(_look_at)
            self._drop_oldest()
        try:
            return cast("M", await asyncio.shield(task))
        except asyncio.CancelledError:
            if self._made.get(key) is task:
                del self._made[key]
                task.cancel()
            raise

    async def _call(self, step: str, prompt: Prompt, model: type[M], usage: Usage) -> BaseModel:
        async with self._room:
            self.guessed += 1
            return await self._asker.ask(step, prompt, model, usage)

    def _drop_oldest(self) -> None:
        for key in [key for key, task in self._made.items() if task.done()][:-KEPT]:
            del self._made[key]


class _PrefetchAsker:
    """The `ahead` of an `PrefetchingAsker`."""

    def __init__(self, whole: PrefetchingAsker) -> None:
        self._whole = whole

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
        return await self._whole.guess(step, prompt, model, usage)


def _look_at(task: asyncio.Task[BaseModel]) -> None:
    """Asyncio reports errors that nobody has looked at; what nobody needs may fail."""
    if not task.cancelled():
        task.exception()
