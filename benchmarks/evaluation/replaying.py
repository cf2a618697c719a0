"""A recording through the program itself, and what is read of its annotations: the staff before, the rest after."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console

from benchmarks.evaluation.conversations import Captured, Result, Written, result
from benchmarks.evaluation.data import gold_of
from commands.replay import ReplayOptions, replay
from model.events import Posted
from services.discord.recordings import read
from services.discord.wire import Decoder
from services.team import DecisionLog, archive_files
from services.team.archive import Pair, Speaker
from settings import load

ROOT = Path(__file__).parents[2]


def staff_of(recording: Path) -> list[str]:
    """The ids of the staff: all that a run is told of the annotations."""
    return list(json.loads(gold_of(recording).read_text(encoding="utf-8"))["staff"].values())


def configured(recording: Path, folder: Path, discord: Mapping[str, object] | None = None) -> Path:
    """A configuration with the staff's ids, and otherwise the defaults but for `discord`."""
    path = folder / "config.yaml"
    # JSON is YAML.
    path.write_text(json.dumps({"discord": {"team_member_ids": staff_of(recording), **(discord or {})}}))
    return path


def replayed(recording: Path, config: Path, data: Path) -> int:
    """Replay into the folder `data`; give the exit code."""
    settings = load(config, {})
    return replay(settings, ReplayOptions(recording, data=data), Console(file=io.StringIO()))


def replayed_apart(recording: Path, config: Path, data: Path, seed: int = 4711) -> int:
    """The same in a process of its own, with other hashes: nothing may depend on the order of a set."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("APP__")}
    command = [sys.executable, "app.py", "--config", config, "--replay", recording, "--data", data, "--json"]
    done = subprocess.run(  # noqa: S603 (our own)
        command,
        cwd=ROOT,
        env={**environment, "PYTHONHASHSEED": str(seed)},
        check=False,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return done.returncode


def pairs_in(data: Path) -> list[Pair]:
    return archive_files.pairs_in(data / "team-knowledge" / "raw")


def filed_in(data: Path) -> int:
    """How many captures were classified: all but those that a later one of their conversation overtook."""
    decisions = DecisionLog(data / "team-knowledge" / "decisions.jsonl").read()
    return sum("later capture of the same conversation" not in each.reason for each in decisions)


def content_of(data: Path) -> dict[str, bytes]:
    """Every file, by its path below `data`."""
    return {str(path.relative_to(data)): path.read_bytes() for path in sorted(data.rglob("*")) if path.is_file()}


def last_captures(data: Path) -> dict[str, Pair]:
    """The last pair of each conversation."""
    return {pair.conversation_id: pair for pair in pairs_in(data)}


def judged(recording: Path, data: Path) -> Result:
    """What a run that is over has captured: of each conversation its last pair."""
    last = last_captures(data)
    gold = json.loads(gold_of(recording).read_text(encoding="utf-8"))
    return result(
        captured=[Captured(pair.message_ids, askers_in(pair)) for pair in last.values()],
        annotated=[[int(i) for i in conversation] for conversation in gold["conversations"]],
        written=written_in(recording),
        staff={int(i) for i in gold["staff"].values()},
    )


def askers_in(pair: Pair) -> set[int]:
    said = zip(pair.author_ids, pair.turns, strict=True)
    return {author_id for author_id, turn in said if turn.speaker is Speaker.USER}


def written_in(recording: Path) -> dict[int, Written]:
    decoder = Decoder()
    return {
        event.message.id: Written(
            event.message.author.id, None if event.message.reply_to is None else event.message.reply_to.message_id
        )
        for dispatch in read(recording)
        for event in decoder.decode(dispatch)
        if isinstance(event, Posted)
    }
