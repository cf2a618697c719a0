"""kill -9 at each instant of posting: after the next start there is exactly one answer."""

from __future__ import annotations

import fcntl
import json
import math
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from services.storage.data_folder import DataFolder
from tests.end_to_end.bots import answers_to
from tests.end_to_end.conftest import Launch, llm
from tests.end_to_end.processes import STARTING, Process, write_config
from tests.end_to_end.scenes import answering
from tests.loopback.discord_server import DiscordServer
from tests.loopback.llm_server import LLMServer
from tests.loopback.model import Channel, Message, User
from tests.loopback.posts import Post

LOCKS = Path("/proc/locks")
"""Who waits for whose lock."""

pytestmark = [pytest.mark.real_time, pytest.mark.skipif(not LOCKS.exists(), reason="the system does not tell")]

POST = "/messages$"


QUESTIONS = ("how can I restore a backup?", "how do I turn off face recognition?")
"""Nobody is told the same twice in one life of the bot."""


async def ask(server: DiscordServer, channel: Channel, asker: User, number: int = 0) -> Message:
    return await server.say(channel, asker, QUESTIONS[number % len(QUESTIONS)])


def has_outcome(folder: DataFolder, question: Message) -> bool:
    """Whether the bot has noted down that it needs to look at a message no more."""
    mark = json.loads(folder.watermarks.read_bytes()).get(str(question.place.id), {"below": 0, "done": []})
    return int(mark["below"]) >= question.id or str(question.id) in mark["done"]


@contextmanager
def kept_from_noting(path: Path) -> Generator[None]:
    """Whoever appends to the file has to wait; it can be read."""
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def waits_for_a_lock(process: Process) -> bool:
    waiting = [line.split() for line in LOCKS.read_text().splitlines() if "->" in line]
    return any(str(process.pid) in fields for fields in waiting)


class Scene:
    """Ada, who has a thread already, and somebody new ask at the same time; then the bot is killed."""

    def __init__(self, server: DiscordServer, folder: DataFolder, channels: tuple[Channel, Channel]) -> None:
        self.server, self.folder = server, folder
        self._help, self._other = channels
        self.ada = server.add_member("ada")
        self.asked: list[Message] = []
        self._rounds = 0

    async def opens(self) -> Post:
        """Ada gets a thread, which is taken note of."""
        first = await ask(self.server, self._help, self.ada)
        await self.server.until(lambda: has_outcome(self.folder, first), STARTING)
        (opened,) = self.server.posts
        return opened

    async def both_ask(self, newcomer: str) -> None:
        self._rounds += 1
        self.asked = [
            await ask(self.server, self._help, self.ada, self._rounds),
            await ask(self.server, self._other, self.server.add_member(newcomer)),
        ]

    async def all_ended(self) -> None:
        await self.server.until(lambda: all(has_outcome(self.folder, each) for each in self.asked), STARTING)


@pytest.mark.slow
async def test_killed_at_any_instant_of_posting_each_question_is_answered_once(
    launch: Launch, discord_server: DiscordServer, data: Path
) -> None:
    """Pitfalls 8 and 25: in a thread of its own, and in one that is used again."""
    channels = (discord_server.add_channel("help"), discord_server.add_channel("other"))
    folder, config = DataFolder(data), write_config(data)
    scene = Scene(discord_server, folder, channels)

    async def begin() -> Process:
        # Long after: Discord does not know the nonces any more.
        discord_server.state.nonces.clear()
        sessions = discord_server.count("GET", "/users/@me$")
        process = await launch(config)
        await discord_server.until(lambda: discord_server.count("GET", "/users/@me$") > sessions, STARTING)
        await discord_server.until(folder.watermarks.exists, STARTING)
        return process

    # Before the post arrives.
    bot = await begin()
    thread = (await scene.opens()).place
    discord_server.fail_next("POST", POST, delay=math.inf, times=2)
    tried = discord_server.count("POST", POST)
    await scene.both_ask("bob")
    await discord_server.until(lambda: discord_server.count("POST", POST) == tried + 2, STARTING)
    await bot.kill()
    assert len(discord_server.posts) == 1
    bot = await begin()
    await scene.all_ended()
    assert len(discord_server.posts) == 3

    # Between Discord taking the post and the bot hearing of it.
    discord_server.fail_next("POST", POST, delay=math.inf, times=2, after_effect=True)
    tried = discord_server.count("POST", POST)
    await scene.both_ask("cleo")
    await discord_server.until(lambda: len(discord_server.posts) == 5, STARTING)
    await bot.kill()
    bot = await begin()
    await scene.all_ended()
    assert discord_server.count("POST", POST) == tried + 2

    # After that, and before the bot has noted it down.
    tried = discord_server.count("POST", POST)
    with kept_from_noting(folder.posts):
        await scene.both_ask("dora")
        await discord_server.until(lambda: len(discord_server.posts) == 7 and waits_for_a_lock(bot), STARTING)
        await bot.kill()
    bot = await begin()
    await scene.all_ended()
    assert discord_server.count("POST", POST) == tried + 2
    bot.terminate()
    code, said = await bot.end(STARTING)
    assert code == 0, said
    assert [post.place for post in discord_server.posts].count(thread) == 4
    assert all(len(answers_to(discord_server, each)) == 1 for each in scene.asked[1:])


def drafts(server: LLMServer) -> int:
    """How many answers the model was asked for."""
    return sum("AnswerResult" in json.dumps(each.body.get("tools")) for each in server.seen)


@pytest.mark.slow
async def test_killed_between_two_pieces_of_an_answer_the_next_start_posts_the_rest(
    launch: Launch, discord_server: DiscordServer, llm_server: LLMServer, data: Path
) -> None:
    """Pitfall 75: no piece is missing and none is there twice, whether Discord took the one that was cut off or not."""
    pieces = [f"{letter} " + "word " * 380 + "end." for letter in "ABC"]
    llm_server.otherwise = answering(AnswerResult={"answer": "\n\n".join(pieces)})
    config = write_config(data, ai_response={"llm": llm(llm_server), "max_answer_chars": 9000})
    help_, folder = discord_server.add_channel("help"), DataFolder(data)
    bot = await launch(config)
    await discord_server.until(folder.watermarks.exists, STARTING)
    for name, taken in (("ada", True), ("bob", False)):
        sent, posted = discord_server.count("POST", POST), len(discord_server.posts)
        discord_server.fail_next("POST", POST)
        discord_server.fail_next("POST", POST, delay=math.inf, after_effect=taken)
        question = await discord_server.say(help_, discord_server.add_member(name), QUESTIONS[0])
        await discord_server.until(
            lambda sent=sent, want=posted + 1 + taken: (
                discord_server.count("POST", POST) == sent + 2 and len(discord_server.posts) == want
            ),
            STARTING,
        )
        await bot.kill()
        discord_server.state.nonces.clear()
        drafted = drafts(llm_server)
        bot = await launch(config)
        await discord_server.until(lambda question=question: has_outcome(folder, question), STARTING)
        await discord_server.until(lambda: not list(folder.outbox.glob("*.json")), STARTING)
        answers = answers_to(discord_server, question)
        assert [post.content.strip() for post in answers] == pieces
        assert drafts(llm_server) == drafted
    bot.terminate()
    code, said = await bot.end(STARTING)
    assert code == 0, said
    assert "replied after" in said
