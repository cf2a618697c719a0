"""Recordings with long silences, and with time stamps that jump."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from clock import VirtualLoop, rfc3339
from commands.replay import ReplayOptions, replay
from model.messages import DISCORD_EPOCH_MS
from settings import Settings

START = 1_771_200_000.0
YEAR = 365 * 86_400.0
ANN, BEN, KIM = 101, 102, 50  # Kim is of the team


def said(number: int, author: int, text: str, reply_to: str | None = None) -> dict[str, Any]:
    message_id = ((round(START * 1000) - DISCORD_EPOCH_MS) << 22) + number
    payload: dict[str, Any] = {
        "id": str(message_id),
        "channel_id": "11",
        "guild_id": "9",
        "author": {"id": str(author), "username": f"user{author}"},
        "content": text,
    }
    return payload if reply_to is None else payload | {"message_reference": {"message_id": reply_to}}


def recorded(path: Path, silence: float) -> None:
    """Two questions, the first with an answer of the team; the second comes `silence` seconds after the answer."""
    guild = {"id": "9", "name": "g", "channels": [{"id": "11", "type": 0, "name": "help"}], "threads": []}
    asked = said(1, ANN, "How do I skip raw files?")
    answer = said(2, KIM, "Set skip_raw in the importer.", asked["id"])
    again = said(3, BEN, "How do I import from a phone?")
    lines = [(0.0, "GUILD_CREATE", guild)]
    lines += [(at, "MESSAGE_CREATE", each) for at, each in ((1.0, asked), (10.0, answer), (10.0 + silence, again))]
    path.write_text("".join(json.dumps({"at": rfc3339(START + at), "t": t, "d": d}) + "\n" for at, t, d in lines))


@pytest.fixture
def timers(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """For when timers were set on virtual clocks."""
    seen: list[float] = []
    call_at = VirtualLoop.call_at

    def noted(loop: VirtualLoop, when: float, *arguments: Any, **context: Any) -> asyncio.TimerHandle:
        seen.append(when)
        return call_at(loop, when, *arguments, **context)

    monkeypatch.setattr(VirtualLoop, "call_at", noted)
    return seen


@pytest.mark.parametrize("silence", [YEAR, 1000 * YEAR, -YEAR], ids=["a year", "a thousand years", "backwards"])
def test_a_silence_takes_no_time(
    silence: float, tmp_path: Path, capsys: pytest.CaptureFixture[str], timers: list[float]
) -> None:
    """Pitfall 69: what is replayed is the same as after an hour's silence, and so is the work."""
    settings = Settings.model_validate({"discord": {"team_member_ids": [KIM]}}).resolve_paths(tmp_path)
    printed: list[list[dict[str, Any]]] = []
    work: list[int] = []
    for seconds in (3600.0, silence):
        recorded(tmp_path / "day.jsonl", seconds)
        timers.clear()
        assert replay(settings, ReplayOptions(tmp_path / "day.jsonl", as_json=True)) == 0
        lines = [json.loads(line) | {"at": "", "qa_id": ""} for line in capsys.readouterr().out.splitlines()]
        # What comes from the past waits for nobody, and may be through first.
        printed.append(sorted(lines, key=lambda line: str(line.get("message_ids"))))
        work.append(len(timers))
    expected, found = printed
    assert found == expected
    assert [line.get("outcome") for line in found] == [None, "cancelled", "captured", "skipped"]
    assert work[1] < work[0] + 10
