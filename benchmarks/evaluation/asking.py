"""The program itself over a folder of documents, as its users run it: `--init-kb`, then `--replay --json`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.evaluation.judging import Counts, Line, judged
from benchmarks.evaluation.questions import Question, record

ROOT = Path(__file__).parents[2]


class Failed(Exception):
    """The program ended with an error, which is the text."""


def prepared(documents: Path, folder: Path, settings: Mapping[str, Any] | None = None) -> Path:
    """Build the index of `documents` in `folder`; gives the configuration: the defaults but for `settings`."""
    config = folder / "config.yaml"
    kb = {"kb": {"sources_dir": str(documents)}, "app": {"data_dir": str(folder / "data")}}
    # JSON is YAML.
    config.write_text(json.dumps({**kb, **(settings or {})}), encoding="utf-8")
    _run(config, "--init-kb")
    return config


def asked(questions: Sequence[Question], config: Path, *, addressed: bool) -> tuple[dict[str, str], list[Line]]:
    """Ask all questions in a chat: the question's id of each message, and what was printed."""
    recording = config.with_name("addressed.jsonl" if addressed else "asked.jsonl")
    ids = record(questions, recording, addressed=addressed)
    return ids, replayed(recording, config)[0]


def counted(questions: Sequence[Question], config: Path, *, addressed: bool) -> Counts:
    """Ask all questions, and count what they came to."""
    ids, lines = asked(questions, config, addressed=addressed)
    return judged(questions, ids, lines, may_point=addressed)


def replayed(recording: Path, config: Path) -> tuple[list[Line], Mapping[str, Any]]:
    """The lines of a replay, and its summary."""
    *lines, last = map(json.loads, _run(config, "--replay", str(recording), "--json").splitlines())
    return lines, last["summary"]


def _run(config: Path, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("APP__")}
    command = [sys.executable, "app.py", "--config", str(config), *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True)  # noqa: S603 (our own)
    if done.returncode:
        raise Failed(f"{' '.join(command[1:])} ended with {done.returncode}: {done.stderr.strip()[-2_000:]}")
    return done.stdout
