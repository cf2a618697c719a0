"""What `--check` asks over the network, and how it tells failures apart."""

from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey

from commands import check
from commands.check import Finding, Verdict
from services.telemetry import connection_problem
from settings import Settings, load
from tests.commands.conftest import SECRET_KEY, SECRET_TOKEN
from tests.loopback import llm_scenes as scenes
from tests.loopback.discord_server import DiscordServer
from tests.loopback.fixtures import discord_server
from tests.loopback.llm_server import LLMServer
from tests.loopback.permissions import Permission

__all__ = ["discord_server"]

pytestmark = pytest.mark.real_time


def written(config: Path, yaml: str) -> Settings:
    config.write_text(yaml)
    return load(config)


async def about_discord(config: Path, token: str) -> Finding:
    settings = await asyncio.to_thread(written, config, f"discord: {{token: '{token}'}}\n")
    (found,) = await check.discord_rows(settings)
    assert token not in found.says
    return found


async def test_discord_is_asked_who_the_bot_is(config: Path, discord_server: DiscordServer) -> None:
    """Pitfall 70."""
    with discord_server.routes():
        found = await about_discord(config, discord_server.token)
        assert found == Finding(
            "discord.token",
            Verdict.OK,
            f"Discord knows the bot as millrace ({discord_server.bot.id}) and shows it messages",
        )
        found = await about_discord(config, SECRET_TOKEN)
        assert found.verdict is Verdict.MISSING
        assert found.says.startswith("Discord refuses the token (discord.token). Reset it")
    assert discord_server.gateway.identified == 0, "nothing is connected"


async def test_a_bot_that_may_not_read_messages_is_told_where_to_switch_that_on(
    config: Path, discord_server: DiscordServer
) -> None:
    """Pitfall 70."""
    discord_server.state.content_approved = False
    with discord_server.routes():
        found = await about_discord(config, discord_server.token)
    assert found.verdict is Verdict.MISSING
    assert "Switch on Message Content Intent" in found.says


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (503, {}, "Discord answers with HTTP 503: try again later"),
        (200, {"odd": 1}, "what answers is not Discord"),
        (200, {"username": "x", "id": "y", "flags": "z"}, "what answers is not Discord"),
    ],
)
async def test_a_discord_that_is_not_itself_keeps_no_bot_from_starting(
    config: Path, discord_server: DiscordServer, status: int, body: object, says: str
) -> None:
    for path in ("/users/@me$", "/applications/@me$"):
        discord_server.fail_next("GET", path, status=status, body=body)  # pyright: ignore[reportArgumentType] (odd on purpose)
        with discord_server.routes():
            found = await about_discord(config, discord_server.token)
        assert found.verdict is Verdict.WARNING
        assert says in found.says
        assert "a start tries again" in found.says
        discord_server.forget_failures()


def with_model(config: Path, base_url: str, **more: object) -> Settings:
    options = "".join(f", {key}: {value}" for key, value in more.items())
    llm = f"{{base_url: '{base_url}', api_key: {SECRET_KEY}, model: tiny{options}}}"
    return written(config, f"ai_response:\n  llm: {llm}\n")


@pytest.mark.parametrize(
    ("scene", "says"),
    [
        (scenes.status(401), "does not accept the key; check api_key"),
        (scenes.status(402), "top up the account"),
        (scenes.status(404), "does not know this address or model; check base_url and model"),
        (scenes.status(400), "check model and structured_output_method"),
        (scenes.status(503), "is overloaded or broken"),
        (scenes.content("I am ready!"), "try another structured_output_method or model"),
        (scenes.html(), "no chat completion"),
        (scenes.redirect("http://127.0.0.1:9/v1"), "set base_url to the right one"),
        (scenes.hang(), "no answer within 0.3 s; raise timeout_seconds"),
    ],
    ids=["key", "credit", "unknown", "invalid", "broken", "prose", "html", "redirect", "hang"],
)
async def test_a_model_is_asked_one_question_and_what_comes_of_it_is_told(
    config: Path, scene: scenes.Scene, says: str
) -> None:
    """Pitfalls 22 and 70: listing its models is no proof that it answers."""
    async with LLMServer(otherwise=scene) as server:
        settings = await asyncio.to_thread(
            with_model, config, server.base_url, timeout_seconds=0.3 if "0.3 s" in says else 5
        )
        answering, _ = await check.model_rows(settings)
    assert answering.verdict is Verdict.MISSING
    assert says in answering.says
    assert SECRET_KEY not in answering.says


@pytest.mark.parametrize("method", ["function_calling", "json_schema"])
async def test_a_model_that_answers_in_the_wanted_shape_is_there(config: Path, method: str) -> None:
    async with LLMServer() as server:
        settings = await asyncio.to_thread(with_model, config, server.base_url, structured_output_method=method)
        answering, _ = await check.model_rows(settings)
        assert (len(server.others), len(server.seen)) == (1, 1), "its models are listed, and it is asked once"
    assert answering.verdict is Verdict.OK
    assert f"answers in the wanted shape ({method}) after" in answering.says


async def test_a_model_that_is_too_slow_for_an_answer_is_a_warning(config: Path) -> None:
    async with LLMServer(otherwise=scenes.slow(0.05)) as server:
        settings = await asyncio.to_thread(with_model, config, server.base_url)
        answering = settings.ai_response.model_copy(update={"graph_timeout_seconds": 0.06})
        settings = settings.model_copy(update={"ai_response": answering})
        answering, _ = await check.model_rows(settings)
    assert answering.verdict is Verdict.WARNING
    assert "too slow" in answering.says


async def test_a_model_for_files_has_a_row_of_its_own(config: Path) -> None:
    async with LLMServer() as server:
        yaml = f"documents:\n  synthesis_llm: {{base_url: '{server.base_url}', api_key: k, model: tiny}}\n"
        found = await check.document_rows(await asyncio.to_thread(written, config, yaml))
    assert ("documents.synthesis_llm", Verdict.OK) in [(each.about, each.verdict) for each in found]


async def test_a_server_without_tls_is_told_from_one_that_is_not_there(config: Path) -> None:
    async with LLMServer() as server:
        settings = await asyncio.to_thread(with_model, config, server.base_url.replace("http:", "https:"))
        found, _ = await check.model_rows(settings)
    assert "it does not speak TLS there: write http:// instead of https://" in found.says
    settings = await asyncio.to_thread(with_model, config, server.base_url)
    found, _ = await check.model_rows(settings)
    assert "nothing listens there (connection refused)" in found.says


KEY = ConnectionKey("h", 443, is_ssl=True, ssl=True, proxy=None, proxy_auth=None, proxy_headers_hash=None)


def verification() -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError("certificate verify failed")
    error.verify_message = "certificate has expired"
    return error


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (aiohttp.ClientConnectorDNSError(KEY, socket.gaierror(-2, "Name or service not known")), "DNS"),
        (socket.gaierror(-2, "Name or service not known"), "DNS"),
        (aiohttp.ClientConnectorCertificateError(KEY, verification()), "(TLS, certificate has expired)"),
        (aiohttp.ClientConnectorSSLError(KEY, ssl.SSLError(1, "wrong version number")), "does not speak TLS"),
        (aiohttp.ClientConnectorError(KEY, OSError(113, "No route to host")), "no way there"),
        (aiohttp.ServerDisconnectedError(), "closed the connection"),
        (aiohttp.InvalidURL("x"), "check the address"),
    ],
)
def test_causes_are_told_apart(error: Exception, says: str) -> None:
    assert says in connection_problem(error)


async def test_the_review_channel_is_looked_at_where_answers_wait(config: Path, discord_server: DiscordServer) -> None:
    """Pitfall 70."""
    everybodys, hidden = discord_server.add_channel("review"), discord_server.add_channel("hidden", hidden=True)
    there = discord_server.add_channel("team", hidden=True)
    discord_server.allow(there, discord_server.bot, Permission.VIEW_CHANNEL | Permission.SEND_MESSAGES)

    async def rows(approval: str, channel_id: int) -> list[Finding]:
        yaml = (
            f"discord: {{token: '{discord_server.token}', review_channel_id: {channel_id}}}\n"
            f"ai_response: {{approval: '{approval}'}}\n"
        )
        found = await check.discord_rows(await asyncio.to_thread(written, config, yaml))
        return [each for each in found if each.about == "discord.review_channel_id"]

    with discord_server.routes():
        assert await rows("off", there.id) == []
        (found,) = await rows("all", there.id)
        assert found.verdict is Verdict.OK
        (found,) = await rows("all", everybodys.id)
        assert (found.verdict, "everybody can view it" in found.says) == (Verdict.WARNING, True)
        for channel_id, says in ((hidden.id, "View Channel"), (5, "there is no such channel")):
            (found,) = await rows("unsure", channel_id)
            assert found.verdict is Verdict.MISSING
            assert says in found.says
            assert "until then the team is not shown what waits for approval" in found.says


async def test_channels_that_only_the_team_should_view_are_looked_at(
    config: Path, discord_server: DiscordServer
) -> None:
    everybodys, staff = discord_server.add_channel("general"), discord_server.add_channel("staff", hidden=True)
    discord_server.allow(staff, discord_server.bot, Permission.VIEW_CHANNEL)

    async def rows(channel_id: int) -> list[tuple[str, Verdict, str]]:
        yaml = f"discord: {{token: '{discord_server.token}', escalation_channel_id: {everybodys.id}}}\n"
        yaml += "".join(f"{key}: {{channel_id: {channel_id}}}\n" for key in ("alerts", "report"))
        found = await check.discord_rows(await asyncio.to_thread(written, config, yaml))
        return [(each.about, each.verdict, each.says) for each in found[1:]]

    with discord_server.routes():
        for channel_id, verdict, says in (
            (everybodys.id, Verdict.WARNING, "everybody can view it and reads what is posted there"),
            (staff.id, Verdict.OK, "the bot may post there"),
            (5, Verdict.WARNING, "there is no such channel"),
        ):
            found = await rows(channel_id)
            assert [each[:2] for each in found] == [("alerts.channel_id", verdict), ("report.channel_id", verdict)]
            assert all(says in each[2] for each in found)
