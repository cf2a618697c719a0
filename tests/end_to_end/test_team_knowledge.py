"""What the team teaches a running bot."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from commands.live import LiveOptions
from commands.regen import rebuild
from model.outcomes import OutcomeKind
from tests.end_to_end.bots import RunningBot
from tests.end_to_end.conftest import Start, llm, settings_of
from tests.loopback.discord_server import DiscordServer
from tests.loopback.llm_answers import prompt, wanted
from tests.loopback.llm_scenes import Body, Scene, good, saying, status
from tests.loopback.llm_server import LLMServer
from tests.services.team.pairs import topic_files

pytestmark = pytest.mark.real_time

ASKED = "How do I make the importer skip the raw files of my camera?"
ANSWERED = "Put skip_raw = true into the importer section: raw files of the camera are left out then."
AGAIN = "is there a way to have the importer skip raw camera files?"
TOPIC = "what-the-team-says.txt"


def names_below(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


def knowledge(data: Path) -> Path:
    return data / "team-knowledge"


async def until_described(bot: RunningBot, server: DiscordServer, text: str = "") -> str:
    """Wait until the team index has an entry that says `text`; gives the index."""
    index = knowledge(bot.settings.app.data_dir) / "index-team.txt"
    await server.until(lambda: bot.over or (index.exists() and text in index.read_text()), 8)
    return index.read_text()


@pytest.mark.parametrize("by_model", [True, False])
async def test_what_the_team_answered_once_answers_the_next_who_asks(
    start: Start, discord_server: DiscordServer, llm_server: LLMServer, data: Path, *, by_model: bool
) -> None:
    help_, ada, kim = (
        discord_server.add_channel("help"),
        discord_server.add_member("ada"),
        discord_server.add_member("kim"),
    )
    bob = discord_server.add_member("bob")
    sections: dict[str, Any] = {"ai_response": {"llm": llm(llm_server)}} if by_model else {}
    bot = await start(discord={"team_member_ids": [kim.id], "team_active_seconds": 1}, **sections)
    asked = await discord_server.say(help_, ada, ASKED, ago=60)
    answer = await discord_server.say(help_, kim, ANSWERED, reply_to=asked)
    await bot.until_ended(answer)
    index = await until_described(bot, discord_server, "text" if by_model else "Mentions")
    assert index.startswith("team:")
    posted = len(discord_server.posts)
    await discord_server.say(help_, bob, AGAIN)
    *_, post = await bot.until_posts(posted + 1)
    replied = bot.outcomes[-1]
    assert replied.result is OutcomeKind.REPLIED
    assert [source.partition(":")[0] for source in replied.sources] == ["team"]
    assert ("skip_raw = true" in post.content) != by_model
    assert await bot.stop() == 0
    [topic] = (knowledge(data) / "topics").iterdir()
    assert ANSWERED in topic.read_text()


async def test_what_waits_for_a_model_does_not_hold_up_the_end_and_is_sorted_at_the_next_start(
    start: Start, discord_server: DiscordServer, llm_server: LLMServer, data: Path
) -> None:
    """Pitfalls 7 and 8."""
    llm_server.otherwise = status(503)
    help_, ada, kim = (
        discord_server.add_channel("help"),
        discord_server.add_member("ada"),
        discord_server.add_member("kim"),
    )
    sections: dict[str, Any] = {
        "ai_response": {"llm": llm(llm_server)},
        "discord": {"team_member_ids": [kim.id], "team_active_seconds": 1},
    }
    bot = await start(**sections)
    asked = await discord_server.say(help_, ada, "Thanks for the release!")
    answers = [await discord_server.say(help_, kim, f"{number}: {ANSWERED}", reply_to=asked) for number in range(3)]
    await bot.until_ended(*answers)
    assert await bot.stop() == 0
    assert not (knowledge(data) / "topics").exists()
    llm_server.otherwise = LLMServer().otherwise
    again = await start(**sections)
    assert TOPIC in await until_described(again, discord_server, "text")
    assert await again.stop() == 0


async def test_a_dry_run_captures_nothing(start: Start, discord_server: DiscordServer, data: Path) -> None:
    """Pitfall 50."""
    help_, ada, kim = (
        discord_server.add_channel("help"),
        discord_server.add_member("ada"),
        discord_server.add_member("kim"),
    )
    before = names_below(data)
    bot = await start(LiveOptions(dry_run=True), discord={"team_member_ids": [kim.id]})
    asked = await discord_server.say(help_, ada, ASKED, ago=60)
    answer = await discord_server.say(help_, kim, ANSWERED, reply_to=asked)
    await bot.until_ended(answer)
    assert OutcomeKind.CAPTURED in {outcome.result for outcome in bot.outcomes}
    assert await bot.stop() == 0
    assert names_below(data) == before


OUTDATED = re.compile(r"^Id: (\S+)\n(?:(?!Id: )[^<].*\n)*?Team.*: .*100 requests", re.MULTILINE)
"""In the section of a topic: the id of the conversation that names the old limit."""


def integrating(answer: dict[str, Any]) -> Scene:
    """Answers each integration by `answer`, with the id of the outdated conversation for `OLD`."""

    async def play(request: web.Request, body: Body) -> web.StreamResponse:
        outdated = OUTDATED.search(prompt(body).partition("<<<topic>>>")[2])
        if wanted(body)[0] != "IntegrationResult" or outdated is None:
            return await good()(request, body)
        return await saying(json.dumps(answer).replace("OLD", outdated[1]))(request, body)

    return play


LIMITS = (
    "The limit is 100 requests a minute.",
    "It is 400 requests a minute now, no longer 100.",
)


def is_filed(data: Path, said: str) -> bool:
    """Looked at while topics are written: what is unfinished comes and goes."""
    return any(said in path.read_text() for path in (data / "team-knowledge" / "topics").glob("[!.]*.txt"))


async def learned(
    start: Start, discord_server: DiscordServer, llm_server: LLMServer, data: Path
) -> tuple[dict[str, str], dict[str, str]]:
    """The topics after the team has stated one limit and then another: as the bot filed them, and as rebuilt."""
    help_, kim = discord_server.add_channel("help"), discord_server.add_member("kim")
    team = {"team_member_ids": [kim.id], "team_active_seconds": 1}
    bot = await start(kb={"llm": llm(llm_server)}, discord=team)
    for limit, name in zip(LIMITS, ("ada", "bob"), strict=True):
        asker = discord_server.add_member(name)
        asked = await discord_server.say(help_, asker, "What is the rate limit of the API?", ago=60)
        answer = await discord_server.say(help_, kim, limit, reply_to=asked)
        await bot.until_ended(answer)
        await discord_server.until(lambda said=limit: bot.over or is_filed(data, said), 8)
    assert await bot.stop() == 0
    filed = topic_files(data)
    settings = settings_of(data, kb={"llm": llm(llm_server)})
    report = await rebuild(settings, restart=False)
    assert report.given_up == ""
    return filed, topic_files(data)


async def test_what_is_superseded_in_part_stays_and_says_so_also_after_a_rebuild(
    start: Start, discord_server: DiscordServer, llm_server: LLMServer, data: Path
) -> None:
    """The newer part holds, and whoever reads the older conversation is told."""
    part = {"id": "OLD", "what": "It is no longer 100."}
    llm_server.otherwise = integrating({"skip": False, "remove_ids": [], "superseded_parts": [part]})
    for topics in await learned(start, discord_server, llm_server, data):
        [text] = topics.values()
        older, newer = text.split("--- QA ---\n")[1:]
        assert LIMITS[0] in older
        assert LIMITS[1] in newer
        said_at = re.search(r"^said_at: (.*)$", newer, re.MULTILINE)
        assert said_at is not None
        assert f"\nsuperseded: {said_at[1]} It is no longer 100.\n" in older
        assert "superseded" not in newer


async def test_of_two_limits_the_newer_alone_is_in_force_also_after_a_rebuild(
    start: Start, discord_server: DiscordServer, llm_server: LLMServer, data: Path
) -> None:
    """Pitfall 52: a young library is made of topics with one conversation."""
    llm_server.otherwise = integrating({"skip": False, "remove_ids": ["OLD"]})
    for topics in await learned(start, discord_server, llm_server, data):
        [text] = topics.values()
        assert (LIMITS[0] in text, LIMITS[1] in text) == (False, True)


TAUGHT = (
    (ASKED, ANSWERED, AGAIN, "skip_raw"),
    (
        "Which port does the sync daemon listen on behind a firewall?",
        "Open port 7312 in the firewall: the sync daemon listens on sync_port, and nothing else has to be open.",
        "behind our firewall, which port has to be open for the sync daemon?",
        "7312",
    ),
    (
        "Why do my printed posters come out with a purple tint?",
        "Set the poster profile to coated_paper: the purple tint comes from the profile for plain paper.",
        "my posters are printed with a purple tint, why is that?",
        "coated_paper",
    ),
)


async def test_a_thread_with_three_questions_is_quoted_only_under_the_one_that_it_answers(
    start: Start, discord_server: DiscordServer
) -> None:
    """Pitfall 77: without a model."""
    help_, kim = discord_server.add_channel("help"), discord_server.add_member("kim")
    bot = await start(discord={"team_member_ids": [kim.id], "team_active_seconds": 1})
    start_of = await discord_server.say(help_, kim, "Ask your questions about the release in here.", ago=900)
    thread = await discord_server.open_thread(start_of, kim, "release questions", ago=900)
    for number, (question, answer, _, _) in enumerate(TAUGHT):
        asker, ago = discord_server.add_member(f"asker-{number}"), 600 - 100 * number
        asked = await discord_server.say(thread, asker, question, ago=ago)
        answered = await discord_server.say(thread, kim, answer, reply_to=asked, ago=ago - 60)
        await bot.until_ended(answered)
    for *_, word in TAUGHT:
        await discord_server.until(
            lambda word=word: any(
                word in path.read_text() for path in knowledge(bot.settings.app.data_dir).rglob("topics/*.txt")
            ),
            10,
        )
    for number, (_, _, again, word) in enumerate(TAUGHT):
        posted = len(discord_server.posts)
        await discord_server.say(help_, discord_server.add_member(f"later-{number}"), again)
        *_, post = await bot.until_posts(posted + 1)
        said = [other for *_, other in TAUGHT if other in post.content]
        assert said == [word], post.content
