"""The page about facts from files, run where only these modules are, and what lies below them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("clock", "services/redaction", "services/search", "services/storage")
FILES = ("model/__init__.py", "model/source_ids.py", "model/words.py", "services/__init__.py")
ENGINE = ("facts.py", "limits.py", "prepared.py", "asking", "reading", "store")
OF_THE_BOT = ("chroma.py", "chroma_records.py", "__pycache__")


def test_the_example_runs_with_the_engine_and_what_lies_below_it(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "facts-from-files.md").read_text()
    code, printed = re.findall(r"```(?:python)?\n(.*?)```", page, re.DOTALL)
    for name in (*FILES, *FOLDERS, *(f"services/documents/{part}" for part in ENGINE)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns(*OF_THE_BOT))
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "services/documents/store/__init__.py").unlink()
    (tmp_path / "example.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "example.py"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.stdout, done.stderr) == (printed, "")
