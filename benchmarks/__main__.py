"""`python -m benchmarks`: all of them, one after another, so that none disturbs another."""

from __future__ import annotations

import subprocess
import sys

ALL = (
    "start_up",
    "idle",
    "quiet_window",
    "answer_cost",
    "speculation",
    "captures",
    "knowledge_base",
    "search",
    "held",
    "taking_in",
    "replay_day",
    "live_load",
)


def main() -> int:
    results: dict[str, int] = {}
    for name in ALL:
        print(f"== {name}", flush=True)
        results[name] = subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode  # noqa: S603 (our own)
    missed = [name for name, code in results.items() if code]
    print(f"== {'all requirements are met' if not missed else 'not met: ' + ', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
