"""What `--check` says of where alerts go."""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

import app
from commands import check
from commands.check import Finding, Verdict
from settings import load
from tests.commands.conftest import SECRET_TOKEN
from tests.disk_room import disk_with
from tests.loopback.discord_server import DiscordServer
from tests.loopback.fixtures import discord_server
from tests.loopback.model import Channel
from tests.loopback.permissions import Permission

__all__ = ["discord_server"]

SECRET = "hook-s3cret"
ALERTS = "alerts.channel_id"


def rows(config: Path, alerts: str) -> dict[str, Finding]:
    config.write_text(f"{config.read_text()}alerts: {alerts}\n")
    return {row.about: row for row in check.alert_rows(load(config))}


def test_without_a_target_it_says_that_nobody_is_told(config: Path) -> None:
    row = rows(config, "{}")["alerts.channel_id"]
    assert (row.verdict, "nobody is told" in row.says) == (Verdict.SKIPPED, True)


@pytest.mark.parametrize(
    ("address", "verdict", "says"),
    [
        (f"https://discord.com/api/webhooks/1/{SECRET}", Verdict.OK, "alerts are posted at discord.com"),
        (f"http://127.0.0.1:9/{SECRET}", Verdict.OK, "alerts are posted at 127.0.0.1"),
        (f"http://hooks.example.org/{SECRET}", Verdict.WARNING, "http:// shows it to whoever listens; write https://"),
    ],
)
def test_a_webhook_is_named_by_its_host_alone(config: Path, address: str, verdict: Verdict, says: str) -> None:
    found = rows(config, f"{{webhook_url: '{address}'}}")
    assert "alerts.channel_id" not in found
    row = found["alerts.webhook_url"]
    assert row.verdict is verdict
    assert row.says.startswith(says)
    assert SECRET not in row.says


@pytest.mark.parametrize(
    "address", ["hooks.example.org/", "ftp://hooks.example.org/", "https://a:b@hooks.example.org/"]
)
def test_an_address_that_is_none_is_refused_and_not_shown(
    config: Path, address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("APP__ALERTS__WEBHOOK_URL", f"{address}{SECRET}")
    assert app.main(["--config", str(config), "--check"]) == 2
    out, err = capsys.readouterr()
    assert "APP__ALERTS__WEBHOOK_URL" in err
    assert "must be a URL that begins with http:// or https://" in err
    assert SECRET not in out + err


def test_a_disk_that_is_nearly_full_is_a_warning_with_a_remedy(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", disk_with(total=2e13, free=4.9e9))
    row = rows(config, "{}")["alerts.disk_free_mb"]
    assert row.verdict is Verdict.WARNING
    assert row.says.startswith("4,900 of 20,000,000 MB are free: Make room")
    monkeypatch.setattr(shutil, "disk_usage", disk_with(total=2e13, free=5.1e9))
    assert {row.about: row for row in check.alert_rows(load(config))}["alerts.disk_free_mb"].verdict is Verdict.OK


# In Discord


@pytest.fixture
async def staff(discord_server: DiscordServer) -> AsyncGenerator[Channel]:
    with discord_server.routes():
        channel = discord_server.add_channel("staff", hidden=True)
        discord_server.allow(channel, discord_server.bot, Permission.VIEW_CHANNEL)
        yield channel


pytestmark_real = pytest.mark.real_time


async def row_of(server: DiscordServer, channel_id: int) -> tuple[Verdict, str]:
    row = await check.channel_row(server.token, ALERTS, channel_id, server.bot.id)
    assert row.about == ALERTS
    assert not server.posts
    return row.verdict, row.says.removeprefix(f"{channel_id}: ")


@pytestmark_real
async def test_a_channel_in_which_the_bot_may_post_is_fine(discord_server: DiscordServer, staff: Channel) -> None:
    verdict, says = await row_of(discord_server, staff.id)
    assert (verdict, says) == (Verdict.OK, "the bot may post there; nothing was posted")


@pytestmark_real
async def test_rules_of_the_channel_count_for_everyone_then_for_roles_then_for_the_bot(
    discord_server: DiscordServer, staff: Channel
) -> None:
    [everyone, role, *_] = discord_server.guild.roles.values()
    discord_server.deny(staff, everyone, Permission.SEND_MESSAGES)
    assert await row_of(discord_server, staff.id) == (
        Verdict.WARNING,
        "the bot lacks Send Messages there; until then nobody is told there",
    )
    discord_server.allow(staff, role, Permission.SEND_MESSAGES)
    assert (await row_of(discord_server, staff.id))[0] is Verdict.OK
    discord_server.deny(staff, discord_server.bot, Permission.SEND_MESSAGES)
    assert (await row_of(discord_server, staff.id))[0] is Verdict.WARNING


@pytestmark_real
async def test_a_channel_that_is_hidden_or_gone_is_a_warning(discord_server: DiscordServer, staff: Channel) -> None:
    hidden = discord_server.add_channel("secret", hidden=True)
    says = "there is no such channel, or the bot cannot view it (View Channel); until then nobody is told there"
    assert await row_of(discord_server, hidden.id) == (Verdict.WARNING, says)
    assert await row_of(discord_server, 1) == (Verdict.WARNING, says)


@pytestmark_real
async def test_where_discord_cannot_say_it_the_row_says_why(discord_server: DiscordServer, staff: Channel) -> None:
    discord_server.fail_next("GET", "/roles", status=500)
    assert await row_of(discord_server, staff.id) == (Verdict.WARNING, "Discord answers with HTTP 500: try again later")
    row = await check.channel_row(SECRET_TOKEN, ALERTS, staff.id, discord_server.bot.id)
    assert "Discord refuses the token" in row.says
