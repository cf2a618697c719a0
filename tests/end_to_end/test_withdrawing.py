"""What is under way with somebody's words when they opt out, or ask to be forgotten."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from assembly.answering import ModelOptions
from commands.live import LiveOptions
from model.outcomes import Outcome, OutcomeKind
from services.conversations import phrases
from services.storage import DataFolder
from tests.end_to_end.bots import RunningBot
from tests.end_to_end.conftest import llm, settings_of
from tests.end_to_end.test_commands import holding, said, until_offered
from tests.loopback import llm_scenes as scenes
from tests.loopback.discord_server import DiscordServer
from tests.loopback.llm_answers import plausible, wanted
from tests.loopback.llm_server import LLMServer

pytestmark = pytest.mark.real_time

WORD = "zebra"
QUESTION = f"how can I restore a backup of my {WORD} pictures?"
GONE = [phrases("en").removed, phrases("en").nothing_kept, phrases("en").opted_out]


class SlowModel:
    """Answers at once, but for the first request for `schema` with the word after `slow` was set: that waits for `go`.

    Attributes:
        asked: the requests with the word, by what they ask for.
    """

    def __init__(self) -> None:
        self.schema: str | None = None
        self.asked: list[str] = []
        self.reached, self.go = asyncio.Event(), asyncio.Event()

    async def __call__(self, request: web.Request, body: scenes.Body) -> web.StreamResponse:
        schema, _ = wanted(body)
        if WORD in json.dumps(body):
            self.asked.append(schema)
            if schema == self.schema and not self.reached.is_set():
                self.reached.set()
                await self.go.wait()
        return await scenes.saying(json.dumps(plausible(body)))(request, body)


@pytest.fixture
def model(llm_server: LLMServer) -> SlowModel:
    llm_server.otherwise = slow = SlowModel()
    return slow


StartRecorded = Callable[..., Awaitable[RunningBot]]


@pytest.fixture
async def start(
    discord_server: DiscordServer,
    llm_server: LLMServer,
    data: Path,
    hurried_discord: None,
    monkeypatch: pytest.MonkeyPatch,
    model: SlowModel,
) -> AsyncGenerator[StartRecorded]:
    """Start a bot that records what it asks its model."""
    bots: list[RunningBot] = []

    async def started(*, learning: bool = False, **discord: Any) -> RunningBot:
        settings = settings_of(
            data,
            ai_response={"llm": llm(llm_server) | {"timeout_seconds": 30}},
            discord={"message_batch_wait_seconds": 0.1, **discord},
        )
        recorded = DataFolder(data).llm_recordings / "day.jsonl"
        recorded.parent.mkdir()
        bots.append(RunningBot(discord_server, settings, LiveOptions(models=ModelOptions(record=recorded))))
        bots[-1].begin(monkeypatch, learning=learning)
        await bots[-1].ready()
        await until_offered(discord_server)
        return bots[-1]

    yield started
    model.go.set()
    for bot in bots:
        assert await bot.stop() == 0


def described(data: Path) -> str:
    """The topics that the model was asked to describe, as they were recorded."""
    path = DataFolder(data).llm_recordings / "day.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return "\n".join(line for line in lines if json.loads(line)["step"] == "summarise")


async def withdrawn(server: DiscordServer, call: Any) -> None:
    await server.until(lambda: any(text.startswith(begin) for text in call.texts for begin in GONE))


@pytest.mark.parametrize("wish", ["forget", "opt-out"])
async def test_a_private_question_is_given_up(
    start: StartRecorded, discord_server: DiscordServer, data: Path, model: SlowModel, wish: str
) -> None:
    """Pitfall 67."""
    server, model.schema = discord_server, "GatingResult"
    help_, ada = server.add_channel("help"), server.add_member("ada")
    bot = await start()
    asked = await server.call(help_, ada, "ask", question=QUESTION)
    await model.reached.wait()
    await withdrawn(server, await server.call(help_, ada, f"privacy {wish}"))
    model.go.set()
    assert await said(server, asked) == phrases("en").withdrawn
    await bot.until_idle()
    assert model.asked == ["GatingResult"]
    assert holding(data, WORD) == []


@pytest.mark.parametrize("schema", ["ClassificationResult", "SummaryResult"])
async def test_a_conversation_is_filed_without_them(
    start: StartRecorded, discord_server: DiscordServer, data: Path, model: SlowModel, schema: str
) -> None:
    """Pitfall 67."""
    server, model.schema = discord_server, schema
    help_, ada, tess = server.add_channel("help"), server.add_member("ada"), server.add_member("tess")
    bot = await start(learning=True, team_member_ids=[str(tess.id)], team_active_seconds=0.01)
    asked = await server.say(help_, ada, f"does a {WORD} fit into the lantern at night?")
    await server.say(help_, tess, "Only a folded one; use the large lantern for it.", reply_to=asked)
    await model.reached.wait()
    await withdrawn(server, await server.call(help_, ada, "privacy forget"))
    before = len(model.asked)
    model.go.set()
    await server.until(lambda: "folded" in described(data))
    await bot.until_idle()
    assert len(model.asked) == before
    assert holding(data, WORD) == []


async def test_somebody_elses_question_is_answered_without_their_words(
    start: StartRecorded, discord_server: DiscordServer, data: Path, model: SlowModel
) -> None:
    """Pitfall 67."""
    server = discord_server
    help_, ada, bob = server.add_channel("help"), server.add_member("ada"), server.add_member("bob")
    bot = await start()
    told = await server.say(help_, ada, f"my {WORD} pictures are gone since the storm of last night")
    await bot.until_ended(told)
    model.schema, before = "GatingResult", len(model.asked)
    question = f"<@{server.bot.id}> how can I restore a backup of these?"
    asked = await server.say(help_, bob, question, reply_to=told)
    await model.reached.wait()
    await withdrawn(server, await server.call(help_, ada, "privacy forget"))
    model.go.set()
    await bot.until_ended(asked)
    end = bot.end_of(asked)
    assert isinstance(end, Outcome)
    assert end.result is OutcomeKind.REPLIED
    assert model.asked[before:] == ["GatingResult"]
    assert holding(data, WORD) == []


@pytest.mark.parametrize("wish", ["privacy forget", "kb forget"])
async def test_a_runbook_that_is_being_added_is_not_kept(
    start: StartRecorded, discord_server: DiscordServer, data: Path, wish: str
) -> None:
    server = discord_server
    help_, ada = server.add_channel("help"), server.add_member("ada")
    await start()
    server.fail_next("GET", "attachments", delay=2.0)
    file = ("r.md", f"# Restarting\n\n1. Stop the {WORD}.\n".encode(), "text/markdown")
    adding = await server.call(help_, ada, "kb add", file=file)
    await server.until(lambda: any("attachments" in request.path for request in server.downloads))
    await server.until_told(await server.call(help_, ada, wish))
    assert await said(server, adding) == phrases("en").withdrawn
    await server.until_told(listing := await server.call(help_, ada, "kb list"))
    assert listing.texts == [phrases("en").no_runbooks]
    assert holding(data, WORD) == []
