"""The workflow for GitHub fits the project. Nothing of it runs here but the script that finds a release's notes."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from model.processes import VERSION
from tests.deploy.test_container import ROOT, extras

WORKFLOW = ROOT / ".github" / "workflows" / "ci.yml"
CHANGELOG = """# Changelog

## Unreleased

## 0.3.0 (2026-12-01)

### Added

- One line, and
  its end.
- Another.

## 0.2.0

- An earlier one.
"""


def workflow() -> dict[Any, Any]:
    return yaml.safe_load(WORKFLOW.read_text())


def commands(job: str) -> str:
    return "\n".join(step["run"] for step in workflow()["jobs"][job]["steps"] if "run" in step)


def test_each_push_and_pull_request_runs_the_checks_on_each_python_and_only_a_tag_publishes() -> None:
    jobs = workflow()["jobs"]
    assert workflow()[True] == {"push": {"branches": ["**"], "tags": ["v*"]}, "pull_request": None}  # `on`, in YAML 1.1
    assert list(jobs) == ["check", "image", "publish"]
    assert commands("check").splitlines()[-1] == ".ci/run"
    others = re.search(r"^OTHERS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert others is not None
    assert jobs["check"]["strategy"]["matrix"]["python"] == others[1].split()
    assert jobs["publish"]["needs"] == ["check", "image"]
    assert jobs["publish"]["if"] == "github.event_name == 'push' && github.ref_type == 'tag'"


def test_a_job_may_do_what_it_does_and_no_more_and_no_action_changes_under_it() -> None:
    assert workflow()["permissions"] == {}
    rights = {name: job["permissions"] for name, job in workflow()["jobs"].items()}
    read = {"contents": "read"}
    assert rights == {"check": read, "image": read, "publish": {"contents": "write", "packages": "write"}}
    assert all(job["timeout-minutes"] for job in workflow()["jobs"].values())
    assert "secrets." not in WORKFLOW.read_text()
    actions = [step["uses"] for job in workflow()["jobs"].values() for step in job["steps"] if "uses" in step]
    assert all(re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", action) for action in actions)


def test_what_it_names_is_there() -> None:
    said = "\n".join(map(commands, workflow()["jobs"]))
    named = set(re.findall(r"(?<![\w/.])(?:\.ci/\S+|\S+\.yaml|docs)\b", said)) - {"config.local.yaml"}
    assert {".ci/run", ".ci/release_notes.py", "compose.nats.yaml"} <= named
    assert all((ROOT / path).exists() for path in named)
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    assert list(services) == ["bot"]
    assert services["bot"]["build"]["args"] == {"EXTRAS": None}
    (built,) = [
        step["env"]["EXTRAS"] for step in workflow()["jobs"]["image"]["steps"] if "EXTRAS" in step.get("env", {})
    ]
    assert built.split() == sorted(extras())


def test_the_program_has_one_version() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == VERSION


def notes(root: Path, version: str) -> subprocess.CompletedProcess[str]:
    """The script in a project that has version 0.3.0."""
    (root / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "release_notes.py", root / ".ci")
    (root / "CHANGELOG.md").write_text(CHANGELOG)
    (root / "pyproject.toml").write_text('[project]\nversion = "0.3.0"\n')
    command = [sys.executable, root / ".ci" / "release_notes.py", version]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_notes_of_a_release_are_those_of_its_version_with_an_entry_a_line(tmp_path: Path) -> None:
    done = notes(tmp_path, "0.3.0")
    assert (done.returncode, done.stdout) == (0, "### Added\n\n- One line, and its end.\n- Another.\n")


@pytest.mark.parametrize(
    ("version", "line"),
    [
        ("0.4.0", "CHANGELOG.md has no notes of 0.4.0; its headings are Unreleased, 0.3.0, 0.2.0"),
        ("Unreleased", "CHANGELOG.md has no notes of Unreleased; its headings are Unreleased, 0.3.0, 0.2.0"),
        ("0.2.0", "pyproject.toml has version 0.3.0, not 0.2.0: change it, and tag that commit"),
    ],
)
def test_a_version_without_notes_is_not_released(tmp_path: Path, version: str, line: str) -> None:
    done = notes(tmp_path, version)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{line}\n")
