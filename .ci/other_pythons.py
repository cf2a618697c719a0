"""Runs tests on other Pythons, as far as they are on this machine: those of the clock and the operators, or `--all`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOME = ("tests/clock", "tests/operators")


def interpreter(version: str) -> Path | None:
    """A Python of this version: on the PATH, or where pyenv keeps them. None: there is none."""
    candidates = [
        shutil.which(f"python{version}"),
        *sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python")),
    ]
    for candidate in candidates:
        if candidate is None:
            continue
        told = subprocess.run(  # noqa: S603 (a path that was just looked up)
            [candidate, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
            capture_output=True,
            text=True,
            check=False,
        )
        if told.stdout.strip() == version:
            return Path(candidate)
    return None


def run(version: str, tests: Sequence[str]) -> bool:
    """Whether the tests pass on this Python; true where there is none, having said so."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return True  # the main run
    python = interpreter(version)
    if python is None:
        print(f"Python {version}: not on this machine, skipped")
        return True
    environment = ROOT / f".venv-{version}"
    stamp = environment / "installed"
    locked = ROOT / "requirements" / "development.txt"
    if not stamp.exists() or stamp.stat().st_mtime < locked.stat().st_mtime:
        uv = ROOT / ".venv" / "bin" / "uv"
        subprocess.run([uv, "venv", "--quiet", "--clear", "--python", python, environment], check=True)  # noqa: S603 (ours)
        subprocess.run([uv, "pip", "install", "--quiet", "--python", environment, "-r", locked], check=True)  # noqa: S603 (ours)
        stamp.touch()
    print(f"Python {version}:", flush=True)
    command = [environment / "bin" / "python", "-m", "pytest", "-q", "-n", "auto", "-p", "no:cacheprovider", *tests]
    return subprocess.run(command, cwd=ROOT, check=False).returncode == 0  # noqa: S603 (our own)


if __name__ == "__main__":
    versions = [each for each in sys.argv[1:] if each != "--all"]
    results = [run(version, ("tests",) if "--all" in sys.argv else SOME) for version in versions]
    sys.exit(0 if all(results) else 1)
