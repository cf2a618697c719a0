"""The bot as `python app.py` runs it, in this process, against loopback servers."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any

import pytest

import assembly.bot
import assembly.knowledge
import assembly.opening
import commands.live
from assembly.graph_parts import GraphParts, assemble
from commands.live import LiveOptions, run_bot
from model.outcomes import Ignored, Outcome, OutcomeKind, Reason, Result
from services.discord.attachments import CDNAttachments
from settings import Settings
from streams.gateway import Gateway
from tests.loopback.discord_server import DiscordServer
from tests.loopback.model import Message, Place
from tests.loopback.posts import Post

QUIET_SECONDS = 0.15


def no_pause(_failures: int) -> float:
    return 0.0


@asynccontextmanager
async def left_alone(*_: object, **__: object) -> AsyncGenerator[None]:
    yield


class RunningBot:
    """One life of the bot, from `begin` until `stop`."""

    def __init__(self, server: DiscordServer, settings: Settings, options: LiveOptions) -> None:
        self.server = server
        self.settings = settings
        self._options = options
        self.ends: list[Result] = []
        self.parts: GraphParts | None = None
        self.task: asyncio.Task[int] | None = None

    def begin(self, patch: pytest.MonkeyPatch, *, learning: bool = False) -> None:
        """Start, listening in on every end, and without pauses between connections.

        The index stays as the test has written it, unless the bot is `learning`.
        """
        tasks_before = asyncio.all_tasks()

        def listened_in(*args: Any, results: Sequence[Callable[[Result], object]], **kwargs: Any) -> GraphParts:
            self.parts = assemble(*args, results=[self.ends.append, *results], **kwargs)
            return self.parts

        def hurried(*args: Any, **kwargs: Any) -> Gateway:
            return Gateway(*args, pause=no_pause, **kwargs)

        patch.setattr(assembly.opening, "assemble", listened_in)
        patch.setattr(assembly.bot, "CDNAttachments", partial(CDNAttachments, origins={self.server.origin}))
        patch.setattr(assembly.bot, "Gateway", hurried)
        if not learning:
            keep = assembly.knowledge.keep_knowledge_current

            def only_of_servers(settings: Settings, *args: Any, **kwargs: Any) -> AbstractAsyncContextManager[None]:
                return left_alone() if settings is self.settings else keep(settings, *args, **kwargs)

            patch.setattr(assembly.knowledge, "keep_knowledge_current", only_of_servers)
            patch.setattr(commands.live, "keep_search_current", left_alone)
        self.tasks_before = tasks_before
        self.task = asyncio.create_task(run_bot(self.settings, self._options, self.server.token), name="the bot")

    async def ready(self) -> None:
        """Wait until the guild has arrived; raises what ended the bot before."""
        known = self.server.state.channels()[0].id
        await self.server.until(lambda: self.over or (self.parts and self.parts.services.history.knows(known)), 10)
        if self.over:
            self.result()

    @property
    def over(self) -> bool:
        return self.task is not None and self.task.done()

    def result(self) -> int:
        assert self.task is not None
        return self.task.result()

    async def stop(self) -> int:
        """SIGTERM, as systemd and Docker send it; gives the exit code."""
        assert self.task is not None
        if not self.task.done():
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.wait({self.task}, timeout=15)
        return self.task.result()

    # What has come of it

    @property
    def outcomes(self) -> list[Outcome]:
        return [end for end in self.ends if isinstance(end, Outcome)]

    @property
    def results(self) -> list[tuple[OutcomeKind, str | None]]:
        return [(outcome.result, outcome.reason) for outcome in self.outcomes]

    def ignored(self, reason: Reason) -> list[Ignored]:
        return [end for end in self.ends if isinstance(end, Ignored) and end.reason is reason]

    def end_of(self, message: Message) -> Result | None:
        """The last end that a message came to, second deliveries left aside."""
        for end in reversed(self.ends):
            if isinstance(end, Ignored) and end.reason is Reason.DUPLICATE:
                continue
            ids = end.part.message_ids if isinstance(end, Outcome) else getattr(end, "message_ids", ())
            if message.id in ids or message.id == getattr(end, "message_id", None):
                return end
        return None

    async def until_ended(self, *messages: Message, within: float = 8.0) -> None:
        await self.server.until(lambda: self.over or all(self.end_of(each) is not None for each in messages), within)

    async def until_posts(self, count: int, within: float = 8.0) -> list[Post]:
        """Wait until at least so many posts are there, then until nothing is in hand any more."""
        await self.server.until(lambda: self.over or len(self.server.posts) >= count, within)
        await self.until_idle(within)
        return self.server.posts

    async def until_idle(self, within: float = 8.0) -> None:
        """Wait until all that has been heard has its end."""
        await self.server.until(lambda: self.over or not (self.parts and len(self.parts.services.in_flight)), within)


def posts_in(server: DiscordServer, place: Place | int) -> list[Post]:
    place_id = place if isinstance(place, int) else place.id
    return [post for post in server.posts if post.place.id == place_id]


def answers_to(server: DiscordServer, question: Message) -> list[Post]:
    """What the bot posted in the thread on a question, or in reply to it."""
    return [post for post in server.posts if question.id in {post.place.id, post.reference}]
