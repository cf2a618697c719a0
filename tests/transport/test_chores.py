"""What one worker does for all, in processes between a real server of NATS and a loopback Discord."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import time
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest
from aiohttp import ClientConnectionError, ClientSession
from nats.aio.client import Client
from nats.js.errors import NotFoundError, ObjectNotFoundError

from services.discord import Dispatch
from services.documents.store import Collection, Origin, protocol
from services.storage import DataFolder, files
from services.telemetry import render_part_outcome
from tests.end_to_end.bots import posts_in
from tests.end_to_end.processes import STARTING, Process, write_config
from tests.loopback.discord_server import DiscordServer
from tests.loopback.fixtures import discord_server
from tests.loopback.nats_server import NatsServer, free_port
from tests.loopback.permissions import Permission
from tests.reporting.asked import asked
from tests.services.documents.cases import new_store
from tests.transport.connected import begun_anew
from transport.connection import streams_of
from transport.dispatches import decode_compressed, encode_compressed
from transport.document_store import object_name
from transport.folder_log import path_token
from transport.streams import EVIDENCE, LOG, PLACES, Layout

__all__ = ["discord_server"]

pytestmark = pytest.mark.real_time

WITHIN = 2 * STARTING
GONE = 8
DAY = 86_400.0
LEFT = 5
LEASE_SECONDS = 1.0
"""Chores begin after some leases."""


@pytest.fixture
async def client(nats_server: NatsServer) -> AsyncGenerator[Client]:
    async with begun_anew(nats_server, Layout(lease_seconds=LEASE_SECONDS)) as connected:
        yield connected


@pytest.fixture
def at(nats_server: NatsServer) -> Generator[None]:
    os.environ["APP__TRANSPORT"] = nats_server.url
    yield
    del os.environ["APP__TRANSPORT"]


async def installation(folder: DataFolder, guild_id: int) -> None:
    """A report is due, of questions in two channels, and a thread that is gone has a file."""
    folder.root.mkdir()
    now = time.time()
    files.replace(folder.last_report, json.dumps({"until": now - 8 * DAY}).encode())
    about = {7: "Does it run on Solaris?", 9: "Is there a cure for hiccups?"}
    ends = [
        asked(question, at=now - DAY, guild_id=guild_id, channel_id=place_id, place_id=place_id)
        for place_id, question in about.items()
    ]
    files.replace(folder.outcomes / f"{ends[0].day}.jsonl", b"".join(map(render_part_outcome, ends)))
    store = new_store(folder.root)
    name = protocol.case_collection(str(GONE))
    await store.expect(Collection(name, "case", str(GONE), guild_id), Origin("app.log", attachment_id=1))
    await store.close()


async def page(address: str) -> str:
    """Once its process serves it."""
    async with ClientSession() as session, asyncio.timeout(WITHIN):
        while True:
            try:
                async with session.get(address) as response:
                    return await response.text()
            except ClientConnectionError:
                await asyncio.sleep(0.05)


@pytest.mark.slow
async def test_report_and_alert_are_posted_by_one_worker_and_what_is_over_is_swept(
    client: Client, discord_server: DiscordServer, tmp_path: Path, at: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    staff, alerts = discord_server.add_channel("staff", hidden=True), discord_server.add_channel("alerts")
    discord_server.allow(staff, discord_server.bot, Permission.VIEW_CHANNEL | Permission.READ_MESSAGE_HISTORY)
    streams = streams_of(client)
    data = DataFolder(tmp_path / "data")
    await installation(data, discord_server.guild.id)
    config = write_config(
        data.root,
        report={"channel_id": str(staff.id)},
        # The disk of this machine is too small, as three processes see.
        alerts={"channel_id": str(alerts.id), "disk_free_mb": 10**9},
        documents={"sweep_hours": 0.0005},
        nats={"lease_seconds": LEASE_SECONDS},
    )
    adopting = await Process.start(discord_server, config, "--adopt", str(data.root))
    assert (await adopting.end(WITHIN))[0] == 0
    gone: dict[str, object] = {"id": str(LEFT), "name": "left", "channels": [], "roles": [], "unavailable": False}
    await streams.publish(
        f"places.{LEFT}", encode_compressed(Dispatch(time.time(), "GUILD_CREATE", gone)), stream=PLACES
    )
    roles = [await Process.start(discord_server, config, "--role", role) for role in ("gateway", "worker")]
    shown = free_port()
    for key, value in {"METRICS__PORT": shown, "DASHBOARD__ENABLED": "true", "DASHBOARD__SHOW_TEXTS": "true"}.items():
        monkeypatch.setenv(f"APP__{key}", str(value))
    roles.append(await Process.start(discord_server, config, "--role", "worker"))
    try:
        await discord_server.until(lambda: posts_in(discord_server, staff), WITHIN)
        await discord_server.until(lambda: posts_in(discord_server, alerts), WITHIN)
        [post] = posts_in(discord_server, staff)
        assert "Solaris" in post.content
        assert "hiccups" in post.content
        evidence = await streams.object_store(EVIDENCE)
        async with asyncio.timeout(WITHIN):
            while True:
                try:
                    await evidence.get_info(object_name(protocol.case_collection(str(GONE))))
                except (NotFoundError, ObjectNotFoundError):
                    break
                await asyncio.sleep(0.05)
        last = await streams.get_last_msg(PLACES, f"places.{LEFT}")
        assert decode_compressed(last.data or b"").t == "GUILD_DELETE"
        answers = await page(f"http://127.0.0.1:{shown}/answers?show=all")
        assert "Solaris" in answers
        assert "hiccups" in answers
        for process in roles:
            process.terminate()
        for process in roles:
            code, said = await process.end(WITHIN)
            assert code == 0, said
            assert "Traceback" not in said, said
    finally:
        for process in roles:
            await process.kill()
    kept = await streams.get_last_msg(LOG, f"log.p00.file.{path_token('state/report.json')}")
    assert json.loads(kept.data or b"{}")["until"] > time.time() - DAY
    [alert] = posts_in(discord_server, alerts)
    assert alert.content.startswith("**The disk is nearly full")
    assert alert.content.count(socket.gethostname()) == 1
    kept = await streams.get_last_msg(LOG, f"log.p00.file.{path_token('state/alerts.json')}")
    assert json.loads(kept.data or b"{}")["states"]["disk"]["incident"]["subjects"] == [socket.gethostname()]
    assert len(discord_server.posts) == 2
