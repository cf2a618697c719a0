"""What keeps `--mcp` from starting: one readable line, and exit code 2."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

import app
from commands.mcp_server import serving
from services.redaction import Redactor
from settings import SettingsError, load
from tests.commands.mcp_server.conftest import with_sections

TOKEN = "a-token-of-the-team-42"


def line_of(capsys: pytest.CaptureFixture[str]) -> str:
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("app.py: ")
    assert err.count("\n") == 1
    return err.removeprefix("app.py: ").strip()


@pytest.mark.parametrize(
    ("mcp", "says"),
    [
        ({}, "mcp.token is empty, and --mcp http serves nobody without one: set it, best in .env"),
        ({"token": TOKEN, "port": 0}, "mcp.port is 0: set it to a port such as 8765"),
        ({"token": TOKEN, "host": "no.such.host.invalid"}, "mcp.port: cannot listen on no.such.host.invalid:8765 ("),
    ],
)
def test_what_cannot_be_served_is_named(
    knowing: Path, capsys: pytest.CaptureFixture[str], mcp: dict[str, object], says: str
) -> None:
    with_sections(knowing, mcp=mcp)
    assert app.main(["--config", str(knowing), "--mcp", "http"]) == 2
    line = line_of(capsys)
    assert line.startswith(says)
    assert TOKEN not in line


@pytest.mark.parametrize("way", [[], ["http"]])
def test_without_the_extra_it_names_what_installs_it(
    knowing: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, way: Sequence[str]
) -> None:
    def nothing(_name: str) -> None:
        """Where Python finds the extra."""

    monkeypatch.setattr(serving, "find_spec", nothing)
    assert app.main(["--config", str(knowing), "--mcp", *way]) == 2
    assert line_of(capsys) == "--mcp needs the extra `mcp`: make extra-mcp"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_also_before_it_serves(
    knowing: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """Pitfall 8."""

    async def over_stdio(_: object) -> None:
        signal.raise_signal(number)
        await asyncio.Event().wait()

    monkeypatch.setattr(serving, "serve_over_stdio", over_stdio)
    # What would end the tests must end only the command.
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        assert app.main(["--config", str(knowing), "--mcp"]) == 0
    finally:
        signal.signal(signal.SIGTERM, before)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("token", ["short", "sixteen letters and blanks"])
def test_a_token_that_is_easy_to_guess_is_refused_and_not_shown(knowing: Path, token: str) -> None:
    """Pitfall 22."""
    with_sections(knowing, mcp={"token": token})
    with pytest.raises(SettingsError, match=r"mcp\.token") as refused:
        load(knowing)
    assert token not in str(refused.value)


@pytest.mark.parametrize("arguments", [["ftp"], ["--json"], ["http", "--ask", "q"], ["--llm-record", "x"]])
def test_options_that_would_be_ignored_are_refused(
    knowing: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    try:
        code = app.main(["--config", str(knowing), "--mcp", *arguments])
    except SystemExit as refused:
        code = refused.code
    assert code == 2
    line = line_of(capsys)
    assert "--mcp" in line or "works only with" in line


def test_the_token_is_no_part_of_a_log_line(knowing: Path) -> None:
    """Pitfall 22."""
    with_sections(knowing, mcp={"token": TOKEN})
    assert Redactor(load(knowing).secrets).text(f"token {TOKEN}") != f"token {TOKEN}"
