from __future__ import annotations

from typing import Any

import pytest

from commands.live import LiveOptions
from model.outcomes import Result
from tests.end_to_end.conftest import Start
from tests.loopback.discord_server import DiscordServer

pytestmark = pytest.mark.real_time


@pytest.mark.parametrize(("options", "sections"), [(LiveOptions(dry_run=True), {}), (LiveOptions(), {"dry_run": True})])
async def test_a_dry_run_decides_everything_and_posts_nothing(
    start: Start,
    discord_server: DiscordServer,
    options: LiveOptions,
    sections: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    bot = await start(options, app=sections, discord={"feedback": True})
    question = await discord_server.say(help_, ada, "how can I restore a backup?")
    await bot.until_ended(question)
    assert bot.results == [(Result.REPLIED, None)]
    assert "would post" in caplog.text
    assert await bot.stop() == 0
    assert {request.method for request in discord_server.requests} == {"GET"}
