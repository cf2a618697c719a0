from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from commands.live import LiveOptions
from model.outcomes import OutcomeKind
from tests.end_to_end.bots import RunningBot
from tests.end_to_end.conftest import Start, llm, settings_of
from tests.loopback.discord_server import DiscordServer
from tests.loopback.llm_answers import offered
from tests.loopback.llm_server import LLMServer

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
    assert bot.results == [(OutcomeKind.REPLIED, None)]
    assert "would post" in caplog.text
    assert await bot.stop() == 0
    assert {request.method for request in discord_server.requests} == {"GET"}


async def test_a_dry_run_looks_things_up_as_the_bot_would(
    discord_server: DiscordServer,
    llm_server: LLMServer,
    data: Path,
    hurried_discord: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    settings = settings_of(data, ai_response={"llm": llm(llm_server)})
    bot = RunningBot(discord_server, settings, LiveOptions(dry_run=True))
    bot.begin(monkeypatch, learning=True)
    try:
        await bot.ready()
        log = ("app.log", b"2026-02-16T00:00:30 ERROR db: refused (E-1042)\n", "text/plain")
        question = await discord_server.say(help_, ada, "what is the ERROR in app.log?", attachments=[log])
        await bot.until_ended(question)
    finally:
        assert await bot.stop() == 0
    tools = [list(offered(seen.body)) for seen in llm_server.seen if offered(seen.body)]
    assert ["answer_from_case_evidence", "answer_from_global_kb", "query_file"] in tools
    assert bot.results == [(OutcomeKind.REPLIED, None)]
    assert not discord_server.posts
