"""What keeps commands in order while they run."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Generator
from pathlib import Path

import pytest

import app
from assembly.running import terminated_as_interrupted


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


def test_sigterm_ends_a_replay_as_ctrl_c_does(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or its temporary folder would stay."""

    def replay(*_: object) -> int:
        signal.raise_signal(signal.SIGTERM)
        return 0

    monkeypatch.setattr("commands.replay.replay", replay)
    (tmp_path / "day.jsonl").touch()
    # What would end the tests must end only the command.
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        assert app.main(["--config", str(config), "--replay", str(tmp_path / "day.jsonl")]) == 1
    finally:
        signal.signal(signal.SIGTERM, before)
    assert capsys.readouterr().err == "app.py: interrupted\n"
