"""A scripted Discord in a process of its own: says what is planned, and keeps what was said and posted.

`python -m benchmarks.scale.discord PLAN FOLDER CHANNELS`. The first line on stdout says where it is and who is of the
team. Then one command a line on stdin, and one line of JSON on stdout for each that is done:

    play              says the plan, in its time; takes other commands meanwhile
    flood             says it as fast as it goes
    ask CHANNEL TEXT  somebody asks that in a channel
    report            writes `sent.jsonl` and `posts.jsonl` into FOLDER; `recording.jsonl` is written all the time
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from benchmarks.scale.traffic import TEAM_SEATS, Saying, case_in, read_plan
from clock.utc import now
from services.discord.dispatches import Dispatch, render_line
from tests.loopback import payloads
from tests.loopback.discord_server import DiscordServer
from tests.loopback.listener import API
from tests.loopback.model import Message, Place, Thread, User
from tests.loopback.payloads import Payload
from tests.loopback.sessions import PRIVILEGED, Intent, Session, needed

RECORDING = "recording.jsonl"
THREAD_SECONDS = 20.0
"""How long what is to be said in a thread waits for the bot to answer there."""


class Recorder(Session):
    """A session like that of a bot, which only writes down what it is told, in the format of recordings."""

    def __init__(self, server: DiscordServer, out: TextIO) -> None:
        super().__init__("recorder", ~PRIVILEGED | Intent.MESSAGE_CONTENT, server.bot)
        self._out = out
        self.tell("READY", {"v": 10, "user": payloads.user(server.bot)})
        self.tell("GUILD_CREATE", payloads.guild(server.guild, server.state.channels(), [], server.bot))

    def tell(self, name: str, payload: Payload, *, always: bool = False) -> None:
        if needed(name) in self.intents:
            self._out.write(render_line(Dispatch(now(), name, payload)))


class World:
    """A guild with channels, a team, and people as they turn up."""

    def __init__(self, server: DiscordServer, channels: int, folder: Path) -> None:
        self.server, self._folder = server, folder
        self.channels = [server.add_channel(f"help-{number}") for number in range(channels)]
        self.team = [server.add_member(f"team-{seat}") for seat in range(TEAM_SEATS)]
        self.sent: list[dict[str, Any]] = []
        self._people = {member.name: member for member in self.team}
        self._said: dict[int, Message] = {}
        self._held: list[tuple[float, Saying]] = []

    async def play(self, sayings: Sequence[Saying]) -> None:
        began = now()
        for saying in sayings:
            await asyncio.sleep(max(0.0, began + saying.at - now()))
            if saying.in_thread:
                self._held.append((now() + THREAD_SECONDS, saying))
            else:
                await self._say(saying, self.channels[saying.channel])
            await self._say_held()
        while self._held:
            await asyncio.sleep(0.1)
            await self._say_held()

    async def flood(self, sayings: Sequence[Saying]) -> None:
        for saying in sayings:
            await self._say(saying, self.channels[saying.channel])

    async def _say_held(self) -> None:
        """What is for threads, where the bot has answered by now."""
        held, self._held = self._held, []
        for until, saying in held:
            assert saying.about is not None
            thread = self.server.state.places.get(self._said[saying.about].id)
            if isinstance(thread, Thread) and thread.message_count > 0:
                await self._say(saying, thread)
            elif now() < until:
                self._held.append((until, saying))

    async def _say(self, saying: Saying, place: Place) -> None:
        reply_to = None if saying.about is None or saying.in_thread else self._said[saying.about]
        file = [("import.log", saying.file.encode(), "text/plain")] if saying.file else ()
        text = self._asked(saying.number, saying.text) if saying.kind == "question" else saying.text
        author = self._person(saying.author)
        message = await self.server.say(place, author, text, reply_to=reply_to, ping=False, attachments=file)
        for attached in message.files:
            (self._folder / str(attached.id)).write_bytes(attached.content)
        self._said[saying.number] = message
        self._note(message, saying.kind)

    async def ask(self, channel: int, text: str) -> int:
        message = await self.server.say(
            self.channels[channel], self._person("somebody"), self._asked(len(self.sent) + 1_000_000, text)
        )
        self._note(message, "asked")
        return message.id

    def _asked(self, number: int, text: str) -> str:
        """With a number of its own, so that each answer differs from every other."""
        return f"{self.server.bot.mention} case-{number}: {text}"

    def _note(self, message: Message, kind: str) -> None:
        about = {"id": message.id, "place": message.place.id, "author": message.author.id, "kind": kind}
        self.sent.append({**about, "at": message.at, "case": case_in(message.content)})

    def _person(self, name: str) -> User:
        if name not in self._people:
            self._people[name] = self.server.add_member(name)
        return self._people[name]

    def posts(self) -> Iterator[dict[str, Any]]:
        """Every message of the bot: a request that is repeated with its nonce is answered with the first."""
        for post in self.server.posts:
            yield {"place": post.place.id, "at": post.at, "nonce": post.nonce, "content": post.content}


async def serve(plan: Path, folder: Path, channels: int) -> None:
    sayings = read_plan(plan)
    attachments = folder / f"{RECORDING}.attachments"
    attachments.mkdir()
    with (folder / RECORDING).open("w", encoding="utf-8") as recording:
        async with DiscordServer() as server:
            world = World(server, channels, attachments)
            recorder = Recorder(server, recording)
            server.gateway.sessions[recorder.id] = recorder
            reply(
                rest=server.origin + API,
                gateway=server.gateway.url,
                token=server.token,
                bot=server.bot.id,
                team=[member.id for member in world.team],
                channels=[channel.id for channel in world.channels],
            )
            reader, playing = await commands(), set[asyncio.Task[None]]()
            while line := (await reader.readline()).decode().split(maxsplit=2):
                match line:
                    case ["play"]:
                        playing.add(asyncio.create_task(played(world, sayings)))
                    case ["flood"]:
                        await world.flood(sayings)
                        reply(flooded=len(world.sent))
                    case ["ask", channel, text]:
                        reply(asked=await world.ask(int(channel), text))
                    case _:
                        recording.flush()
                        write_lines(folder / "sent.jsonl", world.sent)
                        write_lines(folder / "posts.jsonl", world.posts())
                        reply(reported=[f"{each.method} {each.path}" for each in server.unknown])


async def played(world: World, sayings: Sequence[Saying]) -> None:
    await world.play(sayings)
    reply(played=len(world.sent))


def reply(**fields: object) -> None:
    print(json.dumps(fields), flush=True)


def write_lines(path: Path, rows: Sequence[dict[str, Any]] | Iterator[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


async def commands() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])))
