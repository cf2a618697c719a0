import logging
import math
from dataclasses import replace
from types import SimpleNamespace

import pytest

from clock import now
from streams.gateway import CatchUpPlace, GatewayRules, catch_up_places
from tests.end_to_end.gateway.conftest import RULES, Connect
from tests.loopback.discord_server import DiscordServer
from tests.loopback.permissions import Permission

pytestmark = pytest.mark.real_time


async def test_what_was_written_while_away_follows_ready_in_order_of_id(
    connect: Connect, discord_server: DiscordServer
) -> None:
    """Pitfall 25."""
    ada = discord_server.add_member("ada")
    help_, chat = discord_server.add_channel("help"), discord_server.add_channel("chat")
    seen = await discord_server.say(help_, ada, "seen", ago=500)
    for n, place in enumerate([help_, chat, help_, chat]):
        await discord_server.say(place, ada, str(n), ago=400 - n)
    live = await connect(lambda: {help_.id: seen.id, chat.id: seen.id})
    await discord_server.until(lambda: len(live.texts) == 4)
    assert live.texts == ["0", "1", "2", "3"]
    first = live.of("MESSAGE_CREATE")[0]
    assert first.at == pytest.approx(discord_server.clock() - 400, abs=5)
    assert first.d["guild_id"] == str(discord_server.guild.id)


async def test_after_an_invalid_session_the_gap_is_filled(connect: Connect, discord_server: DiscordServer) -> None:
    """Pitfall 25."""
    channel, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    first = await discord_server.say(channel, ada, "first", ago=60)
    live = await connect(lambda: {channel.id: first.id})
    await discord_server.say(channel, ada, "lost", deliver=False)
    await discord_server.invalidate_session()
    await discord_server.until(lambda: live.texts)
    assert live.texts == ["lost"]
    assert len(live.of("READY")) == 2


async def test_live_messages_wait_behind_what_was_missed(connect: Connect, discord_server: DiscordServer) -> None:
    channel, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    missed = await discord_server.say(channel, ada, "missed", ago=60)
    discord_server.fail_next("GET", "/messages", delay=0.05)
    live = await connect(lambda: {channel.id: missed.id - 1})
    await discord_server.until(lambda: discord_server.count("GET", "/messages"))
    await discord_server.say(channel, ada, "live")
    await discord_server.edit(missed, "edited")
    await discord_server.until(lambda: live.of("MESSAGE_UPDATE"))
    # What was written while it was fetched comes twice; the stream is deduplicated by message id further down.
    assert [*dict.fromkeys(live.texts)] == ["edited", "live"]
    assert live.seen[-1].t == "MESSAGE_UPDATE"


async def test_where_nothing_was_missed_nobody_waits_for_a_slow_catch_up(
    connect: Connect, discord_server: DiscordServer
) -> None:
    """Pitfall 25: and where something was missed, nothing overtakes it."""
    ada = discord_server.add_member("ada")
    help_, chat = discord_server.add_channel("help"), discord_server.add_channel("chat")
    missed = await discord_server.say(help_, ada, "missed", ago=60)
    seen = await discord_server.say(chat, ada, "seen", ago=60)
    discord_server.fail_next("GET", "/threads/active", delay=0.3)
    discord_server.fail_next("GET", "/messages", delay=0.3)
    live = await connect(lambda: {help_.id: missed.id - 1, chat.id: seen.id})
    await discord_server.until(lambda: discord_server.count("GET", "/threads/active"))
    await discord_server.say(help_, ada, "behind it")
    await discord_server.say(chat, ada, "at once")
    await discord_server.until(lambda: live.texts)
    assert live.texts == ["at once"]
    await discord_server.until(lambda: "behind it" in live.texts)
    assert [*dict.fromkeys(live.texts)] == ["at once", "missed", "behind it"]


async def test_a_new_session_waits_for_the_catch_up_of_the_one_before(
    connect: Connect, discord_server: DiscordServer
) -> None:
    """Pitfall 25."""
    channel, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    first = await discord_server.say(channel, ada, "first", ago=60)
    discord_server.fail_next("GET", "/messages", delay=0.3)
    live = await connect(lambda: {channel.id: first.id - 1})
    await discord_server.until(lambda: discord_server.count("GET", "/messages"))
    await discord_server.invalidate_session()
    await discord_server.until(lambda: len(live.of("READY")) == 2)
    assert len(live.of("GUILD_CREATE")) == 1
    await discord_server.say(channel, ada, "second")
    await discord_server.until(lambda: "second" in live.texts)
    assert [*dict.fromkeys(live.texts)] == ["first", "second"]
    assert len(live.of("GUILD_CREATE")) == 2


async def test_a_thread_and_a_post_opened_while_away_are_read_from_their_start(
    connect: Connect, discord_server: DiscordServer
) -> None:
    channel, forum = discord_server.add_channel("help"), discord_server.add_forum("questions")
    ada = discord_server.add_member("ada")
    seen = await discord_server.say(channel, ada, "seen", ago=60)
    start = await discord_server.say(channel, ada, "start")
    thread = await discord_server.open_thread(start, ada)
    await discord_server.say(thread, ada, "in the thread")
    await discord_server.forum_post(forum, ada, "a post", "in the post")
    live = await connect(lambda: {channel.id: seen.id})
    await discord_server.until(lambda: "in the post" in live.texts)
    assert [text for text in live.texts if text] == ["start", "in the thread", "in the post"]


async def test_a_first_start_fetches_nothing(connect: Connect, discord_server: DiscordServer) -> None:
    channel, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    await discord_server.say(channel, ada, "long ago", ago=60)
    live = await connect()
    await discord_server.say(channel, ada, "now")
    await discord_server.until(lambda: live.texts)
    assert live.texts == ["now"]
    assert discord_server.count("GET", "/messages|/threads") == 0


@pytest.mark.parametrize(("minutes", "texts"), [(60, ["recent"]), (0, [])])
async def test_catching_up_goes_back_no_further_than_it_is_told(
    connect: Connect, discord_server: DiscordServer, minutes: int, texts: list[str]
) -> None:
    channel, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    mark = await discord_server.say(channel, ada, "seen", ago=9000)
    await discord_server.say(channel, ada, "too old", ago=4000)
    await discord_server.say(channel, ada, "recent", ago=60)
    live = await connect(lambda: {channel.id: mark.id}, rules=GatewayRules(catch_up_minutes=minutes))
    await discord_server.say(channel, ada, "now")
    await discord_server.until(lambda: "now" in live.texts)
    assert [*dict.fromkeys(live.texts)] == [*texts, "now"]


@pytest.mark.parametrize("ahead", [7_200.0, -7_200.0])
async def test_a_wrong_clock_of_this_machine_loses_nothing(
    connect: Connect, discord_server: DiscordServer, ahead: float
) -> None:
    """Pitfall 25: ids go by Discord's clock."""
    discord_server.clock = discord_server.state.clock = lambda: now() - ahead
    channel, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    mark = await discord_server.say(channel, ada, "seen", ago=9000)
    await discord_server.say(channel, ada, "too old", ago=4000)
    await discord_server.say(channel, ada, "recent", ago=60)
    live = await connect(lambda: {channel.id: mark.id})
    await discord_server.until(lambda: live.texts)
    assert live.texts == ["recent"]
    assert live.of("MESSAGE_CREATE")[0].at <= now()


async def test_channels_that_are_denied_or_cannot_be_read_are_not_asked(
    connect: Connect, discord_server: DiscordServer
) -> None:
    ada = discord_server.add_member("ada")
    denied, secret, open_ = (discord_server.add_channel(name) for name in ("denied", "secret", "open"))
    discord_server.deny(secret, discord_server.guild.everyone, Permission.READ_MESSAGE_HISTORY)
    discord_server.deny(secret, discord_server.bot, Permission.READ_MESSAGE_HISTORY)
    for channel in (denied, secret, open_):
        await discord_server.say(channel, ada, channel.name)
    live = await connect(lambda: {denied.id: 1, secret.id: 1, open_.id: 1}, rules=replace(RULES, denylist=[denied.id]))
    await discord_server.until(lambda: live.texts)
    assert live.texts == ["open"]
    assert discord_server.count("GET", "/messages") == 1


async def test_when_threads_cannot_be_listed_channels_are_caught_up_all_the_same(
    connect: Connect, discord_server: DiscordServer, caplog: pytest.LogCaptureFixture
) -> None:
    channel, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    await discord_server.say(channel, ada, "missed")
    discord_server.fail_next("GET", "/threads/active", status=400)
    with caplog.at_level(logging.WARNING):
        live = await connect(lambda: {channel.id: 1})
        await discord_server.until(lambda: live.texts)
    assert "are left out" in caplog.text


@pytest.mark.parametrize("path", ["/messages", "/threads/active"])
async def test_what_cannot_be_read_now_is_read_later_and_only_there_is_waited(
    connect: Connect, discord_server: DiscordServer, path: str
) -> None:
    """Pitfall 25."""
    ada = discord_server.add_member("ada")
    help_, chat = discord_server.add_channel("help"), discord_server.add_channel("chat")
    seen = await discord_server.say(help_, ada, "seen", ago=60)
    thread = await discord_server.open_thread(seen, ada)
    await discord_server.say(thread, ada, "missed")
    quiet = await discord_server.say(chat, ada, "seen", ago=60)
    discord_server.fail_next("GET", path, status=503, times=12)
    live = await connect(lambda: {help_.id: seen.id, thread.id: thread.id, chat.id: quiet.id})
    await discord_server.say(thread, ada, "behind it")
    await discord_server.say(chat, ada, "at once")
    await discord_server.until(lambda: "behind it" in live.texts)
    assert [text for text in dict.fromkeys(live.texts) if text] == ["at once", "missed", "behind it"]
    assert discord_server.count("GET", path) > 12


async def test_stopping_does_not_wait_for_a_catch_up_and_moves_no_mark_past_it(
    connect: Connect, discord_server: DiscordServer
) -> None:
    channel, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    await discord_server.say(channel, ada, "missed")
    discord_server.fail_next("GET", "/messages", delay=math.inf)
    live = await connect(lambda: {channel.id: 1})
    await discord_server.until(lambda: discord_server.count("GET", "/messages"))
    await discord_server.say(channel, ada, "live")
    await live.stop()
    assert live.texts == []
    assert live.error is None


async def test_stopping_before_a_guild_has_arrived_fetches_nothing(
    connect: Connect, discord_server: DiscordServer
) -> None:
    channel, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    await discord_server.say(channel, ada, "missed")
    live = await connect(lambda: live.gateway.stop() or {channel.id: 1}, ready=False)
    await live.ended.wait()
    assert [dispatch.t for dispatch in live.seen] in (["READY"], ["READY", "GUILD_CREATE"])
    assert discord_server.count("GET", "/messages") == 0


async def test_a_catch_up_that_goes_wrong_does_not_end_the_stream(
    connect: Connect, discord_server: DiscordServer, caplog: pytest.LogCaptureFixture
) -> None:
    channel, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    discord_server.fail_next("GET", "/threads/active", status=200, body={"threads": [{"odd": True}]})
    live = await connect(lambda: {channel.id: 1})
    await discord_server.say(channel, ada, "on it goes")
    await discord_server.until(lambda: live.texts)
    assert "failed for this server" in caplog.text


async def test_threads_of_channels_that_are_not_read_are_left_alone() -> None:
    threads = [{"id": "5", "parent_id": "1"}, {"id": "6", "parent_id": "2", "last_message_id": "9"}]
    channel = SimpleNamespace(id=2, last_message_id=8)
    assert list(catch_up_places([channel], threads)) == [CatchUpPlace(2, None, 8), CatchUpPlace(6, 2, 9)]
