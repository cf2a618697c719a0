"""A question becomes a thread with its answer in it."""

from __future__ import annotations

import pytest

from tests.end_to_end.conftest import Start
from tests.loopback.discord_server import DiscordServer

pytestmark = pytest.mark.real_time


async def test_a_question_gets_a_thread_and_in_it_the_answer(start: Start, discord_server: DiscordServer) -> None:
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    bot = await start()
    question = await discord_server.say(help_, ada, "how can I restore a backup?")
    (post,) = await bot.until_posts(1)
    assert post.place.id == question.id
    assert post.thread is not None
    assert post.thread.name == "how can I restore a backup?"
    assert "lf backup restore" in post.content
    assert post.allowed_mentions == {"parse": []}
    assert await bot.stop() == 0
