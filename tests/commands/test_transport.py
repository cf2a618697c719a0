"""What the transport has to do with the command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import app
from commands.arguments import parse_roles

ROOT = Path(__file__).parents[2]
IMPORTS = """
import sys, app
from commands import ask, dispatch, live, replay
from commands.dispatch import run
print([name for name in sys.modules if name.partition(".")[0] in {"nats", "transport"}])
"""


def said(capsys: pytest.CaptureFixture[str], tmp_path: Path, transport: str, *arguments: str) -> tuple[int, str]:
    config = tmp_path / "config.yaml"
    config.write_text(f"transport: {transport}\napp:\n  data_dir: {tmp_path / 'data'}\n")
    code = app.main(["--config", str(config), *arguments])
    return code, capsys.readouterr().err


def test_one_process_imports_nothing_of_nats() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTS], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_roles_come_in_one_order_and_unknown_ones_are_named() -> None:
    assert parse_roles("worker, gateway") == ("gateway", "worker")
    with pytest.raises(Exception, match="there is no role 'cook': write some of gateway,worker,team,knowledge"):
        parse_roles("worker,cook")


@pytest.mark.parametrize("option", [["--role", "worker"], ["--shards", "0/1"]])
def test_roles_need_servers(option: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, line = said(capsys, tmp_path, "local", *option)
    assert code == 2
    assert line == f"app.py: {option[0]} needs servers of NATS: set transport to nats://…, or leave it out\n"


@pytest.mark.parametrize("command", [["--report"], ["--regen"], ["--init-kb"], ["--ask", "why?"]])
def test_commands_on_files_say_how_to_come_by_them(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, line = said(capsys, tmp_path, "nats://127.0.0.1:9", *command)
    assert code == 2
    assert line.startswith(f"app.py: {command[0]} works on files: take them out of NATS with --export DIR")
    assert line.count("\n") == 1


def test_what_is_no_address_names_the_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in ("http://127.0.0.1", "nats://user:secret@127.0.0.1", "nats://a,b"):
        code, line = said(capsys, tmp_path, wrong)
        assert code == 2
        assert "transport" in line
        assert "secret" not in line


def test_a_rehearsal_takes_no_messages_from_those_who_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, line = said(capsys, tmp_path, "nats://127.0.0.1:9", "--dry-run")
    assert code == 2
    assert line.startswith("app.py: app.dry_run: a rehearsal needs transport: local")


def test_files_of_threads_are_in_one_store(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("APP__DOCUMENTS__STORE", "http://127.0.0.1:9")
    code, line = said(capsys, tmp_path, "nats://127.0.0.1:9")
    assert code == 2
    assert line == (
        "app.py: documents.store: over NATS files are kept in its buckets: set it to embedded, or transport: local\n"
    )
