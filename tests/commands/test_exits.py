"""What can go wrong on the command line: one readable line, and the right exit code."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import stat
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

import app
from commands.arguments import BOT, COMMANDS, OPTIONS, flag
from commands.dispatch import asks_a_model
from commands.replay import backend
from services.storage.data_folder import lock
from settings import load
from tests.commands.conftest import SECRET_KEY, SECRET_TOKEN

ROOT = Path(__file__).parents[2]

COMMANDS_THAT_ASK = ("ask", "eval", "init_kb", "regen", "replay", "bot")
REPOSITORY = Path(__file__).parents[2]


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("app.py: ")
    assert err.count("\n") == 1
    assert SECRET_TOKEN not in err
    assert SECRET_KEY not in err
    return err.strip()


def run(config: Path, *arguments: object) -> int:
    return app.main(["--config", str(config), *map(str, arguments)])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--data", "x"], "--data works only with --replay"),
        (["--json", "--ask", "q"], "--json works only with --replay"),
        (["--speed", "2", "--check"], "--speed works only with --replay"),
        (["--record", "x", "--check"], "--record works only while the bot runs"),
        (["--record", "x", "--ask", "q"], "--record works only while the bot runs"),
        (["--llm-record", "x", "--check"], "--llm-record works only with --replay or --ask"),
        (["--llm-replay", "x", "--forget", "5"], "--llm-replay works only with --replay or --ask"),
        (["--ask", " "], "--ask needs a question"),
    ],
)
def test_options_that_would_be_ignored_are_refused(
    config: Path, capsys: pytest.CaptureFixture[str], arguments: Sequence[str], words: str
) -> None:
    assert run(config, *arguments) == 2
    assert words in one_line(capsys)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--speed", "0"],
        ["--speed", "nan"],
        ["--speed", "fast"],
        ["--forget", "ada"],
        ["--forget", "-5"],
        ["--forget", "0"],
        ["--forget", "99999999999999999999999999"],
        ["--check", "--ask", "q"],
    ],
)
def test_values_that_make_no_sense_are_refused_by_the_parser(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        app.main(arguments)
    assert caught.value.code == 2
    said = capsys.readouterr().err
    assert arguments[0] in said
    assert said.count("\n") == 1, "one line, without the list of all options"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("discrd: {}\n", "discrd is not a known key"),
        ("discord: {message_batch_wait_seconds: -1}\n", "discord.message_batch_wait_seconds must be"),
        (f"discord: {{token: [{SECRET_TOKEN}]}}\n", "discord.token must be"),
        ("app: [\n", "config.yaml"),
        ("app: {}\n", "discord.token is not set: copy the bot's token"),
        ("discord: {token: REPLACE_ME}\n", "into .env as APP__DISCORD__TOKEN=…"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_told_by_its_key_and_never_by_its_value(
    config: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    """Pitfalls 22 and 45."""
    config.write_text(text)
    assert run(config) == 2
    assert words in one_line(capsys)


def test_a_key_from_the_environment_is_not_told_either(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pitfall 22."""
    monkeypatch.setenv("APP__AI_RESPONSE__LLM__API_KEY", SECRET_KEY)
    assert run(config, "--check") == 2
    assert "needs base_url and model" in one_line(capsys)


def test_a_missing_configuration_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path / "nowhere.yaml", "--check") == 2
    assert "nowhere.yaml: there is no such file" in one_line(capsys)


def test_a_recording_that_is_missing_or_a_folder_is_named(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in (tmp_path / "nowhere.jsonl", tmp_path):
        assert run(config, "--replay", path) == 2
        assert f"{path}: cannot be read" in one_line(capsys)


def test_a_replay_refuses_the_folder_of_the_bot(
    config: Path, tmp_path: Path, export: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pitfall 50."""
    (tmp_path / "alias").symlink_to(tmp_path / "data")
    for folder in ("data", "alias", "data/../data", "data/knowledge-base"):
        assert run(config, "--replay", export, "--data", tmp_path / folder) == 2
        assert "a replay works in a folder of its own" in one_line(capsys)


def test_a_replay_refuses_a_file_for_a_folder(config: Path, export: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(config, "--replay", export, "--data", export) == 2
    assert "(it is a file)" in one_line(capsys)
    assert run(config, "--replay", export, "--data", export / "below") == 2
    assert "cannot be used as a folder" in one_line(capsys)


def test_a_replay_with_a_folder_of_its_own_leaves_the_bots_alone(
    config: Path, tmp_path: Path, export: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pitfall 50. And its log says no more than what went wrong."""
    before = sorted((tmp_path / "data").rglob("*"))
    assert run(config, "--replay", export, "--json", "--data", tmp_path / "own") == 0
    out, err = capsys.readouterr()
    *outcomes, summary = map(json.loads, out.splitlines())
    assert [outcome["outcome"] for outcome in outcomes] == ["replied"]
    assert summary["summary"]["replied"] == 1
    assert " INFO " not in err
    assert sorted((tmp_path / "data").rglob("*")) == before
    assert (tmp_path / "own" / "state" / "usage.json").exists()


def test_recorded_exchanges_that_are_missing_are_named(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(config, "--ask", "How?", "--llm-replay", "/nowhere.jsonl") == 2
    assert "/nowhere.jsonl cannot be read" in one_line(capsys)


def test_what_is_made_is_for_its_owner_alone(config: Path) -> None:
    """Pitfall 68. And the process is left as it was."""
    mask = os.umask(0o022)
    try:
        data = load(config).app.data_dir
        before = {*data.rglob("*")}
        assert run(config, "--init-kb") == 0
        made = {path: stat.S_IMODE(path.stat().st_mode) for path in {*data.rglob("*")} - before}
        assert {path for path, mode in made.items() if mode & 0o077} == set()
        assert len(made) > 2
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(mask)


def test_there_is_nothing_to_record_without_a_model(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(config, "--ask", "How?", "--llm-record", tmp_path / "x.jsonl") == 2
    assert "there is no LLM to record" in one_line(capsys)
    assert run(config, "--ask", "How?", "--llm-record", export_name(tmp_path), "--llm-replay", tmp_path / "x") == 2
    assert "is the file of --llm-replay" in one_line(capsys)


@pytest.mark.parametrize(
    ("section", "commands"),
    [
        ("ai_response", {"ask", "eval", "init_kb", "regen", "replay", "bot"}),
        ("kb", {"init_kb", "regen", "replay", "bot"}),
        ("documents", {"replay", "bot"}),
    ],
)
def test_exchanges_are_recorded_with_whichever_model_a_command_asks(
    config: Path, section: str, commands: set[str]
) -> None:
    assert not any(asks_a_model(load(config), command) for command in COMMANDS_THAT_ASK)
    key = "synthesis_llm" if section == "documents" else "llm"
    model = "{base_url: 'http://127.0.0.1:9', api_key: k, model: m}"
    config.write_text(f"{config.read_text()}{section}: {{{key}: {model}}}\n")
    settings = load(config)
    assert {each for each in COMMANDS_THAT_ASK if asks_a_model(settings, each)} == commands


def test_a_replay_says_what_answers(config: Path) -> None:
    settings = load(config)
    assert backend(settings, None) == "no language model configured: answers are quotes from the knowledge base"
    assert backend(settings, config.with_name("day.llm.jsonl")) == "answers from the exchanges in day.llm.jsonl"


def export_name(folder: Path) -> Path:
    return folder / "down" / ".." / "x"


def unreachable(config: Path, port: int) -> None:
    llm = f"{{base_url: 'http://127.0.0.1:{port}/v1', api_key: {SECRET_KEY}, model: tiny, max_retries: 0}}"
    config.write_text(f"{config.read_text()}ai_response: {{llm: {llm}}}\n")


def test_a_file_for_exchanges_that_cannot_be_written_is_named(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unreachable(config, 9)
    for path in (tmp_path, tmp_path / "nowhere" / "x.jsonl"):
        assert run(config, "--ask", "How do I install it?", "--llm-record", path) == 2
        assert f"--llm-record: {path}: " in one_line(capsys)


def test_an_endpoint_that_cannot_be_reached_is_a_failure_and_no_misuse(
    config: Path, export: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pitfall 22: nor does the key show."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        unreachable(config, taken.getsockname()[1])
        assert run(config, "--ask", "How do I install it?") == 1
        assert run(config, "--replay", export) == 1
    out, err = capsys.readouterr()
    assert "Unavailable" in err
    assert "Unavailable at gate" in out
    assert SECRET_KEY not in out + err
    assert "Traceback" not in err


def test_a_data_folder_in_use_is_told_with_its_holder(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pitfall 42."""
    with lock(tmp_path / "data", "app.py --regen"):
        assert run(config, "--forget", "5") == 2
    assert "in use by app.py --regen" in one_line(capsys)


def test_a_data_folder_that_cannot_be_locked_is_named_by_its_key(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data" / ".lock").mkdir()
    assert run(config, "--forget", "5") == 2
    assert "app.data_dir: " in one_line(capsys)


def test_a_failure_amid_the_work_is_a_failure(config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "data" / "state" / "usage.json").mkdir(parents=True)
    assert run(config, "--forget", "5") == 1
    assert "usage.json: Is a directory" in one_line(capsys)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (KeyboardInterrupt(), "app.py: interrupted"),
        (OSError(28, "No space left on device"), "app.py: No space left on device"),
        (OSError("odd"), "app.py: odd"),
    ],
)
def test_what_ends_a_command_early_is_a_line_and_a_failure(
    config: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    line: str,
) -> None:
    def ends(settings: object, options: object) -> int:
        raise error

    monkeypatch.setattr("commands.check.run", ends)
    assert run(config, "--check") == 1
    assert one_line(capsys) == line


@pytest.mark.parametrize("style", ["text", "json"])
def test_a_bug_is_reported_with_its_traceback_and_without_secrets(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, style: str
) -> None:
    """Pitfall 22."""
    unreachable(config, 9)
    config.write_text(f"{config.read_text()}logging: {{format: {style}}}\n")

    def breaks(settings: object, options: object) -> int:
        logging.getLogger("x").error("sent %s", SECRET_KEY)
        raise RuntimeError(f"Authorization: Bot {SECRET_TOKEN}, Bearer {SECRET_KEY}")

    monkeypatch.setattr("commands.check.run", breaks)
    assert run(config, "--check") == 1
    _, err = capsys.readouterr()
    assert "this is a bug" in err
    assert "Traceback" in err
    assert "redacted" in err
    assert SECRET_KEY not in err
    assert SECRET_TOKEN not in err
    if style == "json":
        assert [json.loads(line)["level"] for line in err.splitlines()] == ["ERROR", "CRITICAL"]


def test_other_commands_leave_the_log_file_to_the_bot_and_say_less(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def looks(settings: object, options: object) -> int:
        seen.append(logging.getLogger().level)
        return 0

    monkeypatch.setattr("commands.check.run", looks)
    for level in ("INFO", "DEBUG", "ERROR"):
        config.write_text(f"logging: {{level: {level}, file: {{path: bot.log}}}}\n")
        assert run(config, "--check") == 0
    assert seen == [logging.WARNING, logging.DEBUG, logging.ERROR]
    assert not (tmp_path / "bot.log").exists()


@pytest.mark.parametrize("arguments", [["--json"], []])
def test_output_that_nobody_reads_any_more_ends_the_run_quietly(
    config: Path, export: Path, arguments: list[str]
) -> None:
    config.write_text(f"{config.read_text()}search: {{embeddings: none}}\n")
    replay = ["--config", str(config), "--replay", str(export), *arguments]
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "app.py", *replay], cwd=REPOSITORY, stdout=writing, stderr=subprocess.PIPE, check=False
        )
    finally:
        os.close(writing)
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr
    assert b"BrokenPipe" not in done.stderr


def test_the_whole_program_answers_one_question(config: Path) -> None:
    config.write_text(f"{config.read_text()}search: {{embeddings: none}}\n")
    asked = ["--config", str(config), "--ask", "How do I install Lanternfish?"]
    done = subprocess.run(
        [sys.executable, "app.py", *asked], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert "lanternfish setup" in done.stdout


def test_ctrl_c_while_the_program_loads_ends_it_without_a_traceback() -> None:
    """As a shell is used to: by the signal. A look at `services` while it is imported is a look in the midst."""
    script = (
        "import os, signal, sys\n"
        "sys.meta_path.insert(0, type('Interrupt', (), {'find_spec': lambda self, name, path=None, target=None:"
        " os.kill(os.getpid(), signal.SIGINT) if name == 'services' else None})())\n"
        "import app\n"
        "app.main(['--kb', 'list'])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=REPOSITORY, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")


@pytest.mark.parametrize("early", ["argparse", "commands"])
def test_ctrl_c_in_the_very_first_imports_ends_it_without_a_traceback(early: str) -> None:
    script = (
        "import os, runpy, signal, sys\n"
        "sys.meta_path.insert(0, type('Interrupt', (), {'find_spec': lambda self, name, path=None, target=None:"
        f" os.kill(os.getpid(), signal.SIGINT) if name == {early!r} else None}})())\n"
        f"sys.modules.pop({early!r}, None)\n"
        "sys.argv = ['app.py', '--kb', 'list']\n"
        "runpy.run_path('app.py', run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=REPOSITORY, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")


def test_afterwards_ctrl_c_is_what_it_was() -> None:
    before = signal.getsignal(signal.SIGINT)
    with app.sigint_ends_at_once():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) is before


def test_the_help_names_every_command_that_takes_a_server() -> None:
    *others, last = map(flag, OPTIONS["guild"].commands)
    assert f"with {', '.join(others)} and {last}" in app.parser().format_help()


def test_the_readme_names_every_command_and_every_option_of_the_running_bot() -> None:
    readme = (ROOT / "README.md").read_text()
    running = [name for name, option in OPTIONS.items() if BOT in option.commands or not option.commands]
    assert [name for name in map(flag, [*COMMANDS, *running]) if f"`{name}" not in readme] == []


def test_the_version_is_that_of_the_project(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        app.main(["--version"])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (ended.value.code, capsys.readouterr().out) == (0, f"millrace {project['version']}\n")


def test_a_python_without_the_packages_is_one_line() -> None:
    """As somebody who has not read that there is an environment."""
    hidden = "import sys; sys.modules['pydantic'] = None; import app; sys.exit(app.main(['--check']))"
    done = subprocess.run([sys.executable, "-c", hidden], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "app.py: this Python has no package pydantic: run it with .venv/bin/python, which `make demo` sets up\n"
    )
