"""Real recordings through `--replay`: the same bytes twice, every message accounted for. `examples/test_demo_replay.py`
is about that of the demo.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import app
from benchmarks.evaluation import data
from commands.replay import ReplayOptions, replay
from settings import load
from sinks.results import ResultCounts

ROOT = Path(__file__).parents[2]
RECORDINGS = data.folder() / "recordings"
DEMO = ROOT / "examples" / "demo.jsonl"


def recordings() -> Iterator[Any]:
    for name, messages in (("stripe-0.jsonl", 1200), ("rust-2.jsonl", 1188)):
        path = RECORDINGS / name
        absent = pytest.mark.skipif(not path.exists(), reason=f"{name} is not in the folder that {data.VARIABLE} names")
        yield pytest.param(path, messages, marks=absent, id=name)


CONFIG = ROOT / "examples" / "demo.yaml"


def replaying(recording: Path, data: Path) -> subprocess.Popen[bytes]:
    """The program as a process of its own, told who the staff are where that is known."""
    gold = recording.with_suffix(".gold.json")
    staff = list(json.loads(gold.read_text())["staff"].values()) if gold.exists() else []
    environment = {**os.environ, "APP__DISCORD__TEAM_MEMBER_IDS": json.dumps(staff)} if staff else None
    command = [sys.executable, "app.py", "--config", CONFIG, "--replay", recording, "--data", data, "--json"]
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE)


def files_below(folder: Path) -> dict[Path, tuple[int, int]]:
    found = (path for path in folder.rglob("*") if "__pycache__" not in path.parts)
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in found}


@pytest.mark.slow
@pytest.mark.parametrize(("recording", "messages"), list(recordings()))
def test_two_replays_print_the_same_bytes_and_lose_no_message(recording: Path, messages: int, tmp_path: Path) -> None:
    """Pitfall 50: and nothing is written but to the folder of the replay."""
    before = files_below(ROOT / "examples")
    folders = [tmp_path / "one", tmp_path / "two"]
    runs = [replaying(recording, data) for data in folders]
    printed = [run.communicate()[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    kept = [
        {str(path.relative_to(data)): path.read_bytes() for path in data.rglob("*") if path.is_file()}
        for data in folders
    ]
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
    config: Path,
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Pitfall 50."""
    temporary = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    monkeypatch.setenv("APP__DISCORD__TEAM_MEMBER_IDS", "[412035003187200021, 605550123417600022]")
    before = files_below(config.parent), files_below(ROOT / "examples")
    replay(load(config), ReplayOptions(DEMO, as_json=True))
    assert list(temporary.iterdir()) == []
    assert (files_below(config.parent), files_below(ROOT / "examples")) == before
    counts = json.loads(capsys.readouterr().out.splitlines()[-1])["summary"]
    assert counts["captured"] > 0
    assert counts["parts"] > 40


def test_a_replay_that_is_interrupted_says_how_far_it_came(
    config: Path, export: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def interrupted(*_: object, counts: ResultCounts, **_more: object) -> bool:
        counts.messages, counts.latest_at = 2, 1_773_230_400.0
        raise KeyboardInterrupt

    monkeypatch.setattr("commands.replay.play", interrupted)
    assert app.main(["--config", str(config), "--replay", str(export)]) == 1
    assert capsys.readouterr().err == "app.py: interrupted: 2 messages replayed, until 2026-03-11 12:00\n"
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert app.main(["--config", str(config), "--replay", str(export)]) == 1
    assert capsys.readouterr().err.startswith("\napp.py: interrupted"), "below the terminal's ^C"
