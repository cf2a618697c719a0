"""Many people ask at once, and the model is slow."""

from __future__ import annotations

import asyncio

import pytest

from model.outcomes import OutcomeKind
from tests.end_to_end.bots import posts_in
from tests.end_to_end.conftest import Start, llm
from tests.end_to_end.scenes import echoing
from tests.loopback.discord_server import DiscordServer
from tests.loopback.llm_scenes import slow
from tests.loopback.llm_server import LLMServer
from tests.loopback.model import Message

pytestmark = pytest.mark.real_time

ASKERS = 64
"""Twice as many as are answered at once. Real clients on both sides make 200 a matter of half a minute."""


async def test_many_askers_each_get_their_own_answer_in_their_own_thread(
    start: Start, discord_server: DiscordServer, llm_server: LLMServer
) -> None:
    """Pitfall 27; the full size is in benchmarks/live_load.py."""
    llm_server.otherwise = slow(0.1, echoing())
    channels = [discord_server.add_channel(f"help-{n}") for n in range(4)]
    askers = [discord_server.add_member(f"asker-{n}") for n in range(ASKERS)]
    bot = await start(ai_response={"llm": llm(llm_server, timeout_seconds=30), "max_concurrent_answers": 32})
    questions = await asyncio.gather(
        *(
            discord_server.say(channels[n % 4], asker, f"case-{n}: how can I restore a backup?")
            for n, asker in enumerate(askers)
        )
    )
    await bot.until_posts(ASKERS, within=60)
    for n, question in enumerate(questions):
        assert [post.content for post in posts_in(discord_server, question.id)] == [f"About case-{n}."]
    assert len(discord_server.posts) == ASKERS
    assert bot.results == [(OutcomeKind.REPLIED, None)] * ASKERS
    assert not discord_server.unknown


async def test_one_person_who_asks_quickly_is_answered_in_order_and_in_one_thread(
    start: Start, discord_server: DiscordServer, llm_server: LLMServer
) -> None:
    """Pitfall 27."""
    llm_server.otherwise = slow(0.1, echoing())
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    bot = await start(ai_response={"llm": llm(llm_server)}, discord={"message_batch_wait_seconds": 0.03})
    questions: list[Message] = []
    for n in range(3):
        questions.append(await discord_server.say(help_, ada, f"case-{n}: how can I restore a backup?"))
        await asyncio.sleep(0.1)  # a pause between messages is what this is about
    await bot.until_ended(*questions)
    posts = posts_in(discord_server, questions[0].id)
    assert [post.content for post in posts] == [
        "About case-0.",
        "About case-0 and case-1.",
        "About case-0 and case-1 and case-2.",
    ]
    assert len(discord_server.posts) == 3
