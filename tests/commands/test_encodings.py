"""What is printed where the encoding of stdout lacks a letter: nothing is lost, and nothing ends in a traceback."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

import app
from services.storage import files
from tests.commands.evaluating.test_from_votes import Bot

LETTERS = "Gr\u00fc\u00dfe \u6f22 \U0001f600"
REPOSITORY = Path(__file__).parents[2]
ESCAPED = {
    "ascii": r"Gr\u00fc\u00dfe \u6f22 \ud83d\ude00",
    "iso8859-1": "Gr\u00fc\u00dfe \\u6f22 \\ud83d\\ude00",
    "utf-8": LETTERS,
}

Printed = Callable[..., str]


@pytest.fixture(params=list(ESCAPED))
def encoding(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def printed(encoding: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Printed:
    """Run a command; give what it prints, in the encoding of the terminal."""

    def run(*arguments: object) -> str:
        shown = io.BytesIO()
        with monkeypatch.context() as patched, io.TextIOWrapper(shown, encoding=encoding) as out:
            patched.setattr(sys, "stdout", out)
            code = app.main([*map(str, arguments)])
            out.flush()
            assert code == 0, capsys.readouterr().err
            return shown.getvalue().decode(encoding)

    return run


def test_what_forgetting_has_left_is_named_in_full(config: Path, printed: Printed, encoding: str) -> None:
    path = config.parent / "data" / f"{LETTERS}.txt"
    files.replace(path, b"of an operator")
    out = printed("--config", config, "--forget", 1)
    assert f"{ESCAPED[encoding]}.txt: none of this program's, not looked into" in out
    assert "Out of reach:" in out


def test_lines_of_json_are_read_as_they_were(config: Path, export: Path, printed: Printed) -> None:
    base = config.parent / "data" / "knowledge-base"
    (base / "sources" / "install.md").rename(base / "sources" / f"{LETTERS}.md")
    index = base / "index.txt"
    index.write_text(index.read_text().replace("install.md", f"{LETTERS}.md"), encoding="utf-8")
    lines = printed("--config", config, "--replay", export, "--json").splitlines()
    assert [json.loads(line).get("sources") for line in lines] == [[f"kb:{LETTERS}.md"], None]


def test_questions_that_are_made_of_votes_are_read_as_they_were(tmp_path: Path, printed: Printed) -> None:
    bot = Bot(tmp_path)
    bot.answered(f"Is it {LETTERS}: yes or no?", "up")
    (entry,) = yaml.safe_load(printed("--config", bot.config, "--eval", "--from-votes"))["questions"]
    assert entry["question"] == f"Is it {LETTERS}: yes or no?"


@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_what_is_printed_to_a_closed_stream_is_dropped(config: Path, closed: str) -> None:
    line = ["sh", "-c", f'exec "$0" "$@" {closed}', sys.executable, "app.py", "--config", str(config), "--report"]
    done = subprocess.run(line, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr + done.stdout
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("command", "closed"),
    [
        *((command.split(), "stdout") for command in ("--kb list", "--forget 1", "--usage")),
        *((["--report"], closed) for closed in ("stdin", "stderr")),
    ],
)
def test_no_command_fails_where_a_stream_is_closed(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: list[str], closed: str
) -> None:
    """Python has None for a stream whose descriptor is closed."""
    monkeypatch.setattr(sys, closed, None)
    assert app.main(["--config", str(config), *command]) == 0
    getattr(sys, closed).close()
    monkeypatch.undo()
    assert capsys.readouterr().err == ""
