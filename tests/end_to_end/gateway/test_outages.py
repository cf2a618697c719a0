import logging

import pytest
import zstandard

from clock import now
from services.discord.live.session import Client
from streams.gateway import GatewayHooks
from tests.end_to_end.gateway.conftest import Connect
from tests.loopback.discord_server import DiscordServer
from tests.loopback.payloads import Payload
from tests.loopback.sessions import Session

pytestmark = pytest.mark.real_time


@pytest.mark.parametrize("code", [4000, 1000, None])
async def test_a_lost_connection_is_resumed_and_discord_replays(
    connect: Connect, discord_server: DiscordServer, code: int | None
) -> None:
    """Pitfall 25."""
    channel, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    marks: dict[int, int] = {}
    live = await connect(lambda: marks)
    marks[channel.id] = (await discord_server.say(channel, ada, "before")).id
    await discord_server.disconnect(code)
    await discord_server.say(channel, ada, "meanwhile")
    await discord_server.until(lambda: live.of("RESUMED"))
    assert live.texts == ["before", "meanwhile"]
    assert discord_server.gateway.identified == 1
    # Nothing was fetched: Discord had it all.
    assert discord_server.count("GET", "/messages") == 0


async def test_discord_may_ask_to_connect_anew(connect: Connect, discord_server: DiscordServer) -> None:
    live = await connect()
    await discord_server.request_reconnect()
    await discord_server.until(lambda: live.of("RESUMED"))


async def test_an_odd_payload_is_dropped_and_the_connection_stays(
    connect: Connect, discord_server: DiscordServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Pitfall 80."""
    caplog.set_level(logging.WARNING)
    channel, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    live = await connect()
    await discord_server.send_raw("MESSAGE_CREATE", {"id": "5", "content": "odd", "channel_id": "not a number"})
    await discord_server.send_raw("CHANNEL_UPDATE", {"odd": True})
    await discord_server.say(channel, ada, "and on")
    await discord_server.until(lambda: "and on" in live.texts)
    # The odd message is for the decoder to judge: it was read before discord.py choked on it.
    assert live.texts == ["odd", "and on"]
    assert caplog.messages == ["gateway: discord.py cannot read one CHANNEL_UPDATE (KeyError); it is dropped"]
    assert (discord_server.gateway.identified, discord_server.gateway.resumed) == (1, 0)


def compressed(data: bytes) -> bytes:
    """As discord.py asks Discord to send frames."""
    compressor = zstandard.ZstdCompressor().compressobj()
    return compressor.compress(data) + compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)


@pytest.mark.parametrize("frame", ["{", "[" * 100_000, '{"op": 0, "t": 5, "d": "x"}', '"text"', compressed(b'"\xff"')])
async def test_what_is_no_payload_at_all_costs_one_line(
    connect: Connect, discord_server: DiscordServer, caplog: pytest.LogCaptureFixture, frame: str | bytes
) -> None:
    """Pitfall 80."""
    caplog.set_level(logging.WARNING)
    channel, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    live = await connect()
    for connection in discord_server.gateway.connections:
        send = connection.socket.send_str if isinstance(frame, str) else connection.socket.send_bytes
        await send(frame)  # pyright: ignore[reportArgumentType] (one of two)
    await discord_server.say(channel, ada, "and on")
    await discord_server.until(lambda: "and on" in live.texts)
    assert len(caplog.messages) <= 1
    assert all("it is dropped" in line for line in caplog.messages)
    assert discord_server.gateway.resumed == 0


async def test_a_session_that_cannot_be_read_is_begun_anew(
    connect: Connect, discord_server: DiscordServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pitfall 80: without a READY there is no session to keep."""
    told = Session.tell
    odd = iter([True])

    def tell(session: Session, name: str, payload: Payload, *, always: bool = False) -> None:
        told(session, name, {"odd": True} if name == "READY" and next(odd, False) else payload, always=always)

    monkeypatch.setattr(Session, "tell", tell)
    live = await connect()
    assert len(live.of("READY")) == 2
    assert discord_server.gateway.identified == 2


async def test_the_stream_waits_for_a_discord_that_is_down_when_it_starts(
    connect: Connect, discord_server: DiscordServer, caplog: pytest.LogCaptureFixture
) -> None:
    discord_server.fail_next("GET", "/users/@me", status=503, times=2)
    discord_server.fail_next("GET", "^/$", drop=True, times=2)
    with caplog.at_level(logging.WARNING):
        await connect()
    assert discord_server.failures_to_come == 0
    assert "no connection: Discord answered 503 (code 0: 503: as ordered); trying again" in caplog.text
    assert "no connection: Discord could not be reached (ServerDisconnectedError); trying again" in caplog.text


async def test_a_new_session_is_tried_now_and_then_when_resuming_fails(
    connect: Connect, discord_server: DiscordServer
) -> None:
    live = await connect()
    await discord_server.disconnect()
    discord_server.fail_next("GET", "^/$", status=502, times=4)
    await discord_server.until(lambda: len(live.of("READY")) == 2)
    assert discord_server.gateway.identified == 2


async def test_an_address_at_which_nothing_can_be_resumed_is_left(
    connect: Connect, discord_server: DiscordServer
) -> None:
    live = await connect()
    await discord_server.disconnect()
    discord_server.fail_next("GET", "^/$", status=404, times=4)
    await discord_server.until(lambda: len(live.of("READY")) == 2)
    assert discord_server.gateway.identified == 2


async def test_a_turn_is_awaited_before_each_new_session_and_not_to_resume(
    connect: Connect, discord_server: DiscordServer
) -> None:
    turns: list[int] = []

    async def turn(shard_id: int) -> None:
        assert discord_server.gateway.identified == len(turns)
        turns.append(shard_id)

    live = await connect(hooks=GatewayHooks(before_identify=turn))
    await discord_server.disconnect()
    await discord_server.until(lambda: live.of("RESUMED"))
    assert turns == [0]
    await discord_server.invalidate_session()
    await discord_server.until(lambda: len(live.of("READY")) == 2)
    assert turns == [0, 0]


async def test_health_follows_the_connection(connect: Connect, discord_server: DiscordServer) -> None:
    live = await connect(ready=False)
    assert not live.gateway.health.connected
    await discord_server.until(lambda: live.gateway.health.connected)
    discord_server.fail_next("GET", "^/$", status=502, times=1000)
    await discord_server.disconnect()
    await discord_server.until(lambda: not live.gateway.health.connected)
    assert live.gateway.health.problem(now()) is None
    assert live.gateway.health.problem(now() + 200) is not None
    discord_server.forget_failures()
    await discord_server.until(lambda: live.gateway.health.connected)


async def test_a_client_that_was_never_connected_hangs_up_and_still_speaks_to_discord(
    logged_in: Client, discord_server: DiscordServer
) -> None:
    channel = discord_server.add_channel("help")
    await logged_in.hang_up()
    assert not logged_in.is_resumable
    assert discord_server.gateway.identified == 0
    assert (await logged_in.fetch_channel(channel.id)).id == channel.id
