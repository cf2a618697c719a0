"""`make eval`: all suites, one after another. A suite whose material is absent says so, and counts as met."""

from __future__ import annotations

import subprocess
import sys

SUITES = ("captures", "following", "keeping_out", "answers", "documents")


def main() -> int:
    missed: list[str] = []
    for name in SUITES:
        print(f"== {name}", flush=True)
        done = subprocess.run([sys.executable, "-m", f"benchmarks.evaluation.{name}"], check=False)  # noqa: S603 (our own)
        if done.returncode:
            missed.append(name)
    print(f"== {'all requirements are met' if not missed else 'not met: ' + ', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
