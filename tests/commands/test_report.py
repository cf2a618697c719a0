"""`--report` and `--usage` as their user types them."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from app import main
from services.telemetry import render_part_outcome
from tests.reporting.asked import asked

CONFIG = """
discord: {team_member_ids: [9]}
search: {embeddings: none}
ai_response:
  llm: {base_url: "http://127.0.0.1:9/v1", api_key: k, model: m, price_per_million: {prompt: 2.0, completion: 4.0}}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A bot that was asked the same twice yesterday, and something else a year ago."""
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG)
    now = time.time()
    ends = [
        asked("Does it run on Solaris?", at=now - 3600, tokens={"gate": (500_000, 0)}, llm_calls=1),
        asked("will it run on Solaris", at=now - 7200, author_id=5),
        asked("Where is the barn?", at=now - 365 * 86_400),
    ]
    for entry in ends:
        file = tmp_path / "data" / "state" / "outcomes" / f"{entry.day}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("ab") as out:
            out.write(render_part_outcome(entry))
    today = {ends[0].day: {"gate": [2, 500_000, 250_000], "summarise": [1, 500_000, 0]}}
    (tmp_path / "data" / "state" / "tokens.json").write_text(json.dumps(today))
    return path


def test_a_report_names_what_was_asked_and_not_answered(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Pitfall 74."""
    assert main(["--config", str(config), "--report"]) == 0
    printed = capsys.readouterr().out
    assert "2 questions: 0 answered, 2 without a reply." in printed
    assert "2 questions by 2 people (no sources 2)" in printed
    assert "barn" not in printed


def test_a_report_goes_back_as_far_as_it_is_asked_to(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--config", str(config), "--report", "--since", "60w"]) == 0
    assert "Where is the barn?" in capsys.readouterr().out


def test_a_report_is_written_as_a_page(config: Path, tmp_path: Path) -> None:
    assert main(["--config", str(config), "--report", "--html", str(tmp_path / "week.html")]) == 0
    assert "Does it run on Solaris?" in (tmp_path / "week.html").read_text()


def test_usage_adds_up(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--config", str(config), "--usage"]) == 0
    printed = capsys.readouterr().out
    assert "| total | 3 | 1,000,000 | 250,000 | 3.0000 |" in printed
    assert "| help (7) | 1 | 500,000 | 0 | 1.0000 |" in printed
    assert "| all else | 2 | 500,000 | 250,000 | 2.0000 |" in printed


def test_the_data_of_a_replay_are_told_up_to_its_last_day(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    day = "2019-01-04"
    old = asked("Where is the mill?", at=1_546_600_000.0)
    file = tmp_path / "replayed" / "state" / "outcomes" / f"{day}.jsonl"
    file.parent.mkdir(parents=True)
    file.write_bytes(render_part_outcome(old))
    assert main(["--config", str(config), "--report", "--data", str(tmp_path / "replayed")]) == 0
    assert "Where is the mill?" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--report", "--data", "nowhere"], "--data: nowhere is no folder"),
        (["--check", "--since", "7d"], "--since works only with --report or --usage"),
        (["--usage", "--html", "x.html"], "--html works only with --report"),
    ],
)
def test_what_cannot_be_told_is_one_line(
    config: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--config", str(config), *arguments]) == 2
    assert said in capsys.readouterr().err


def test_without_a_data_folder_that_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.yaml").write_text("")
    assert main(["--config", str(tmp_path / "config.yaml"), "--report"]) == 2
    assert "app.data_dir" in capsys.readouterr().err


@pytest.mark.parametrize("since", ["7", "d", "-1d", "0d", "soon", "1e300d", "110000w"])
def test_a_time_that_is_none_is_refused(since: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--report", "--since", since])
    assert (ended.value.code, "--since" in capsys.readouterr().err) == (2, True)
