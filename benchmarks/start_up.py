"""How long `--help` and the demo take. `python -m benchmarks.start_up`, in the project's folder."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from benchmarks.verdicts import verdict

HELP_SECONDS = 0.5
TIMES = 10
HELP = ("app.py", "--help")
DEMO = ("app.py", "--config", "examples/demo.yaml", "--replay", "examples/demo.jsonl")


def seconds(*arguments: str) -> tuple[float, int]:
    """Wall time and exit code of one call."""
    begun = time.perf_counter()
    done = subprocess.run([sys.executable, *arguments], check=False, capture_output=True)  # noqa: S603 (our own)
    return time.perf_counter() - begun, done.returncode


def main() -> int:
    help_seconds = statistics.median(seconds(*HELP)[0] for _ in range(TIMES))
    demo_seconds, code = seconds(*DEMO)
    print(f"the demo, replayed: {demo_seconds:.1f} s, exit code {code}")
    return verdict((help_seconds < HELP_SECONDS, f"--help: {help_seconds:.2f} s, less than {HELP_SECONDS} s wanted"))


if __name__ == "__main__":
    sys.exit(main())
