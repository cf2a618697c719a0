import logging
from dataclasses import replace

import pytest

from tests.end_to_end.gateway.conftest import RULES, Connect
from tests.loopback.discord_server import DiscordServer
from tests.loopback.permissions import Permission

pytestmark = pytest.mark.real_time

ALL = (
    Permission.READ_MESSAGE_HISTORY
    | Permission.CREATE_PUBLIC_THREADS
    | Permission.SEND_MESSAGES_IN_THREADS
    | Permission.SEND_MESSAGES
)


@pytest.fixture(autouse=True)
def warnings_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)


async def settled(connect: Connect, server: DiscordServer, **options: object) -> None:
    live = await connect(rules=replace(RULES, **options))
    await server.send_raw("SOMETHING", {})
    await server.until(lambda: live.of("SOMETHING"))


async def test_nothing_is_said_when_nothing_is_missing(
    connect: Connect, discord_server: DiscordServer, caplog: pytest.LogCaptureFixture
) -> None:
    discord_server.add_channel("help")
    discord_server.add_forum("questions")
    discord_server.add_channel("staff", hidden=True)
    await settled(connect, discord_server)
    assert not caplog.records


async def test_one_warning_names_what_is_missing_where(
    connect: Connect, discord_server: DiscordServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Pitfall 35."""
    one, two = discord_server.add_channel("one"), discord_server.add_channel("two")
    discord_server.deny(one, discord_server.bot, Permission.CREATE_PUBLIC_THREADS)
    discord_server.deny(two, discord_server.bot, ALL)
    await settled(connect, discord_server)
    (record,) = caplog.records
    assert record.getMessage() == (
        f"server 'loopback' ({discord_server.guild.id}): the bot lacks Read Message History in #two; "
        "Create Public Threads in #one, #two; Send Messages in Threads in #two; grant this to its role there"
    )


async def test_forums_need_no_permission_to_open_threads(
    connect: Connect, discord_server: DiscordServer, caplog: pytest.LogCaptureFixture
) -> None:
    forum = discord_server.add_forum("questions")
    discord_server.deny(forum, discord_server.bot, Permission.CREATE_PUBLIC_THREADS)
    await settled(connect, discord_server)
    assert not caplog.records


async def test_a_channel_of_the_allowlist_that_cannot_be_seen_is_named(
    connect: Connect, discord_server: DiscordServer, caplog: pytest.LogCaptureFixture
) -> None:
    staff = discord_server.add_channel("staff", hidden=True)
    other = discord_server.add_channel("other")
    discord_server.deny(other, discord_server.bot, ALL)
    await settled(connect, discord_server, allowlist=[staff.id])
    (record,) = caplog.records
    assert "View Channel in #staff" in record.getMessage()
    assert "#other" not in record.getMessage()


async def test_channels_of_the_denylist_are_not_checked(
    connect: Connect, discord_server: DiscordServer, caplog: pytest.LogCaptureFixture
) -> None:
    discord_server.add_channel("help")
    other = discord_server.add_channel("other")
    discord_server.deny(other, discord_server.bot, ALL)
    await settled(connect, discord_server, denylist=[other.id])
    assert not caplog.records


async def test_a_server_in_which_nothing_can_be_seen_is_reported(
    connect: Connect, discord_server: DiscordServer, caplog: pytest.LogCaptureFixture
) -> None:
    discord_server.add_channel("staff", hidden=True)
    await settled(connect, discord_server)
    assert "can see no channel" in caplog.text


async def test_many_channels_are_counted_and_not_named(
    connect: Connect, discord_server: DiscordServer, caplog: pytest.LogCaptureFixture
) -> None:
    for n in range(12):
        channel = discord_server.add_channel(f"c{n}")
        discord_server.deny(channel, discord_server.bot, Permission.CREATE_PUBLIC_THREADS)
    await settled(connect, discord_server)
    assert "#c9 and 2 more" in caplog.text


async def test_a_reconnect_does_not_repeat_the_warning(
    connect: Connect, discord_server: DiscordServer, caplog: pytest.LogCaptureFixture
) -> None:
    channel = discord_server.add_channel("one")
    discord_server.deny(channel, discord_server.bot, ALL)
    live = await connect()
    await discord_server.invalidate_session()
    await discord_server.until(lambda: len(live.of("GUILD_CREATE")) == 2)
    await discord_server.send_raw("SOMETHING", {})
    await discord_server.until(lambda: live.of("SOMETHING"))
    assert caplog.text.count("the bot lacks") == 1


async def test_a_channel_of_the_team_that_everybody_can_view_is_named_once(
    connect: Connect, discord_server: DiscordServer, caplog: pytest.LogCaptureFixture
) -> None:
    open_, staff = discord_server.add_channel("general"), discord_server.add_channel("staff", hidden=True)
    discord_server.allow(staff, discord_server.bot, Permission.VIEW_CHANNEL | ALL)
    no_history = discord_server.add_channel("intake")
    discord_server.deny(no_history, next(iter(discord_server.guild.roles.values())), Permission.READ_MESSAGE_HISTORY)
    discord_server.allow(no_history, discord_server.bot, Permission.READ_MESSAGE_HISTORY)
    public = await discord_server.start_thread(open_, discord_server.bot, "reports")
    private = await discord_server.start_thread(open_, discord_server.bot, "drafts", private=True)
    named = [
        ("alerts.channel_id", open_.id),
        ("alerts.channel_id", no_history.id),
        ("report.channel_id", staff.id),
        ("report.channel_id", public.id),
        ("report.channel_id", private.id),
        ("report.channel_id", 5),
    ]
    live = await connect(rules=replace(RULES, team_channels=named))
    await discord_server.invalidate_session()
    await discord_server.until(lambda: len(live.of("GUILD_CREATE")) == 2)
    await discord_server.send_raw("SOMETHING", {})
    await discord_server.until(lambda: live.of("SOMETHING"))
    assert [record.getMessage().partition(" and reads")[0] for record in caplog.records] == [
        f"alerts.channel_id: everybody can view {open_.id}",
        f"alerts.channel_id: everybody can view {no_history.id}",
        f"report.channel_id: everybody can view {public.id}",
    ]
