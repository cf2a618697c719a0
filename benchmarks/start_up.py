"""How long `--help`, one question and the demo take. `python -m benchmarks.start_up`, in the project's folder.

Modules are compiled once, into a folder of the benchmark's own, whatever the environment says of that: a command that
compiles the whole program each time takes twice as long, and nobody's second command does.

`python -m benchmarks.start_up probe ARGUMENT…` runs `app.py` with these arguments, and tells of its longest callback.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.heartbeat import longest_callback, short_enough
from benchmarks.verdicts import verdict
from benchmarks.yardstick import limit_of_cpu, limit_of_wall

HELP_SECONDS = 0.5
ASK_CPU_SECONDS = 0.92
"""Half of what it was at first."""
TIMES, TIMES_ASKED, TIMES_PROBED = 10, 3, 2
HELP = ("--help",)
ASK = ("--ask", "How do I install it?")
DEMO = ("--replay", "examples/demo.jsonl")


def seconds(*arguments: str) -> tuple[float, float, int]:
    """Wall time, CPU time and exit code of one call."""
    begun, before = time.perf_counter(), of_children()
    done = subprocess.run([sys.executable, "app.py", *arguments], check=False, capture_output=True)  # noqa: S603 (our own)
    return time.perf_counter() - begun, of_children() - before, done.returncode


def of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def longest(*arguments: str) -> float:
    """The longest callback of one call, in seconds of CPU."""
    command = [sys.executable, "-m", "benchmarks.start_up", "probe", *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 (our own)
    return float(done.stdout.splitlines()[-1])


def probe(*arguments: str) -> int:
    import app  # noqa: PLC0415 (what the others measure is a process of its own)

    with longest_callback() as callback:
        code = app.main(arguments)
    print(callback.seconds)
    return code


def main() -> int:
    if sys.argv[1:2] == ["probe"]:
        return probe(*sys.argv[2:])
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PYTHONPYCACHEPREFIX"] = folder
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        help_seconds = statistics.median(seconds(*HELP)[0] for _ in range(TIMES))
        # A copy, since whoever has no index of the demo yet may not want one.
        copied = shutil.copytree("examples", Path(folder, "examples"), ignore=shutil.ignore_patterns("data"))
        config = ("--config", str(copied / "demo.yaml"))
        seconds(*config, "--init-kb")
        seconds(*config, *ASK)  # compiles what it needs
        ask_seconds = min(seconds(*config, *ASK)[1] for _ in range(TIMES_ASKED))
        asked = [longest(*config, *ASK) for _ in range(TIMES_PROBED)]
        demo_seconds, _, code = seconds(*config, *DEMO)
        played = [longest(*config, *DEMO) for _ in range(TIMES_PROBED)]
    print(f"the demo, replayed: {demo_seconds:.1f} s, exit code {code}")
    most_help, most_asking = limit_of_wall(HELP_SECONDS), limit_of_cpu(ASK_CPU_SECONDS)
    return verdict(
        (help_seconds < most_help, f"--help: {help_seconds:.2f} s, less than {most_help:.2f} s wanted"),
        (
            ask_seconds <= most_asking,
            f"--ask without a model: {ask_seconds:.2f} s CPU, at most {most_asking:.2f} wanted",
        ),
        short_enough("--ask", *asked),
        short_enough("the demo", *played),
    )


if __name__ == "__main__":
    sys.exit(main())
