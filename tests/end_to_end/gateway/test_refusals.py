import pytest

from services.discord.protocols import GatewayRefused
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
