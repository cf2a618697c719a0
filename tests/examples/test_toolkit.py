"""The toolkit's page, run where nothing else of the program is."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_example_of_the_toolkit_runs_with_its_two_packages_alone(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "dataflow.md").read_text()
    code, printed = re.findall(r"```(?:python)?\n(.*?)```", page, re.DOTALL)
    for package in ("clock", "dataflow"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "example.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "example.py"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.stdout, done.stderr) == (printed, "")
