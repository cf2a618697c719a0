"""Our quiet window against the plain way: a dictionary of lists, and a timer per key, set anew for each message.

`python -m benchmarks.quiet_window [--messages N]`
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import NamedTuple

from reactivex.subject import Subject

from benchmarks.heartbeat import longest_callback, short_enough
from benchmarks.verdicts import verdict
from clock import VirtualLoop
from dataflow import quiet_window

QUIET_SECONDS = 60.0
FEW_KEYS, MANY_KEYS = 300, 100_000
LEAST_OF_PLAIN = 0.5
MAX_BYTES = 500.0
ROUNDS = 5
PROBED, AT_ONCE = 30_000, 100


class Message(NamedTuple):
    key: int
    number: int


def key_of(message: Message) -> int:
    return message.key


Push = Callable[[Message], None]
Make = Callable[[Callable[[list[Message]], None]], Push]


def plain(emit: Callable[[list[Message]], None]) -> Push:
    """What one would write without a library."""
    loop = asyncio.get_running_loop()
    waiting: dict[int, list[Message]] = {}
    timers: dict[int, asyncio.TimerHandle] = {}

    def close(key: int) -> None:
        del timers[key]
        emit(waiting.pop(key))

    def push(message: Message) -> None:
        key = message.key
        waiting.setdefault(key, []).append(message)
        timer = timers.get(key)
        if timer is not None:
            timer.cancel()
        timers[key] = loop.call_later(QUIET_SECONDS, close, key)

    return push


def ours(emit: Callable[[list[Message]], None]) -> Push:
    source: Subject[Message] = Subject()
    source.pipe(quiet_window(QUIET_SECONDS, key_of)).subscribe(emit)
    return source.on_next


async def rate(make: Make, messages: list[Message], *, per_second: int) -> float:
    """Messages pushed a second of CPU, windows closed included; so many come in each virtual second."""
    batches: list[int] = []

    def count(batch: list[Message]) -> None:
        batches.append(len(batch))

    push = make(count)
    gc.collect()
    begun = time.process_time()
    for first in range(0, len(messages), per_second):
        for message in messages[first : first + per_second]:
            push(message)
        await asyncio.sleep(1)
    await asyncio.sleep(2 * QUIET_SECONDS)
    spent = time.process_time() - begun
    assert sum(batches) == len(messages)
    return len(messages) / spent


def drop(_: list[Message]) -> None: ...


async def bytes_per_window(make: Make, messages: list[Message]) -> float:
    """What an open window of one message takes, the message itself left out."""
    push = make(drop)
    gc.collect()
    tracemalloc.start()
    for message in messages:
        push(message)
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return held / len(messages)


def messages_of(count: int, keys: int) -> list[Message]:
    return [Message(number % keys, number) for number in range(count)]


def run(make: Make, messages: list[Message], per_second: int) -> float:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(rate(make, messages, per_second=per_second))


def compared(what: str, messages: list[Message], per_second: int) -> float:
    """The median of ours to plain, the two run in turn."""
    ratios: list[float] = []
    for _ in range(ROUNDS):
        theirs, own = run(plain, messages, per_second), run(ours, messages, per_second)
        ratios.append(own / theirs)
        print(f"  {what}: plain {theirs / 1000:4.0f}k/s, ours {own / 1000:4.0f}k/s, {own / theirs:.2f}", flush=True)
    return statistics.median(ratios)


def main() -> int:
    cli = argparse.ArgumentParser(description=__doc__)
    cli.add_argument("--messages", type=int, default=200_000, help="in the run with few keys")
    count = cli.parse_args().messages
    few = compared(f"{FEW_KEYS} keys", messages_of(count, FEW_KEYS), per_second=1_000)
    many = compared(f"{MANY_KEYS} keys", messages_of(MANY_KEYS, MANY_KEYS), per_second=MANY_KEYS)
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        held = runner.run(bytes_per_window(ours, messages_of(MANY_KEYS, MANY_KEYS)))
    with longest_callback() as longest:
        run(ours, messages_of(PROBED, FEW_KEYS), per_second=AT_ONCE)
    return verdict(
        short_enough(f"{AT_ONCE} messages at once, {FEW_KEYS} windows", longest.seconds),
        (
            few >= LEAST_OF_PLAIN,
            f"rate at {FEW_KEYS} keys: {few:.2f} x plain asyncio, {LEAST_OF_PLAIN} at least wanted",
        ),
        (many >= LEAST_OF_PLAIN, f"rate at {MANY_KEYS} keys: {many:.2f} x plain asyncio, likewise"),
        (held <= MAX_BYTES, f"an open window: {held:.0f} bytes beside its message, {MAX_BYTES:.0f} at most wanted"),
    )


if __name__ == "__main__":
    sys.exit(main())
