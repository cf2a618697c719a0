"""SIGTERM in the middle of things, and what the next life makes of what was left."""

from __future__ import annotations

from typing import Any

import pytest

from model.outcomes import Reason
from services.storage.data_folder import DataFolder
from tests.end_to_end.bots import answers_to
from tests.end_to_end.conftest import PLAIN, Start, llm
from tests.end_to_end.scenes import echoing
from tests.loopback.discord_server import DiscordServer
from tests.loopback.llm_server import LLMServer
from tests.loopback.model import Channel, Message

Sections = dict[str, dict[str, Any]]

pytestmark = pytest.mark.real_time


async def ask(server: DiscordServer, channel: Channel, n: int) -> Message:
    return await server.say(channel, server.add_member(f"asker-{n}"), f"case-{n}: how can I restore a backup?")


async def test_an_answer_posted_just_before_a_crash_is_not_posted_again(
    start: Start, discord_server: DiscordServer, llm_server: LLMServer
) -> None:
    """Pitfalls 8 and 25: neither the catch-up mark nor the note of the post was written."""
    llm_server.otherwise = echoing()
    help_ = discord_server.add_channel("help")
    sections: Sections = {"ai_response": {"llm": llm(llm_server)}}
    bot = await start(PLAIN, ready=True, **sections)
    folder = DataFolder(bot.settings.app.data_dir)
    begun = await ask(discord_server, help_, 0)
    await bot.until_posts(1)
    await bot.stop()
    saved = {path: path.read_bytes() for path in (folder.watermarks, folder.posts)}
    bot = await start(PLAIN, ready=True, **sections)
    question = await ask(discord_server, help_, 1)
    await bot.until_posts(2)
    follow_up = await discord_server.say(
        answers_to(discord_server, begun)[0].place, begun.author, "case-0: how can I restore a backup again?"
    )
    await bot.until_posts(3)
    await bot.stop()
    for path, content in saved.items():
        path.write_bytes(content)
    bot = await start(PLAIN, ready=True, **sections)
    await discord_server.until(lambda: len(bot.ignored(Reason.DUPLICATE)) >= 2)
    await bot.until_idle()
    assert len(discord_server.posts) == 3
    assert len(answers_to(discord_server, question)) == 1
    assert len([post for post in discord_server.posts if post.reference == follow_up.id]) == 1


async def test_staff_known_by_their_role_only_are_staff_in_what_was_missed_as_well(
    start: Start, discord_server: DiscordServer
) -> None:
    """Pitfall 34: history carries no roles, so that one look-up of each author decides."""
    help_, role = discord_server.add_channel("help"), discord_server.add_role("support")
    tess, ada = discord_server.add_member("tess", role), discord_server.add_member("ada")
    sections: Sections = {"discord": {"team_role_ids": [role.id]}}
    assert await (await start(PLAIN, ready=True, **sections)).stop() == 0
    question = "how can I restore a backup?"
    theirs = [await discord_server.say(help_, tess, question), await discord_server.say(help_, tess, question)]
    asked = await discord_server.say(help_, ada, question)
    bot = await start(PLAIN, ready=True, **sections)
    await bot.until_ended(*theirs, asked)
    assert len(discord_server.posts) == len(answers_to(discord_server, asked)) == 1
    assert bot.ignored(Reason.NOT_ADDRESSED)
    members = [request.path for request in discord_server.requests if "/members/" in request.path]
    assert sorted(members) == sorted(f"/guilds/{discord_server.guild.id}/members/{user.id}" for user in (tess, ada))
