"""The dashboard of a running bot."""

from __future__ import annotations

import re
import socket

import aiohttp
import pytest

from tests.end_to_end.conftest import Start
from tests.loopback.discord_server import DiscordServer

pytestmark = pytest.mark.real_time

QUESTION = "how can I restore a backup?"
TOKEN = "a-token-of-some-length"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def test_a_question_is_seen_from_its_window_to_its_path_and_its_author_is_a_pseudonym(
    start: Start, discord_server: DiscordServer
) -> None:
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    port = free_port()
    bot = await start(metrics={"port": port}, dashboard={"enabled": True, "token": TOKEN})
    headers = {"Authorization": f"Bearer {TOKEN}"}
    question = await discord_server.say(help_, ada, QUESTION)
    await bot.until_ended(question)
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}", headers=headers) as session:

        async def page(path: str) -> str:
            async with session.get(path) as response:
                assert response.status == 200
                return await response.text()

        assert await page("/readyz") == "ok\n"
        assert re.search(r'data-op="gate">.*?data-cell="line"[^>]*>1 done', await page("/flow"), re.DOTALL)
        first = await page("/")
        assert "Discord is connected" in first
        assert "All is well" in first
        listed = await page("/answers")
        (answer,) = re.findall(r'href="(/answers/\w+)"', listed)
        shown = await page(answer)
        assert "#help" in shown
        assert f"/{help_.id}/" in shown
        assert "What the search ranked" in shown
        everything = listed + shown + await page("/knowledge") + await page("/gaps") + await page("/cost")
    assert QUESTION not in everything
    assert str(ada.id) not in everything
    assert "ada" not in re.findall(r"<code>(\w+)</code>", everything)
