"""What keeps commands in order while they run."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Generator
from pathlib import Path
from types import FrameType

import pytest

import app
from assembly.running import stop_signal, terminated_as_interrupted


@pytest.fixture
def in_the_background() -> Generator[None]:
    """As a shell script starts what stands before `&`."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("in_the_background")
def test_sigterm_ends_what_ignores_ctrl_c_and_puts_its_things_away() -> None:
    """Pitfall 8."""
    put_away = False

    async def work() -> None:
        nonlocal put_away
        try:
            signal.raise_signal(signal.SIGTERM)
            await asyncio.Event().wait()
        finally:
            put_away = True

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), terminated_as_interrupted():
        asyncio.run(work())
    assert put_away
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.fixture
def sighup() -> Generator[None]:
    """As where no `nohup` is: what would end the tests must end only the command."""

    def ignore(_number: int, _frame: FrameType | None) -> None:
        """Unlike `SIG_IGN`, which `nohup` sets."""

    before = signal.signal(signal.SIGHUP, ignore)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("sighup")
def test_a_terminal_that_is_closed_ends_a_command_once_however_often_it_says_so() -> None:
    """Pitfall 8."""
    put_away = False

    def work() -> None:
        nonlocal put_away
        try:
            signal.raise_signal(signal.SIGHUP)
        finally:
            signal.raise_signal(signal.SIGHUP)
            put_away = True

    before = signal.getsignal(signal.SIGHUP)
    with pytest.raises(KeyboardInterrupt), terminated_as_interrupted():
        work()
    assert put_away
    assert signal.getsignal(signal.SIGHUP) == before


@pytest.mark.usefixtures("sighup")
def test_a_terminal_that_is_closed_stops_what_serves() -> None:
    async def serve() -> None:
        with stop_signal() as stopped:
            signal.raise_signal(signal.SIGHUP)
            await asyncio.wait_for(stopped, 10)

    asyncio.run(serve())


@pytest.mark.usefixtures("sighup")
def test_what_nohup_has_started_outlives_its_terminal() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)

    async def serve() -> None:
        with stop_signal() as stopped:
            signal.raise_signal(signal.SIGHUP)
            signal.raise_signal(signal.SIGTERM)
            await stopped
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN

    with terminated_as_interrupted():
        signal.raise_signal(signal.SIGHUP)
        asyncio.run(serve())


@pytest.mark.parametrize("command", [("--replay", "day.jsonl"), ("--kb", "list")])
def test_sigterm_ends_a_command_as_ctrl_c_does(
    config: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
) -> None:
    """Or its temporary folder would stay."""

    def work(*_: object) -> int:
        signal.raise_signal(signal.SIGTERM)
        return 0

    monkeypatch.setattr("commands.replay.replay", work)
    monkeypatch.setattr("commands.kb.check_data_dir", work)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "day.jsonl").touch()
    # What would end the tests must end only the command.
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        assert app.main(["--config", str(config), *command]) == 1
    finally:
        signal.signal(signal.SIGTERM, before)
    assert capsys.readouterr().err == "app.py: interrupted\n"
