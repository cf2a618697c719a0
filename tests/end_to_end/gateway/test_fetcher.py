import asyncio
import logging

import pytest
from tenacity import wait_none

from model.messages import PlaceKind
from services.discord.live import calls
from services.discord.live.rest import RestFetcher
from services.discord.live.session import Client
from services.discord.protocols import LookupFailed
from services.discord.wire import Decoder
from tests.loopback.discord_server import DiscordServer
from tests.loopback.permissions import Permission

pytestmark = pytest.mark.real_time


async def test_messages_come_decoded_and_oldest_first(discord_server: DiscordServer, fetcher: RestFetcher) -> None:
    channel, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    written = [await discord_server.say(channel, ada, str(n)) for n in range(5)]
    assert [each.text for each in await fetcher.messages(channel.id)] == ["0", "1", "2", "3", "4"]
    assert [each.id for each in await fetcher.messages(channel.id, after=written[2].id)] == [
        written[3].id,
        written[4].id,
    ]
    assert [each.text for each in await fetcher.messages(channel.id, before=written[1].id)] == ["0"]
    assert written[2].id in [each.id for each in await fetcher.messages(channel.id, around=written[2].id)]
    one = await fetcher.message(channel.id, written[0].id)
    assert one is not None
    assert (one.text, one.author.id, one.author.role_ids) == ("0", ada.id, None)


async def test_what_does_not_exist_is_an_answer_and_no_failure(
    discord_server: DiscordServer, fetcher: RestFetcher
) -> None:
    channel = discord_server.add_channel("help")
    assert await fetcher.message(channel.id, 5) is None
    assert await fetcher.messages(5) == []
    assert await fetcher.place(5) is None
    assert await fetcher.role_ids(discord_server.guild.id, 5) == ()
    assert await fetcher.active_threads(5) == []


async def test_roles_of_a_member(discord_server: DiscordServer, fetcher: RestFetcher) -> None:
    staff = discord_server.add_role("staff")
    ada = discord_server.add_member("ada", staff)
    assert await fetcher.role_ids(discord_server.guild.id, ada.id) == (staff.id,)


async def test_places_are_decoded_by_whoever_knows_the_forums(discord_server: DiscordServer, logged_in: Client) -> None:
    forum, ada = discord_server.add_forum("questions"), discord_server.add_member("ada")
    post = await discord_server.forum_post(forum, ada, "a post", "help")
    fetcher = RestFetcher(logged_in.http, decode_place=Decoder().place)
    await fetcher.place(forum.id)
    found = await fetcher.place(post.id)
    assert found is not None
    assert (found.kind, found.parent_id) == (PlaceKind.FORUM_POST, forum.id)


async def test_a_server_error_is_no_answer(discord_server: DiscordServer, fetcher: RestFetcher) -> None:
    """Pitfall 28."""
    channel = discord_server.add_channel("help")
    discord_server.fail_next("GET", "/messages", status=500, times=5)
    with pytest.raises(LookupFailed, match="Discord answered 500"):
        await fetcher.messages(channel.id)
    assert discord_server.count("GET", "/messages") == 5


@pytest.mark.parametrize("failure", [{"status": 503}, {"drop": True}])
async def test_what_discord_py_does_not_repeat_is_repeated_here(
    discord_server: DiscordServer, fetcher: RestFetcher, failure: dict[str, int]
) -> None:
    channel, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    await discord_server.say(channel, ada, "hello")
    discord_server.fail_next("GET", "/messages", times=2, **failure)  # pyright: ignore[reportArgumentType] (one of two)
    assert len(await fetcher.messages(channel.id)) == 1


async def test_it_gives_up_after_a_few_tries(discord_server: DiscordServer, fetcher: RestFetcher) -> None:
    channel = discord_server.add_channel("help")
    discord_server.fail_next("GET", "/messages", status=503, times=100)
    with pytest.raises(LookupFailed):
        await fetcher.messages(channel.id)
    assert discord_server.count("GET", "/messages") == 3


async def test_a_short_rate_limit_is_waited_out(discord_server: DiscordServer, fetcher: RestFetcher) -> None:
    channel = discord_server.add_channel("help")
    discord_server.rate_limit_next("GET", "/messages", retry_after=0.01)
    assert await fetcher.messages(channel.id) == []
    assert discord_server.count("GET", "/messages") == 2


async def test_a_long_rate_limit_is_a_failure_at_once(discord_server: DiscordServer, fetcher: RestFetcher) -> None:
    channel = discord_server.add_channel("help")
    discord_server.rate_limit_next("GET", "/messages", retry_after=600)
    with pytest.raises(LookupFailed, match="wait 600 s"):
        await fetcher.messages(channel.id)
    assert discord_server.count("GET", "/messages") == 1


async def test_a_ban_is_never_answered_with_another_request(
    discord_server: DiscordServer, fetcher: RestFetcher
) -> None:
    channel = discord_server.add_channel("help")
    discord_server.rate_limit_next("GET", "/messages", via=False)
    with pytest.raises(LookupFailed, match="429"):
        await fetcher.messages(channel.id)
    assert discord_server.count("GET", "/messages") == 1


async def test_a_channel_that_is_forbidden_is_not_asked_again_for_a_while(
    discord_server: DiscordServer, fetcher: RestFetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden, open_ = discord_server.add_channel("hidden", hidden=True), discord_server.add_channel("open")
    for _ in range(3):
        with pytest.raises(LookupFailed):
            await fetcher.messages(hidden.id)
    with pytest.raises(LookupFailed, match="so soon"):
        await fetcher.message(hidden.id, 5)
    assert discord_server.count("GET", f"/channels/{hidden.id}") == 1
    assert await fetcher.messages(open_.id) == []
    # Ten minutes later:
    discord_server.allow(hidden, discord_server.bot, Permission.VIEW_CHANNEL | Permission.READ_MESSAGE_HISTORY)
    later = calls.now() + 601
    monkeypatch.setattr(calls, "now", lambda: later)
    assert await fetcher.messages(hidden.id) == []


async def test_one_request_serves_all_who_ask_the_same_at_once(
    discord_server: DiscordServer, fetcher: RestFetcher
) -> None:
    channel = discord_server.add_channel("help")
    await asyncio.gather(*(fetcher.messages(channel.id) for _ in range(20)))
    assert discord_server.count("GET", "/messages") == 1


async def test_an_odd_message_does_not_hide_the_rest_of_a_history(
    discord_server: DiscordServer,
    fetcher: RestFetcher,
    logged_in: Client,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    channel, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    message = await discord_server.say(channel, ada, "fine")

    async def logs_from(*_: object, **__: object) -> object:
        return [discord_server.state.payload(message), {"id": "5"}]

    monkeypatch.setattr(logged_in.http, "logs_from", logs_from)
    with caplog.at_level(logging.WARNING):
        found = await fetcher.messages(channel.id)
    assert [each.text for each in found] == ["fine"]
    assert "a message cannot be read and is left out" in caplog.text


async def test_an_odd_message_alone_is_a_failed_lookup(discord_server: DiscordServer, fetcher: RestFetcher) -> None:
    discord_server.fail_next("GET", "/messages/", status=200, body={"id": "5"})
    with pytest.raises(LookupFailed, match="cannot be read"):
        await fetcher.message(1, 5)


async def test_a_closed_client_is_a_failed_lookup(
    discord_server: DiscordServer, logged_in: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetcher = RestFetcher(logged_in.http, wait=wait_none())
    await logged_in.close()
    with pytest.raises(LookupFailed, match="could not be reached"):
        await fetcher.messages(5)


async def test_a_server_that_never_answers_is_given_up(
    discord_server: DiscordServer, fetcher: RestFetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.discord.live.calls.CALL_SECONDS", 0.02)
    channel = discord_server.add_channel("help")
    discord_server.fail_next("GET", "/messages", delay=1.0, times=3)
    with pytest.raises(LookupFailed, match="in time"):
        await fetcher.messages(channel.id)
