"""Commands configure the whole process's logging; afterwards it is as before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import discord.http
import pytest

from tests.commands.kb_folder import Base
from tests.loopback.served import serving
from tests.readers import idle_readers, kept_readers
from tests.root_logger import logging_restored

__all__ = ["idle_readers", "kept_readers", "logging_restored"]

SECRET_TOKEN = "MTE3NTk0ODYyMzg3MjAwMDAwMQ.GhostX.abcdefghijklmnopqrstuvwxyz0123456789AB"
SECRET_KEY = "correct-horse-battery-staple"


@pytest.fixture(autouse=True)
def no_discord(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody answers where Discord would be."""
    monkeypatch.setattr(discord.http.Route, "BASE", "http://127.0.0.1:9/api/v10")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration that works, in a folder of its own."""
    for name in ("APP__DISCORD__TOKEN", "APP__AI_RESPONSE__LLM__API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return config_in(tmp_path)


def config_in(folder: Path) -> Path:
    sources = folder / "data" / "knowledge-base" / "sources"
    sources.mkdir(parents=True)
    (sources / "install.md").write_text("# Install\n\nRun `lanternfish setup` and follow what it says.\n")
    (sources.parent / "index.txt").write_text("kb:install.md\nHow to install Lanternfish with lanternfish setup.\n")
    path = folder / "config.yaml"
    path.write_text(f"discord:\n  token: {SECRET_TOKEN}\n  team_member_ids: [902]\n")
    return path


@pytest.fixture
def export(tmp_path: Path) -> Path:
    """One question, exported."""
    path = tmp_path / "export.json"
    path.write_text(
        '{"guild": {"id": "1", "name": "G"}, "channel": {"id": "17", "type": "GuildTextChat", "name": "help"},'
        ' "messages": [{"id": "1481080340800864257", "type": "Default", "timestamp": "2026-03-11T00:04:30.389+00:00",'
        ' "content": "How do I install Lanternfish?", "author": {"id": "311", "name": "ada", "isBot": false},'
        ' "attachments": [], "embeds": [], "mentions": []}]}'
    )
    return path


@pytest.fixture
def base(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Base]:
    with serving() as server:
        yield Base(tmp_path, server, capsys)
