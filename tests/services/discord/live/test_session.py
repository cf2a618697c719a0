import asyncio
from typing import Any

import discord
import pytest
from discord.gateway import DiscordWebSocket

from services.discord.live.calls import refusal
from services.discord.live.session import FREE_IDENTIFIES, Client, IdentifyLimiter, pause


def test_pauses_double_up_to_a_minute() -> None:
    assert [pause(n, lambda: 0.0) for n in range(1, 9)] == [1, 2, 4, 8, 16, 32, 60, 60]


def test_jitter_cuts_a_pause_by_half_at_most() -> None:
    assert pause(3, lambda: 1.0) == 2.0


def test_a_thousand_identifies_a_day_are_never_reached() -> None:
    identifies, at, sent = IdentifyLimiter(), 0.0, list[float]()
    while at < 3 * 86_400:
        at += identifies.wait(at)
        identifies.note_sent(at)
        sent.append(at)
        at += 6.0  # op 9 over and over: five seconds, and a little
    busiest = max(sum(start <= other < start + 86_400 for other in sent) for start in sent)
    assert FREE_IDENTIFIES <= busiest <= 1000


class _Socket:
    close_code = None


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (4004, "discord.token"),
        (4014, "Message Content Intent"),
        (4011, "sharding"),
        (4013, "close code 4013"),
        (1000, None),
    ],
)
def test_what_cannot_be_cured_by_trying_again_names_its_remedy(code: int, words: str | None) -> None:
    socket = _Socket()
    error = discord.ConnectionClosed(socket, shard_id=None, code=code)  # pyright: ignore[reportArgumentType] (a stand-in)
    said = refusal(error)
    assert said is None if words is None else words in (said or "")


def test_a_lost_network_is_no_refusal() -> None:
    assert refusal(OSError("gone")) is None
    assert "developer portal" in (refusal(discord.LoginFailure("no")) or "")


async def test_a_stop_while_a_connection_comes_about_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    holding: asyncio.Task[Any]

    class Connected:
        open = False

        async def poll_event(self) -> None:
            await asyncio.sleep(1)

    async def connect(*_args: object, **_options: object) -> Connected:
        await asyncio.sleep(1)
        holding.cancel()
        return Connected()

    monkeypatch.setattr(DiscordWebSocket, "from_client", connect)
    holding = asyncio.create_task(Client().hold_session(resume=False))
    done, _ = await asyncio.wait({holding}, timeout=60)
    holding.cancel()
    assert done == {holding}
    assert holding.cancelled()


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("paced", [False, True])
async def test_a_shard_is_named_and_waits_only_where_nobody_has_seen_to_its_turn(
    monkeypatch: pytest.MonkeyPatch, *, resume: bool, paced: bool
) -> None:
    """discord.py waits five seconds before an IDENTIFY that is not the first: `initial` says that it is."""
    asked: list[dict[str, Any]] = []

    class Connected:
        open, session_id, sequence, gateway = False, "session", 5, "wss://gateway"

        async def poll_event(self) -> None:
            raise OSError

    async def connect(*_args: object, **options: Any) -> Connected:
        asked.append(options)
        return Connected()

    monkeypatch.setattr(DiscordWebSocket, "from_client", connect)
    client = Client(shard_id=3, shard_count=64)
    monkeypatch.setattr(client, "is_ready", lambda: True)
    for again in (False, resume):
        with pytest.raises(OSError):  # noqa: PT011 (the one above)
            await client.hold_session(resume=again, is_paced=paced)
    assert [each["shard_id"] for each in asked] == [3, 3]
    assert asked[0]["initial"] == paced
    assert asked[1].get("resume", False) == resume
    assert client.shard_count == 64
