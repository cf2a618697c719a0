"""Recordings, real and made up, through `--replay`: the same bytes twice, every message accounted for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from commands.replay import ReplayOptions, replay
from settings import Settings, load

ROOT = Path(__file__).parents[2]
RECORDINGS = ROOT.parent / "shared" / "recordings"
DEMO = ROOT / "examples" / "demo.jsonl"


def recordings() -> Iterator[Any]:
    for name, messages in (("stripe-0.jsonl", 1200), ("rust-2.jsonl", 1188)):
        path = RECORDINGS / name
        absent = pytest.mark.skipif(not path.exists(), reason=f"{name} is not there")
        yield pytest.param(path, messages, marks=absent, id=name)
    yield pytest.param(DEMO, sum("MESSAGE_CREATE" in line for line in DEMO.read_text().splitlines()), id="demo")


def settings_for(recording: Path) -> Settings:
    settings = load(ROOT / "examples" / "demo.yaml")
    gold = recording.with_suffix(".gold.json")
    if not gold.exists():
        return settings
    staff = json.loads(gold.read_text())["staff"].values()
    discord = settings.discord.model_copy(update={"team_member_ids": frozenset(map(int, staff))})
    return settings.model_copy(update={"discord": discord})


def files_below(folder: Path) -> dict[Path, tuple[int, int]]:
    found = (path for path in folder.rglob("*") if "__pycache__" not in path.parts)
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in found}


@pytest.mark.parametrize(("recording", "messages"), list(recordings()))
def test_two_replays_print_the_same_bytes_and_lose_no_message(
    recording: Path, messages: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pitfall 50: and nothing is written but to the folder of the replay."""
    settings = settings_for(recording)
    before = files_below(ROOT / "examples")
    printed: list[str] = []
    kept: list[dict[str, bytes]] = []
    for name in ("one", "two"):
        data = tmp_path / name
        replay(settings, ReplayOptions(recording, data=data, as_json=True))
        printed.append(capsys.readouterr().out)
        kept.append({str(path.relative_to(data)): path.read_bytes() for path in data.rglob("*") if path.is_file()})
    assert printed[0] == printed[1]
    assert kept[0] == kept[1]
    assert files_below(ROOT / "examples") == before
    *lines, last = map(json.loads, printed[0].splitlines())
    summary = last["summary"]
    assert summary["messages"] == messages
    assert summary["messages"] == (summary["removed"] + summary["messages_in_parts"] + sum(summary["ignored"].values()))
    assert summary["parts"] == len(lines)
    assert sum(len(line["message_ids"]) for line in lines) == summary["messages_in_parts"]


def test_a_replay_without_a_data_folder_leaves_nothing_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pitfall 50."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = files_below(ROOT / "examples")
    replay(settings_for(DEMO), ReplayOptions(DEMO, as_json=True))
    assert list(tmp_path.iterdir()) == []
    assert files_below(ROOT / "examples") == before
    assert capsys.readouterr().out
