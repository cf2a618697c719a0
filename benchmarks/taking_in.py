"""What it costs to take documents in, beside merely searching each of their lines with one pattern.

    python -m benchmarks.taking_in

CPU seconds of the best of three runs, and how many times those of a bare search they are: a loop over the same lines
that looks for one word. And for how long the event loop is held while the largest log is read as the bot reads it, in a
process of its own.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import sys
import time
from collections.abc import Callable

from benchmarks.heartbeat import Heartbeat, beating, not_held
from benchmarks.verdicts import verdict
from benchmarks.yardstick import limit_of_cpu
from clock import Processes
from services.documents import DocumentRedactors, FileLimits, prepare_document
from services.documents.reading.preparing import prepare
from services.documents.store import Origin

MAX_PER_MEBIBYTE, MAX_LARGEST = 0.5, 5.0
MAX_TIMES_AS_MUCH = 12.0
RUNS = 3
_WORD = re.compile(r"\bneedle\b")


def log(lines: int) -> bytes:
    chance = random.Random(1)  # noqa: S311 (no secret)
    levels = ("INFO", "INFO", "INFO", "WARN", "ERROR")
    return "\n".join(
        f"2026-02-01 {at // 180_000 % 24:02d}:{at // 3000 % 60:02d}:{at // 50 % 60:02d},{at % 1000:03d} "
        f"{chance.choice(levels)} [worker-{at % 16}] acme.{chance.choice('abc')}.Store: request "
        f"{chance.getrandbits(64):016x} from 10.0.{at % 200}.7:{at % 60_000} took {at % 977} ms"
        for at in range(lines)
    ).encode()


def configuration(values: int) -> bytes:
    tree = {f"part{part}": {f"key{key}": f"value {part} {key}" for key in range(50)} for part in range(values // 50)}
    return json.dumps(tree, indent=1).encode()


def bare_search(data: bytes) -> None:
    for line in data.decode().split("\n"):
        _WORD.search(line)


def seconds(work: Callable[[], object]) -> float:
    def once() -> float:
        begun = time.process_time()
        work()
        return time.process_time() - begun

    return min(once() for _ in range(RUNS))


def measured(name: str, filename: str, data: bytes) -> float:
    spent = seconds(lambda: prepare(filename, data, limits=FileLimits()))
    times = spent / max(1e-6, seconds(lambda: bare_search(data)))
    print(f"{name:<34} {len(data) / 2**20:>6.2f} MiB {spent:>7.2f} s {times:>7.1f} times the bare search")
    return spent


async def beside(data: bytes) -> Heartbeat:
    """The loop while a file is read; the process is there already."""
    processes = Processes(seconds=60)
    origin = Origin("a.log")

    async def take_in(content: bytes) -> None:
        await processes.run(prepare_document, origin, content, FileLimits(), None, DocumentRedactors())

    try:
        await take_in(b"2026-02-01 10:00:00 INFO tick")
        async with beating() as heart:
            await take_in(data)
    finally:
        await processes.close()
    return heart


def main() -> int:
    small, large = log(8_500), log(85_000)
    one = measured("log of 1 MiB", "a.log", small)
    ten = measured("log of 10 MiB", "a.log", large)
    short = measured("log of 200,000 lines", "a.log", b"2026-02-01 10:00:00 INFO tick\n" * 200_000)
    config = measured("configuration of 1,000 values", "a.json", configuration(1_000))
    more = measured("configuration of 10,000 values", "a.json", configuration(10_000))
    hearts = [asyncio.run(beside(large)) for _ in range(RUNS)]
    growth = max(ten / one, more / config)
    most, most_largest = limit_of_cpu(MAX_PER_MEBIBYTE), limit_of_cpu(MAX_LARGEST)
    return verdict(
        not_held("a log of 10 MiB is read", *hearts),
        (one <= most, f"1 MiB of log: {one:.2f} s, at most {most:.2f} s wanted"),
        (
            max(ten, short) <= most_largest,
            f"largest logs: {max(ten, short):.2f} s, at most {most_largest:.2f} s wanted",
        ),
        (growth <= MAX_TIMES_AS_MUCH, f"ten times as much: {growth:.1f} times, at most {MAX_TIMES_AS_MUCH} wanted"),
    )


if __name__ == "__main__":
    sys.exit(main())
