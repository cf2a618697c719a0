"""The bot in two servers, of which each has documents and a team of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from model.outcomes import Outcome
from services.team.decisions import DecisionLog
from tests.end_to_end.bots import RunningBot
from tests.end_to_end.conftest import Start
from tests.loopback.discord_server import DiscordServer
from tests.services.team.pairs import added, captured, places_in, store, stored

pytestmark = pytest.mark.real_time

QUESTION = "how do I reset a forgotten password?"
DOCUMENT = "# Passwords\n\n## Reset a forgotten password\n\nTo reset a forgotten password, {}.\n"


def write_documents(data: Path, guild_id: int, does: str) -> Path:
    """Into the folder of a server; gives where its index will be."""
    folder = data / "guilds" / str(guild_id) / "knowledge-base"
    (folder / "sources").mkdir(parents=True)
    (folder / "sources" / "passwords.md").write_text(DOCUMENT.format(does))
    return folder / "index.txt"


async def test_a_server_is_answered_from_its_own_documents_and_teaches_itself(
    start: Start, discord_server: DiscordServer, data: Path
) -> None:
    help_, ada, tess = (
        discord_server.add_channel("help"),
        discord_server.add_member("ada"),
        discord_server.add_member("tess"),
    )
    guild_id = discord_server.guild.id
    index = write_documents(data, guild_id, "ring the brass bell twice")
    bot = await start(guilds={str(guild_id): {"discord": {"team_member_ids": [tess.id]}}})
    await discord_server.until(index.exists)
    await discord_server.say(help_, ada, QUESTION)
    (post,) = await bot.until_posts(1)
    assert "brass bell" in post.content
    await discord_server.say(help_, ada, "how can I restore a backup?")
    _, shared = await bot.until_posts(2)
    assert "lf backup restore" in shared.content
    asked = await discord_server.say(help_, discord_server.add_member("bo"), "does it run on a toaster?")
    told = await discord_server.say(help_, tess, "It does, from version nine on.", reply_to=asked)
    await bot.until_ended(told)
    own = data / "guilds" / str(guild_id) / "team-knowledge"
    await discord_server.until((own / "decisions.jsonl").exists)
    assert "version nine" in "".join(path.read_text() for path in (own / "raw").glob("*.txt"))
    assert not list((data / "team-knowledge" / "raw").glob("*.txt"))
    said = await discord_server.answer_to(help_, ada, "ask", question=QUESTION)
    assert "brass bell" in said.content
    assert await bot.stop() == 0


def sources(bot: RunningBot) -> set[tuple[int | None, str]]:
    return {(end.part.guild_id, source) for end in bot.ends if isinstance(end, Outcome) for source in end.sources}


@pytest.mark.parametrize("own_team", [True, False])
@pytest.mark.parametrize("own", [True, False])
async def test_internal_topics_are_for_the_team_that_has_taught_them(
    start: Start, discord_server: DiscordServer, data: Path, own: bool, own_team: bool
) -> None:
    """Those of a server are for its team, and those that all servers share for the team of all servers."""
    asked, secret = "Which rebate do partners get when they buy many lanterns?", "ZEBRA-77"
    guild_id, help_ = discord_server.guild.id, discord_server.add_channel("help")
    ada, kim, lou = (discord_server.add_member(name) for name in ("ada", "kim", "lou"))
    folder = data / "guilds" / str(guild_id) if own else data
    pair = captured(1, asked, f"Partners get a rebate when they buy many lanterns: they enter {secret}.")
    store(folder, pair)
    DecisionLog(places_in(folder).decisions).append(added(pair, "pricing"))
    internal = {"internal_topics": ["pricing"]}
    team = {"team_member_ids": [lou.id]} if own_team else {}
    bot = await start(
        discord={"team_member_ids": [kim.id], "team_active_seconds": 1},
        guilds={str(guild_id): {"discord": team, "kb": internal if own else {}}},
        kb={} if own else internal,
    )
    await discord_server.until(lambda: discord_server.state.commands)
    told = list[str]()
    for who in (ada, kim, lou):
        answer = await discord_server.answer_to(help_, who, "ask", question=asked)
        told += [who.name] if secret in answer.content else []
    assert told == (["kim"] if not own_team else ["lou"] if own else [])
    await bot.until_ended(await discord_server.say(help_, ada, asked))
    assert not any(secret in post.content for post in discord_server.posts)
    assert await bot.stop() == 0


@pytest.mark.parametrize("own", [True, False])
async def test_what_the_team_says_against_a_quote_is_noted_in_the_library_that_it_is_from(
    start: Start, discord_server: DiscordServer, data: Path, own: bool
) -> None:
    """Also after a restart, and where the quote has no link, as of what was taught in a form."""
    asked, taught = "How do I repair the lantern service after a crash?", "Run `lantern wipe --everything` once."
    guild_id, help_ = discord_server.guild.id, discord_server.add_channel("help")
    ada, bo, kim = (discord_server.add_member(name) for name in ("ada", "bo", "kim"))
    folders = {True: data / "guilds" / str(guild_id), False: data}
    pair = replace(captured(1, asked, taught), conversation_id="taught_1001")
    store(folders[own], pair)
    DecisionLog(places_in(folders[own]).decisions).append(added(pair, "repair"))
    settings: dict[str, Any] = {
        "discord": {"team_member_ids": [kim.id], "team_active_seconds": 1},
        "guilds": {str(guild_id): {"limits": {"answers_per_day": 200}}},
    }
    bot = await start(**settings)
    await discord_server.until(lambda: discord_server.state.commands)
    await discord_server.say(help_, ada, asked)
    (post,) = await bot.until_posts(1)
    assert "wipe --everything" in post.content
    assert "https://" not in post.content
    assert await bot.stop() == 0
    bot = await start(**settings)
    said = "This is wrong, it deletes all data!"
    await bot.until_ended(await discord_server.say(post.place, kim, said, reply_to=post.message))
    topics = places_in(folders[own]).topics
    await discord_server.until(lambda: any("(doubted)" in each.read_text() for each in topics.iterdir()))
    doubted = {is_own: [each.doubted_ids for each in stored(folder)] for is_own, folder in folders.items()}
    assert (pair.message_ids[1],) in doubted[own]
    assert not any(doubted[not own])
    await bot.until_ended(await discord_server.say(help_, bo, asked))
    assert len([each for each in discord_server.posts if "wipe --everything" in each.content]) == 1
    assert await bot.stop() == 0


async def test_who_forgets_themselves_is_forgotten_in_a_server_s_own_archive(
    start: Start, discord_server: DiscordServer, data: Path
) -> None:
    """Pitfall 49."""
    help_, ada, tess = (
        discord_server.add_channel("help"),
        discord_server.add_member("ada"),
        discord_server.add_member("tess"),
    )
    guild_id = discord_server.guild.id
    limits = {"chains_per_user_per_hour": 5}
    bot = await start(guilds={str(guild_id): {"discord": {"team_member_ids": [tess.id]}, "limits": limits}})
    await discord_server.until(lambda: discord_server.state.commands)
    asked = await discord_server.say(help_, ada, "does my marmalade lantern run on a toaster?")
    told = await discord_server.say(help_, tess, "One moment, let me check.", reply_to=asked)
    await bot.until_ended(told)
    own = data / "guilds" / str(guild_id) / "team-knowledge"
    await discord_server.until((own / "decisions.jsonl").exists)
    assert "marmalade" in "".join(path.read_text() for path in (own / "raw").glob("*.txt"))
    said = await discord_server.answer_to(help_, ada, "privacy forget")
    assert "1 " in said.content
    assert "marmalade" not in "".join(path.read_text() for path in (data / "guilds").rglob("*.txt"))
    assert bot.parts is not None
    (usage,) = (path for path in bot.parts.state.spent if str(guild_id) in path.parts)
    assert bot.parts.state.spent[usage].chains == {}
    assert await bot.stop() == 0
