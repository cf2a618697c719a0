"""A clone that nobody has set up yet, and loopback servers for what it is asked to reach."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

import app
from settings.reference import render_config
from tests.commands.conftest import SECRET_KEY, SECRET_TOKEN
from tests.loopback.discord_server import DiscordServer
from tests.loopback.llm_server import LLMServer
from tests.loopback.served import served, serving
from tests.loopback.web_server import WebServer


@dataclass
class Clone:
    """A folder with the shipped configuration and some documentation."""

    folder: Path
    capsys: pytest.CaptureFixture[str]

    @property
    def config(self) -> Path:
        return self.folder / "config.yaml"

    def run(self, *arguments: str) -> tuple[int, str, str]:
        code = app.main(["--config", str(self.config), *arguments])
        out, err = self.capsys.readouterr()
        for text in (out, err):
            assert SECRET_TOKEN not in text
            assert SECRET_KEY not in text
        return code, out, err

    def init(self, **answers: Any) -> tuple[int, str, str]:
        """With these answers in a file."""
        file = self.folder / "answers.yaml"
        file.write_text(yaml.safe_dump(answers), "utf-8")
        return self.run("--init", str(file))

    def refused(self, **answers: Any) -> str:
        """The one line about a wrong answer; nothing was written."""
        before = self.written
        code, _, err = self.init(**answers)
        assert code == 2
        assert err.count("\n") == 1
        assert err.startswith(f"app.py: {self.folder / 'answers.yaml'}")
        assert self.written == before
        return err

    @property
    def written(self) -> dict[str, str]:
        """What --init has written, without its comments."""
        names = ("config.local.yaml", ".env", "data/knowledge-base/links.txt")
        return {name: (self.folder / name).read_text() for name in names if (self.folder / name).exists()}

    @property
    def local(self) -> Any:
        return yaml.safe_load(self.written["config.local.yaml"])


def page(text: str, content_type: str = "text/html") -> Any:
    async def play(_request: web.Request) -> web.Response:
        return web.Response(text=text, content_type=content_type)

    return play


ARTICLE = f"<html><head><title>Backups</title></head><body><article><p>{'Restore it with lantern. ' * 20}</p></article>"


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Clone:
    for name in [name for name in os.environ if name.upper().startswith("APP__")]:
        monkeypatch.delenv(name)
    # The embedder takes seconds to load, and nothing here depends on it.
    shipped = render_config().replace("embeddings: packaged", "embeddings: none")
    (tmp_path / "config.yaml").write_text(
        shipped.replace("web_fetch_private_hosts: []", "web_fetch_private_hosts: [127.0.0.1]")
    )
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "install.md").write_text("# Install\n\nRun `lanternfish setup` and follow what it says.\n")
    (docs / "logo.png").write_bytes(b"\x89PNG")
    monkeypatch.chdir(tmp_path)
    return Clone(tmp_path, capsys)


@pytest.fixture
def discord_there() -> Iterator[DiscordServer]:
    with served(DiscordServer(token=SECRET_TOKEN, clock=time.time)) as server, server.routes():
        yield server


@pytest.fixture
def model_there() -> Iterator[LLMServer]:
    with served(LLMServer()) as server:
        yield server


@pytest.fixture
def site() -> Iterator[WebServer]:
    with serving() as server:
        yield server
