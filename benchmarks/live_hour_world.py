"""The bot as a process, what is around it, and what people say in the hour."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from random import Random
from typing import Any, BinaryIO

from benchmarks.live_hour_judge import Asked, Judged, Posted, judge
from reporting.reading import read_newest
from services.storage import DataFolder
from services.team.archive_files import pairs_in
from tests.end_to_end.processes import Process, write_config
from tests.loopback.discord_server import DiscordServer
from tests.loopback.llm_server import LLMServer
from tests.loopback.model import Message, Thread

CHANNELS = 6
STARTING, STOPPING = 60.0, 60.0
BETWEEN_SECONDS = 2.0, 4.0
"""From a question to the next."""
LATER_SECONDS = 0.3, 15.0
"""From a question to what becomes of it."""
ANSWERED_WITHIN = 90.0
"""So long a follow-up waits for the first answer; without one it is not said."""
PATIENCE_SECONDS = 240.0
"""Longer than any answer, and any pause before something is tried again."""
QUESTION = "how can I restore a backup?"
LOG = "".join(f"2026-02-16T00:00:{n:02} INFO web: request {n} served\n" for n in range(50)).encode()
ALL = 1_000_000
FATES: Mapping[str, float] = {
    "answered": 0.71,
    "taught": 0.1,
    "deleted": 0.04,
    "edited": 0.04,
    "with a file": 0.03,
    "followed": 0.08,
}
"""What becomes of a question, and how often: the team answers it as well, it is deleted or edited, has a file attached,
or its asker asks another one in the thread.
"""


class Hour:
    """The bot, what is around it, and what people say.

    Attributes:
        calm: what the model does while it is well.
        config: the bot's configuration; flags lie beside it.
        kills: when the process was killed, in seconds since 1970.
        wrong_ends: of the process, in words: it was stopped and did not end well, or ended by itself.
        taught: ids of what the team answered.
    """

    def __init__(self, folder: Path, discord: DiscordServer, model: LLMServer, dice: Random) -> None:
        self.discord, self.model, self.calm, self._dice = discord, model, model.otherwise, dice
        self.data = folder / "data"
        self.kills = list[float]()
        self.wrong_ends = list[str]()
        self.questions = list[Asked]()
        self.taught = list[int]()
        self._log_path = folder / "bot.log"
        self._log: BinaryIO = self._log_path.open("wb")
        self._channels = [discord.add_channel(f"help-{n}") for n in range(CHANNELS)]
        self._fates: Mapping[str, Callable[[Message, Asked, float], Coroutine[Any, Any, None]]] = {
            "taught": self._teach,
            "deleted": self._delete,
            "edited": self._edit,
            "followed": self._follow,
        }
        self._team = [discord.add_member(name) for name in ("kim", "lee")]
        self._bot: Process | None = None
        self._reading: asyncio.Task[None] | None = None
        llm = {"base_url": model.base_url, "api_key": "none", "model": "m", "timeout_seconds": 20, "max_retries": 1}
        self.config = write_config(
            self.data,
            discord={
                "message_batch_wait_seconds": 1,
                "team_member_ids": [each.id for each in self._team],
                "team_active_seconds": 5,
            },
            ai_response={"llm": llm},
            kb={"settle_minutes": 0},
        )

    # The bot

    @property
    def pid(self) -> int:
        assert self._bot is not None
        return self._bot.pid

    async def start(self) -> None:
        before = self.discord.gateway.identified
        self._bot = await Process.start(self.discord, self.config, launcher="hour_launcher")
        self._reading = asyncio.create_task(self._keep_log(self._bot))
        await self.discord.until(lambda: self.discord.gateway.identified > before, STARTING)

    async def _keep_log(self, bot: Process) -> None:
        while line := await bot.stderr.read(65_536):
            self._log.write(line)
            self._log.flush()

    async def stop(self) -> None:
        assert self._bot is not None
        if not self._bot.over:
            self._bot.terminate()
        code = await self._bot.wait(STOPPING)
        if code:
            self.wrong_ends.append(f"exit code {code}")

    async def kill(self) -> None:
        assert self._bot is not None
        if self._bot.over:
            self.wrong_ends.append("ended by itself")
            return
        os.kill(self._bot.pid, signal.SIGKILL)
        await self._bot.wait(STOPPING)
        self.kills.append(time.time())

    async def end(self) -> None:
        """Leave nothing running, whatever has happened."""
        if self._bot is not None and not self._bot.over:
            await self.kill()
        if self._reading is not None:
            await self._reading
        self._log.close()

    @property
    def log_lines(self) -> list[str]:
        return self._log_path.read_text(errors="replace").splitlines()

    # The people

    async def talk(self, seconds: float) -> None:
        """A question every few seconds, each by somebody new, and what becomes of it."""
        end, fates = time.monotonic() + seconds, list(FATES)
        async with asyncio.TaskGroup() as group:
            while time.monotonic() < end:
                fate = self._dice.choices(fates, [FATES[each] for each in fates])[0]
                later = self._dice.uniform(*LATER_SECONDS)
                said, asked = await self._ask(fate)
                then = self._fates.get(fate)
                if then is not None:
                    group.create_task(then(said, asked, later))
                await asyncio.sleep(self._dice.uniform(*BETWEEN_SECONDS))

    async def _ask(self, fate: str) -> tuple[Message, Asked]:
        number = len(self.questions)
        case = None if fate == "taught" else number
        # What is taught is shown to the model later on, so it must not name a case.
        text = f"{'matter' if case is None else 'case'}-{number}: {QUESTION}"
        files = [("web.log", LOG, "text/plain")] if fate == "with a file" else ()
        place, asker = self._dice.choice(self._channels), self.discord.add_member(f"asker-{number}")
        asked = Asked(0, place.id, 0, case)
        self.questions.append(asked)
        said = await self.discord.say(place, asker, text, attachments=files)
        asked.id = asked.root = said.id
        return said, asked

    async def _teach(self, said: Message, _: Asked, later: float) -> None:
        await asyncio.sleep(later)
        text = f"For matter {said.id}: run lf backup restore with the file of that day, then start the server again."
        self.taught.append((await self.discord.say(said.place, self._dice.choice(self._team), text, reply_to=said)).id)

    async def _delete(self, said: Message, asked: Asked, later: float) -> None:
        await asyncio.sleep(later)
        asked.deleted = True
        await self.discord.delete(said)

    async def _edit(self, said: Message, _: Asked, later: float) -> None:
        await asyncio.sleep(later)
        await self.discord.edit(said, f"{said.content} I use Linux.")

    async def _follow(self, said: Message, asked: Asked, later: float) -> None:
        """Another question in the thread of the answer, if there is one in time."""
        end = time.monotonic() + ANSWERED_WITHIN
        while not any(post.place.id == said.id for post in self.discord.posts):
            if time.monotonic() > end:
                return
            await asyncio.sleep(1)
        await asyncio.sleep(later)
        thread = self.discord.state.places[said.id]
        assert isinstance(thread, Thread)
        next_ = Asked(0, thread.id, asked.root, len(self.questions))
        self.questions.append(next_)
        next_.id = (await self.discord.say(thread, said.author, f"case-{next_.case}: and {QUESTION}")).id

    # What has come of it

    def judged(self) -> Judged:
        posts = [Posted(post.place.id, post.content, post.reference) for post in self.discord.posts]
        pairs = pairs_in(self.data / "team-knowledge" / "raw")
        archived = [message_id for pair in pairs for message_id in pair.message_ids]
        outcomes = read_newest(DataFolder(self.data).outcomes, ALL)
        return judge(self.questions, self.taught, posts, outcomes, archived, self.kills)

    async def until_settled(self) -> float:
        """Wait until nothing is missing, or for as long as something might still come; gives the seconds."""
        began = time.monotonic()
        while (seconds := time.monotonic() - began) < PATIENCE_SECONDS:
            judged = self.judged()
            if not judged.lost and not judged.captures_lost:
                break
            await asyncio.sleep(2)
        return seconds
