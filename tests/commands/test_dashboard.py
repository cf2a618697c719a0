"""`--dashboard` as its user types it: what a data folder holds is shown, and nothing of it is written."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from app import main
from clock import rfc3339
from services.telemetry import render_part_outcome
from tests.dashboard.made import REPLIED, UNANSWERED
from tests.services.team.pairs import captured, store

ROOT = Path(__file__).parents[2]
CONFIG = "discord: {team_member_ids: [9]}\nsearch: {embeddings: none}\ndashboard: {show_texts: true}\n"

pytestmark = pytest.mark.real_time


@pytest.fixture
def rehearsal(tmp_path: Path) -> Path:
    """What a replay of a day long ago has kept."""
    (tmp_path / "config.yaml").write_text(CONFIG)
    outcomes = tmp_path / "rehearsal" / "state" / "outcomes"
    outcomes.mkdir(parents=True)
    for entry in (replace(REPLIED, channel="help"), replace(UNANSWERED, place_id=5)):
        with (outcomes / f"{entry.day}.jsonl").open("ab") as file:
            file.write(render_part_outcome(entry))
    vote: dict[str, object] = {
        "at": rfc3339(REPLIED.at),
        "message_id": "7",
        "voter": "v",
        "question": REPLIED.question,
        "sources": [],
    }
    (tmp_path / "rehearsal" / "feedback.jsonl").write_text(json.dumps({**vote, "vote": "down"}))
    store(tmp_path / "rehearsal", captured(1, "How are locks oiled?", "With graphite."))
    return tmp_path / "rehearsal"


def contents(folder: Path) -> Mapping[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@contextmanager
def shown(*arguments: str) -> Generator[str]:
    """Run the command; gives the address that it prints."""
    command = [sys.executable, "-u", str(ROOT / "app.py"), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            said = process.stdout.readline()
            found = re.search(r"is shown at (http://127\.0\.0\.1:\d+/) ", said)
            assert found is not None, process.stderr.read()
            yield found[1]
            os.kill(process.pid, signal.SIGINT)
            assert process.wait(20) == 0
        finally:
            process.kill()


def page(address: str) -> str:
    with urllib.request.urlopen(address) as response:  # noqa: S310 (our own program)
        return response.read().decode()


def test_a_rehearsal_is_looked_at_afterwards_and_stays_as_it_is(rehearsal: Path) -> None:
    before = contents(rehearsal)
    config = ("--config", str(rehearsal.parent / "config.yaml"))
    with shown(*config, "--dashboard", "--data", str(rehearsal)) as address:
        first = page(address)
        assert f"This is what {rehearsal} holds." in first
        assert "2026-02-02" in first  # the end of the rehearsal, not today
        assert re.search(r"<dt>Asked</dt><dd>2</dd>", first)
        assert "Does the quota count deleted snapshots?" in first
        assert "Is it well?" not in first
        assert 'href="/answers/a1">Check an answer voted down' in first
        answers = page(f"{address}answers")
        assert "#help" in answers
        assert "1 down" in answers
        assert "Dismiss" not in page(f"{address}gaps")
        assert "1 captured in all" in page(f"{address}knowledge?q=locks")
        with pytest.raises(urllib.error.HTTPError, match="404"):
            page(f"{address}flow")
    assert contents(rehearsal) == before


def test_without_data_it_is_the_folder_of_the_bot(rehearsal: Path) -> None:
    (rehearsal.parent / "config.yaml").write_text(f"{CONFIG}app: {{data_dir: {rehearsal}}}\n")
    with shown("--config", str(rehearsal.parent / "config.yaml"), "--dashboard") as address:
        assert f"This is what {rehearsal} holds." in page(address)
    assert rehearsal.exists()


@pytest.mark.parametrize(("more", "key"), [((), "app.data_dir"), (("--data", "nowhere"), "--data")])
def test_a_folder_that_is_not_there_is_one_line(
    more: tuple[str, ...], key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.yaml").write_text(CONFIG)
    assert main(["--config", str(tmp_path / "config.yaml"), "--dashboard", *more]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"app.py: {key}: ")
    assert said.count("\n") == 1
