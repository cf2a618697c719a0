import logging

import pytest

from clock import now
from services.discord.protocols import PATIENCE_SECONDS, GatewayRefused
from tests.end_to_end.gateway.conftest import Connect
from tests.loopback.discord_server import DiscordServer
from tests.loopback.sessions import Intent

pytestmark = pytest.mark.real_time


async def test_a_wrong_token_ends_the_stream_with_its_remedy(connect: Connect, discord_server: DiscordServer) -> None:
    live = await connect(ready=False, token="wrong.token")
    await live.ended.wait()
    assert isinstance(live.gateway.refusal, GatewayRefused)
    assert str(live.gateway.refusal).startswith("Discord refuses the token (discord.token). ")
    assert "\n" not in str(live.gateway.refusal)
    assert "wrong.token" not in str(live.gateway.refusal)
    assert discord_server.count("GET", "/users/@me") == 1


async def test_a_token_that_is_reset_while_running_ends_it_as_well(
    connect: Connect, discord_server: DiscordServer
) -> None:
    live = await connect()
    await discord_server.disconnect(4004)
    await live.ended.wait()
    assert "discord.token" in str(live.gateway.refusal)


async def test_a_missing_message_content_intent_names_the_switch(
    connect: Connect, discord_server: DiscordServer
) -> None:
    discord_server.gateway.approved = Intent(0)
    live = await connect(ready=False)
    await live.ended.wait()
    assert isinstance(live.gateway.refusal, GatewayRefused)
    assert "Message Content Intent" in str(live.gateway.refusal)
    assert "https://discord.com/developers/applications" in str(live.gateway.refusal)
    assert discord_server.gateway.identified == 1


@pytest.mark.parametrize(
    ("path", "status", "body", "line"),
    [
        (
            "/users/@me",
            403,
            {"message": "Application is disabled", "code": 40001},
            "No connection to Discord: Discord answered 403 (code 40001: Application is disabled). Look whether",
        ),
        (
            "/oauth2/applications/@me",
            404,
            {"message": "Unknown Application\nwith more", "code": 10002},
            "No connection to Discord: Discord answered 404 (code 10002: Unknown Application). Update Millrace",
        ),
        (
            "/oauth2/applications/@me",
            401,
            {"message": "401: Unauthorized", "code": 0},
            "Discord refuses the token (discord.token). ",
        ),
        ("^/$", 410, None, "No connection to Discord: Discord answered 410. Update Millrace"),
    ],
)
async def test_a_permanent_answer_ends_the_stream_and_is_explained(
    connect: Connect, discord_server: DiscordServer, path: str, status: int, body: dict[str, object], line: str
) -> None:
    """Pitfall 79."""
    discord_server.fail_next("GET", path, status=status, body=body, times=2)
    live = await connect(ready=False)
    await live.ended.wait()
    assert str(live.gateway.refusal).startswith(line)
    assert "\n" not in str(live.gateway.refusal)
    assert discord_server.failures_to_come == 1


@pytest.mark.parametrize("status", [408, 429, 500, 503])
async def test_a_passing_answer_is_asked_again(connect: Connect, discord_server: DiscordServer, status: int) -> None:
    """Pitfall 79."""
    discord_server.fail_next("GET", "/users/@me", status=status, body={"message": "not now"}, times=2)
    live = await connect()
    assert live.gateway.refusal is None
    assert discord_server.failures_to_come == 0


@pytest.mark.parametrize("status", [400, 403, 404, 410])
async def test_a_refused_handshake_of_a_bot_that_was_connected_is_tried_again(
    connect: Connect, discord_server: DiscordServer, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    """Pitfall 79: so answers a proxy before the gateway during an outage."""
    caplog.set_level(logging.WARNING)
    channel, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    live = await connect()
    discord_server.fail_next("GET", "^/$", status=status, times=7)
    await discord_server.invalidate_session()
    await discord_server.until(lambda: not live.gateway.health.connected)
    assert live.gateway.health.problem(now() + PATIENCE_SECONDS + 1) is not None
    await discord_server.until(lambda: len(live.of("GUILD_CREATE")) > 1)
    await discord_server.say(channel, ada, "and on")
    await discord_server.until(lambda: "and on" in live.texts)
    assert live.gateway.refusal is None
    assert live.gateway.health.problem(now()) is None
    assert caplog.messages.count(f"gateway: no connection: Discord answered {status}; trying again") == 7


async def test_a_handshake_refused_with_401_ends_it_while_running(
    connect: Connect, discord_server: DiscordServer
) -> None:
    """Pitfall 79."""
    live = await connect()
    discord_server.fail_next("GET", "^/$", status=401, times=7)
    await discord_server.invalidate_session()
    await live.ended.wait()
    assert "discord.token" in str(live.gateway.refusal)
