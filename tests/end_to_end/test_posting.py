"""Discord refuses, stumbles, or asks to wait, just when an answer is posted."""

from __future__ import annotations

import pytest

from model.outcomes import OutcomeKind
from tests.end_to_end.bots import answers_to
from tests.end_to_end.conftest import Start
from tests.loopback.discord_server import DiscordServer
from tests.loopback.model import Channel, User
from tests.loopback.permissions import Permission

pytestmark = pytest.mark.real_time

QUESTION = "how can I restore a backup?"


@pytest.fixture
async def help_(discord_server: DiscordServer) -> Channel:
    return discord_server.add_channel("help")


@pytest.fixture
async def ada(discord_server: DiscordServer) -> User:
    return discord_server.add_member("ada")


@pytest.mark.parametrize("route", ["/threads$", "/messages$"])
async def test_a_rate_limit_is_waited_out(
    start: Start, discord_server: DiscordServer, help_: Channel, ada: User, route: str
) -> None:
    bot = await start()
    discord_server.rate_limit_next("POST", route, times=2)
    question = await discord_server.say(help_, ada, QUESTION)
    await bot.until_posts(1)
    assert len(answers_to(discord_server, question)) == 1
    assert discord_server.failures_to_come == 0


async def test_a_ban_of_the_address_is_not_argued_with(
    start: Start, discord_server: DiscordServer, help_: Channel, ada: User
) -> None:
    bot = await start()
    discord_server.rate_limit_next("POST", "/threads$", via=False)
    question = await discord_server.say(help_, ada, QUESTION)
    await bot.until_ended(question)
    assert bot.results == [(OutcomeKind.FAILED, "PostFailed at reply")]
    assert discord_server.count("POST", "/threads$") == 1
    assert not discord_server.posts
    again = await discord_server.say(help_, discord_server.add_member("bob"), QUESTION)
    await bot.until_posts(1)
    assert len(answers_to(discord_server, again)) == 1


@pytest.mark.parametrize("after_effect", [True, False])
@pytest.mark.parametrize("route", ["/threads$", "/messages$"])
async def test_a_bad_gateway_in_the_middle_of_posting_leaves_one_thread_and_one_post(
    start: Start, discord_server: DiscordServer, help_: Channel, ada: User, route: str, after_effect: bool
) -> None:
    bot = await start()
    discord_server.fail_next("POST", route, status=502, after_effect=after_effect)
    question = await discord_server.say(help_, ada, QUESTION)
    await bot.until_posts(1)
    assert bot.results == [(OutcomeKind.REPLIED, None)]
    assert len(answers_to(discord_server, question)) == len(discord_server.posts) == 1
    assert len(discord_server.history(discord_server.posts[0].place)) == 2  # the starter's shadow, and the answer


async def test_a_line_cut_after_the_post_was_made_does_not_make_a_second_one(
    start: Start, discord_server: DiscordServer, help_: Channel, ada: User
) -> None:
    bot = await start()
    discord_server.fail_next("POST", "/messages$", drop=True, after_effect=True)
    question = await discord_server.say(help_, ada, QUESTION)
    await bot.until_idle()
    await bot.until_ended(question)
    assert bot.results == [(OutcomeKind.REPLIED, None)]
    assert len(discord_server.posts) == 1


async def test_without_the_permission_for_threads_nothing_is_posted_and_discord_is_asked_once(
    start: Start, discord_server: DiscordServer, help_: Channel, ada: User
) -> None:
    """Pitfalls 24 and 35."""
    discord_server.deny(help_, discord_server.bot, Permission.CREATE_PUBLIC_THREADS)
    bot = await start()
    for name in ("ada", "bob"):
        asker = discord_server.add_member(name)
        question = await discord_server.say(help_, asker, QUESTION)
        await bot.until_ended(question)
    assert bot.results == [(OutcomeKind.FAILED, "PostFailed at reply")] * 2
    assert not discord_server.posts
    assert discord_server.count("POST", "/threads$") == 1


async def test_somebody_has_opened_a_thread_on_the_question_already(
    start: Start, discord_server: DiscordServer, help_: Channel, ada: User
) -> None:
    bot = await start()
    question = await discord_server.say(help_, ada, QUESTION)
    thread = await discord_server.open_thread(question, ada, "my backup")
    (post,) = await bot.until_posts(1)
    assert post.place is thread
    assert discord_server.requests[-1].status == 200
