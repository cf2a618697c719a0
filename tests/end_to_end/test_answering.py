"""A question becomes a thread with its answer in it."""

from __future__ import annotations

import asyncio

import pytest

from model.outcomes import OutcomeKind, Reason
from tests.end_to_end.bots import answers_to, posts_in
from tests.end_to_end.conftest import Start, llm
from tests.end_to_end.scenes import answering
from tests.loopback.discord_server import DiscordServer
from tests.loopback.llm_server import LLMServer

pytestmark = pytest.mark.real_time

QUESTION = "how can I restore a backup?"


async def test_a_question_gets_a_thread_and_in_it_the_answer(start: Start, discord_server: DiscordServer) -> None:
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    bot = await start()
    question = await discord_server.say(help_, ada, f"{QUESTION}\nI have the archive.")
    (post,) = await bot.until_posts(1)
    assert post.place.id == question.id
    assert post.thread is not None
    assert post.thread.name == QUESTION
    assert "lf backup restore" in post.content
    assert post.allowed_mentions == {"parse": []}
    assert bot.results == [(OutcomeKind.REPLIED, None)]
    assert await bot.stop() == 0
    assert not discord_server.unknown


async def test_a_follow_up_in_the_thread_is_answered_there(start: Start, discord_server: DiscordServer) -> None:
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    bot = await start()
    await discord_server.say(help_, ada, QUESTION)
    (first,) = await bot.until_posts(1)
    more = await discord_server.say(first.place, ada, "and how do I turn off face recognition?")
    _, second = await bot.until_posts(2)
    assert second.place is first.place
    assert second.reference == more.id
    assert "LF_FACES=off" in second.content
    assert not second.pings


async def test_a_long_answer_comes_in_pieces_with_its_code_blocks_whole(
    start: Start, discord_server: DiscordServer, llm_server: LLMServer
) -> None:
    """Pitfall 24."""
    code = "\n".join(f"lf import --album {n:04} --verbose" for n in range(80))
    llm_server.otherwise = answering(AnswerResult={"answer": f"Run this:\n\n```bash\n{code}\n```\nThat is all."})
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    bot = await start(ai_response={"llm": llm(llm_server)})
    question = await discord_server.say(help_, ada, QUESTION)
    posts = await bot.until_posts(2)
    assert posts == posts_in(discord_server, question.id)
    assert len(posts) > 1
    for post in posts:
        assert len(post.content) <= 2000
        assert post.content.count("```") % 2 == 0
        assert post.allowed_mentions == {"parse": []}
    said = "\n".join(post.content for post in posts)
    assert all(line in said for line in code.splitlines())
    assert [post.nonce for post in posts] == [f"{question.id:x}-{n}" for n in range(len(posts))]
    # To whom a thread belongs is plain; only what answers inside a thread points at its question.
    assert [post.reference for post in posts] == [None] * len(posts)


async def test_a_message_that_only_mentions_everyone_is_not_for_the_bot_in_a_mention_only_server(
    start: Start, discord_server: DiscordServer
) -> None:
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    bot = await start(discord={"reply_mode": "mention"})
    everyone = await discord_server.say(help_, ada, f"@everyone {QUESTION}")
    await bot.until_ended(everyone)
    bob = discord_server.add_member("bob")
    mentioned = await discord_server.say(help_, bob, f"{discord_server.bot.mention} {QUESTION}")
    await bot.until_posts(1)
    assert bot.results == [(OutcomeKind.SKIPPED, Reason.REPLY_MODE), (OutcomeKind.REPLIED, None)]
    assert len(answers_to(discord_server, mentioned)) == 1


async def test_the_models_client_is_imported_before_the_first_question(
    start: Start, discord_server: DiscordServer, llm_server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    discord_server.add_channel("help")
    imported = asyncio.Event()
    loop = asyncio.get_running_loop()
    monkeypatch.setattr("commands.live.import_client", lambda: loop.call_soon_threadsafe(imported.set))
    await start(ai_response={"llm": llm(llm_server)})
    async with asyncio.timeout(5):
        await imported.wait()
