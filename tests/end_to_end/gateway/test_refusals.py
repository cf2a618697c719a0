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
