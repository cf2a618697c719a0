"""What people delete, edit or hide after it was captured: nobody is answered with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.live import LiveOptions
from tests.end_to_end.bots import RunningBot
from tests.end_to_end.conftest import settings_of
from tests.end_to_end.test_commands import until_offered
from tests.loopback.discord_server import DiscordServer
from tests.loopback.permissions import Permission

pytestmark = pytest.mark.real_time

QUESTION = "How do I open the secret vault door at night?"
ANSWER = "Open the secret vault door with password blorptang and wait a minute."
BETTER = "Open the secret vault door with the code that you were given and wait a minute."


def decisions(data: Path) -> str:
    path = data / "team-knowledge" / "decisions.jsonl"
    return path.read_text() if path.exists() else ""


@pytest.mark.parametrize(
    ("how", "filed"),
    [
        ("channel hidden", False),  # what was filed while it was public stays
        *(
            (how, filed)
            for how in ("answer deleted", "question deleted", "answer edited", "answer doubted")
            for filed in (False, True)
        ),
    ],
)
@pytest.mark.usefixtures("hurried_discord")
async def test_what_is_taken_back_is_quoted_to_nobody(
    discord_server: DiscordServer, data: Path, monkeypatch: pytest.MonkeyPatch, how: str, *, filed: bool
) -> None:
    server = discord_server
    lobby, place = server.add_channel("lobby"), server.add_channel("ops")
    ada, tess, kid = server.add_member("ada"), server.add_member("tess"), server.add_member("kid")
    settings = settings_of(
        data,
        discord={
            "team_member_ids": [str(tess.id)],
            "team_active_seconds": 0.01,
            "message_batch_wait_seconds": 0.1,
        },
        kb={"settle_minutes": 0.001 if filed else 0.05, "runtime_refresh_tick_seconds": 0.3},
    )
    bot = RunningBot(server, settings, LiveOptions())
    bot.begin(monkeypatch, learning=True)
    try:
        await bot.ready()
        await until_offered(server)
        asked = await server.say(place, ada, QUESTION, ago=60)
        answered = await server.say(place, tess, ANSWER, reply_to=asked)
        await bot.until_ended(answered)
        if filed:
            await server.until(lambda: '"added"' in decisions(data) or bot.over)
        before = decisions(data).count("\n")
        match how:
            case "answer deleted":
                await server.delete(answered)
            case "question deleted":
                await server.delete(asked)
            case "answer edited":
                await server.edit(answered, BETTER)
            case "answer doubted":
                await server.say(place, kid, "no, that deletes all that is in it", reply_to=answered)
            case _:
                server.deny(place, server.guild.everyone, Permission.VIEW_CHANNEL)
        wanted = 1 if how == "channel hidden" else 2
        await server.until(lambda: decisions(data).count("\n") >= before + wanted or bot.over, 20)
        await bot.until_idle()
        again = await server.say(lobby, kid, f"<@{server.bot.id}> {QUESTION}")
        await bot.until_ended(again)
        said = "\n".join(post.content for post in server.posts)
        assert "blorptang" not in said
        assert ("the code that you were given" in said) == (how == "answer edited")
        topics = "".join(path.read_text() for path in (data / "team-knowledge" / "topics").glob("*.txt"))
        assert ("blorptang" in topics) == (how == "answer doubted")
        assert ("Team (doubted)" in topics) == (how == "answer doubted")
    finally:
        assert await bot.stop() == 0
