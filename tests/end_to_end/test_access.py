"""Who is told what: topics that are for the team only, and files of threads that not everybody can view."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from model.outcomes import OutcomeKind
from services.team.decisions import DecisionLog
from tests.end_to_end.bots import RunningBot
from tests.end_to_end.conftest import PLAIN, Start, llm
from tests.loopback import llm_scenes as scenes
from tests.loopback.discord_server import DiscordServer
from tests.loopback.interactions import Upload
from tests.loopback.llm_answers import offered as offered_tools
from tests.loopback.llm_answers import prompt, wanted
from tests.loopback.llm_server import LLMServer
from tests.loopback.model import Place, User
from tests.loopback.permissions import Permission
from tests.services.team.pairs import added, captured, places_in, store

pytestmark = pytest.mark.real_time

SECRET = "ZEBRA-77"
ASKED = "Which rebate do partners get when they buy many lanterns?"
TAUGHT = f"Partners get a rebate of 37 percent when they buy many lanterns: they enter {SECRET}."
MORE = f"A rebate for partners that buy many lanterns again is {SECRET} too."
FOR_ALL = "Lanterns are cleaned with a dry cloth, many times a year, also by partners."
LOG = "\n".join(
    [f"2026-02-16T00:00:{n:02} INFO  web: request {n} served" for n in range(30)]
    + ["2026-02-16T00:00:30 ERROR db: connection to 10.0.0.7 refused (E-1042)"]
)
UPLOAD: Upload = ("app.log", LOG.encode(), "text/plain")
QUESTION = "what is the first ERROR in app.log?"


@pytest.fixture
def taught(data: Path) -> Path:
    """A team that has taught something about prices, in a topic of two files, and something about lanterns."""
    pairs = [captured(1, ASKED, TAUGHT), captured(2, ASKED, MORE), captured(3, "How are lanterns cleaned?", FOR_ALL)]
    store(data, *pairs)
    log = DecisionLog(places_in(data).decisions)
    for pair, topic in zip(pairs, ("pricing", "pricing-2", "lanterns"), strict=True):
        log.append(added(pair, topic))
    return data


async def said(server: DiscordServer, place: Place, who: User, command: str, **options: str | Upload) -> str:
    """What a command answers, seen by its caller only."""
    one = await server.call(place, who, command, **options)
    await server.until(lambda: one.answered, timeout=20)  # the first text starts the process that reads
    await asyncio.sleep(0.05)
    assert all(piece.ephemeral for piece in one.said)
    return "\n".join(one.texts)


async def offered(start: Start, server: DiscordServer, **sections: dict[str, Any]) -> RunningBot:
    bot = await start(PLAIN, ready=True, **sections)
    await server.until(lambda: server.state.commands)
    return bot


def leaking(server: DiscordServer) -> list[str]:
    return [post.content for post in server.posts if SECRET in post.content or "pricing" in post.content]


async def test_an_internal_topic_answers_the_team_in_ask_and_nobody_anywhere_else(
    start: Start, discord_server: DiscordServer, taught: Path
) -> None:
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    staff = discord_server.add_role("staff")
    kim, lou = discord_server.add_member("kim", staff), discord_server.add_member("lou")
    bot = await offered(
        start,
        discord_server,
        kb={"internal_topics": ["pricing"]},
        discord={"team_role_ids": [staff.id], "team_member_ids": [lou.id], "team_active_seconds": 1},
    )
    assert SECRET not in await said(discord_server, help_, ada, "ask", question=ASKED)
    await bot.until_ended(await discord_server.say(help_, ada, ASKED))
    file = await discord_server.say(help_, ada, f"{ASKED} See the log.", attachments=[UPLOAD])
    await bot.until_ended(file)
    thread = await discord_server.open_thread(await discord_server.say(help_, kim, "Ask me."), kim)
    for who in (kim, lou):
        assert SECRET in await said(discord_server, help_, who, "ask", question=ASKED)
        assert SECRET in await said(discord_server, thread, who, "ask", question=ASKED), "nobody else reads it"
    await bot.until_ended(await discord_server.say(thread, kim, f"{bot.server.bot.mention} {ASKED}"))
    assert not leaking(discord_server)
    assert not any("pricing" in source for outcome in bot.outcomes for source in outcome.sources)
    assert "dry cloth" in await said(discord_server, help_, ada, "ask", question="How are lanterns cleaned?")


async def test_without_the_key_the_same_topic_answers_everybody(
    start: Start, discord_server: DiscordServer, taught: Path
) -> None:
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    bot = await offered(start, discord_server)
    await bot.until_ended(await discord_server.say(help_, ada, ASKED))
    assert leaking(discord_server)
    assert SECRET in await said(discord_server, help_, ada, "ask", question=ASKED)


def curious(*calls: tuple[str, str]) -> scenes.Scene:
    """A model that looks everywhere it may, and repeats all that it was given."""

    async def play(request: Any, body: dict[str, Any]) -> Any:
        if offered_tools(body) and not any(message["role"] == "tool" for message in body["messages"]):
            return await scenes.calling(*calls)(request, body)
        if wanted(body)[0] == "AnswerResult":
            return await scenes.saying(json.dumps({"answer": prompt(body)[-1500:], "citations": []}))(request, body)
        if wanted(body)[0] == "SelectionResult":
            ids = ["team:pricing.txt", "team:pricing-2.txt", "team:lanterns.txt"]
            return await scenes.saying(json.dumps({"selected_source_ids": ids}))(request, body)
        return await scenes.good()(request, body)

    return play


def told(seen: Iterable[Any]) -> list[str]:
    """The prompts of answering that hold the secret, or name its topic. Knowledge work is the operator's own."""
    prompts = [prompt(each.body) for each in seen if "messages" in each.body and "Summary" not in wanted(each.body)[0]]
    return [text for text in prompts if SECRET in text or "team:pricing" in text]


async def test_a_model_is_shown_an_internal_topic_for_the_team_alone(
    start: Start, discord_server: DiscordServer, llm_server: LLMServer, taught: Path
) -> None:
    help_, ada, kim = (
        discord_server.add_channel("help"),
        discord_server.add_member("ada"),
        discord_server.add_member("kim"),
    )
    call = ("answer_from_team_kb", json.dumps({"question": ASKED, "k": 20}))
    llm_server.otherwise = curious(call)
    bot = await offered(
        start,
        discord_server,
        kb={"internal_topics": ["pricing"]},
        ai_response={"llm": llm(llm_server)},
        discord={"team_member_ids": [kim.id], "team_active_seconds": 1},
    )
    for who in (ada, kim):
        await said(discord_server, help_, who, "kb add", text="Clean lanterns with a dry cloth.", title="Lanterns")
    await bot.until_ended(await discord_server.say(help_, ada, ASKED))
    await bot.until_ended(await discord_server.say(help_, ada, f"{ASKED} See it.", attachments=[UPLOAD]))
    assert SECRET not in await said(discord_server, help_, ada, "ask", question=ASKED)
    assert [outcome.result for outcome in bot.outcomes] == [OutcomeKind.REPLIED, OutcomeKind.REPLIED]
    tools = [name for seen in llm_server.seen for name in offered_tools(seen.body)]
    assert "answer_from_team_kb" in tools, "there is a topic for everybody as well"
    assert not told(llm_server.seen)
    assert not leaking(discord_server)
    assert SECRET in await said(discord_server, help_, kim, "ask", question=ASKED)
    shown = [prompt(each.body) for each in llm_server.seen]
    assert any("Topic: pricing" in text and SECRET in text for text in shown), "the tool knows it, too"
    assert told(llm_server.seen)


# Files


async def begin_private(start: Start, server: DiscordServer) -> tuple[RunningBot, Place, User, User]:
    """A private thread in which the bot has answered its only member from a file."""
    help_, ada, bob = server.add_channel("help"), server.add_member("ada"), server.add_member("bob")
    bot = await offered(start, server)
    thread = await server.start_thread(help_, ada, "a private matter", private=True)
    server.state.join(thread, server.bot)
    await server.gateway.flush()
    await server.say(thread, ada, f"{server.bot.mention} {QUESTION}", attachments=[UPLOAD])
    (post,) = await bot.until_posts(1)
    assert "E-1042" in post.content
    return bot, thread, ada, bob


async def test_files_of_a_private_thread_are_for_its_members(start: Start, discord_server: DiscordServer) -> None:
    bot, thread, ada, bob = await begin_private(start, discord_server)
    mod = discord_server.add_member("mod", discord_server.add_role("mods", Permission.MANAGE_THREADS))
    assert "E-1042" in await said(discord_server, thread, ada, "ask", question=QUESTION)
    assert "E-1042" not in await said(discord_server, thread, bob, "ask", question=QUESTION)
    assert "app.log" in await said(discord_server, thread, ada, "evidence list")
    assert "no files of this thread" in await said(discord_server, thread, bob, "evidence list")
    assert "no such file" in await said(discord_server, thread, bob, "evidence delete", filename="app.log")
    assert "app.log" in await said(discord_server, thread, mod, "evidence list"), "who manages threads views them"
    assert "E-1042" not in await said(discord_server, thread, mod, "ask", question=QUESTION)
    assert await bot.stop() == 0
    assert not discord_server.unknown


async def test_while_discord_cannot_say_who_is_a_member_nobody_is(
    start: Start, discord_server: DiscordServer, caplog: pytest.LogCaptureFixture
) -> None:
    _bot, thread, ada, _bob = await begin_private(start, discord_server)
    discord_server.fail_next("GET", "/thread-members/", status=403, times=99)
    assert "E-1042" not in await said(discord_server, thread, ada, "ask", question=QUESTION)
    assert "no files of this thread" in await said(discord_server, thread, ada, "evidence list")
    assert "is not known, so they cannot" in caplog.text


async def test_for_public_threads_nobody_is_looked_up(start: Start, discord_server: DiscordServer) -> None:
    help_, ada, bob = (
        discord_server.add_channel("help"),
        discord_server.add_member("ada"),
        discord_server.add_member("bob"),
    )
    bot = await offered(start, discord_server)
    await discord_server.say(help_, ada, QUESTION, attachments=[UPLOAD])
    (post,) = await bot.until_posts(1)
    assert "E-1042" in await said(discord_server, post.place, bob, "ask", question=QUESTION)
    assert "app.log" in await said(discord_server, post.place, bob, "evidence list")
    assert not discord_server.count("GET", "/thread-members/")
