"""The unit of systemd: what systemd thinks of it, and that it fits what the program does."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

from assembly.running import CANCELLED_GRACE_SECONDS
from commands.arguments import UNUSABLE
from settings import Settings, load

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "deploy" / "millrace.service"
ANALYZE = shutil.which("systemd-analyze")
MAX_EXPOSED = 2.0
"""Of 10, as `systemd-analyze security` counts."""

needs_systemd = pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not installed")


def values(key: str) -> list[str]:
    return re.findall(rf"^{key}=(.*)$", UNIT.read_text(), re.MULTILINE)


def analyzed(*arguments: str) -> subprocess.CompletedProcess[str]:
    assert ANALYZE is not None
    return subprocess.run([ANALYZE, *arguments], capture_output=True, text=True, check=False)


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The unit, with an interpreter that is there."""
    installed = tmp_path / "millrace.service"
    text = UNIT.read_text().replace("/opt/millrace/.venv/bin/python", sys.executable)
    installed.write_text(text.replace("/opt/millrace", str(ROOT)))
    return installed


@needs_systemd
def test_systemd_finds_nothing_wrong(unit: Path) -> None:
    done = analyzed("verify", str(unit))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@needs_systemd
def test_a_mistake_would_be_found(unit: Path) -> None:
    unit.write_text(unit.read_text().replace("MemoryMax=2G", "MemoryMax=plenty"))
    assert "plenty" in analyzed("verify", str(unit)).stderr


@needs_systemd
def test_little_of_the_machine_is_open_to_it(unit: Path) -> None:
    said = analyzed("security", "--offline=true", "--no-pager", str(unit)).stdout
    exposure = re.search(r"Overall exposure level for millrace\.service: ([\d.]+)", said)
    assert exposure is not None, said
    assert float(exposure[1]) <= MAX_EXPOSED


def test_each_key_has_one_meaning() -> None:
    sections = ConfigParser(strict=False, interpolation=None, delimiters=("=",))
    sections.read(UNIT)
    assert sections.sections() == ["Unit", "Service", "Install"]
    keys = re.findall(r"^(\w+)=", UNIT.read_text(), re.MULTILINE)
    assert {key for key in keys if keys.count(key) > 1} == {"Environment", "SystemCallFilter"}


def test_its_data_is_where_it_may_write(tmp_path: Path) -> None:
    (state,) = values("StateDirectory")
    config = tmp_path / "config.yaml"
    config.write_text((ROOT / "config.yaml").read_text())
    settings = load(config, dict(pair.split("=", 1) for pair in values("Environment")))
    assert settings.app.data_dir == Path("/var/lib") / state
    assert values("ProtectSystem") == ["strict"]
    assert values("StateDirectoryMode") == ["0700"]
    assert not values("ReadWritePaths")


def test_it_runs_what_the_makefile_installs() -> None:
    (folder,), (command,) = values("WorkingDirectory"), values("ExecStart")
    assert command == f"{folder}/.venv/bin/python app.py"
    assert "\nVENV := .venv\n" in (ROOT / "Makefile").read_text()


def test_it_is_given_time_to_end_and_not_started_again_where_it_cannot_start() -> None:
    assert int(values("TimeoutStopSec")[0]) > Settings().app.shutdown_grace_seconds + CANCELLED_GRACE_SECONDS
    assert values("RestartPreventExitStatus") == [str(UNUSABLE)]
    assert values("Restart") == ["always"]


def test_the_processes_that_read_files_can_do_what_they_do() -> None:
    """Pitfall 64: `clock/worker.py` limits itself; what goes past its limits costs itself, and not the bot."""
    worker = (ROOT / "clock" / "worker.py").read_text()
    assert "setrlimit" in worker
    assert "SystemCallFilter=@system-service\n" in UNIT.read_text()  # holds @resources
    assert not [rule for rule in values("SystemCallFilter") if "@resources" in rule]
    assert "/proc/self/oom_score_adj" in worker
    assert not values("ProcSubset")  # else /proc/self/statm stays, and much that libraries read does not
    assert values("OOMPolicy") == ["continue"]
    assert values("KillMode") == ["mixed"]
    assert "AF_UNIX" in values("RestrictAddressFamilies")[0]
