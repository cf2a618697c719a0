"""The main function of a worker process: `clock.processes` starts it, and it does one piece of work after another, as
read from its standard input.

Run with the most memory, in bytes, that a piece may take beyond what the process has when it begins.
"""

from __future__ import annotations

import os
import pickle
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

try:
    import resource
except ImportError:  # not on Windows, where only the time is limited
    resource = None

LENGTH = struct.Struct(">Q")
"""Before each part of a message, how many bytes it has; before an answer, how many parts follow."""
OUT_OF_MEMORY = 86
"""The exit status that says so."""

Job = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any], int]
"""The work, its arguments, and the seconds of CPU that it may take."""


def main() -> None:
    """Serve until the standard input ends."""
    memory = int(sys.argv[1])
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    _restrict()
    while frame := _message(requests):
        answers.writelines(_done(frame, memory))
        answers.flush()


def _message(requests: BinaryIO) -> bytes:
    head = requests.read(LENGTH.size)
    return requests.read(LENGTH.unpack(head)[0]) if len(head) == LENGTH.size else b""


def _done(frame: bytes, memory: int) -> Iterator[bytes | memoryview]:
    """What one piece of work gave or raised: how many parts, and each with its length before it."""
    try:
        work, args, kwargs, seconds = _job(frame)
        _limit(memory, seconds)
        try:
            outcome = True, work(*args, **kwargs)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 (it is raised where the work was asked for)
            outcome = False, error
        parts = _pickled(outcome)
    except MemoryError:
        # Whatever is half done is gone with the process; no handler could be sure of a byte of memory.
        os._exit(OUT_OF_MEMORY)
    yield LENGTH.pack(len(parts))
    for part in parts:
        yield LENGTH.pack(len(part))
        yield part


def _pickled(outcome: tuple[bool, object]) -> list[bytes | memoryview]:
    """The pickle, and what it holds in buffers of its own: no part is large unless it is one object."""
    buffers: list[pickle.PickleBuffer] = []
    try:
        whole = pickle.dumps(outcome, pickle.HIGHEST_PROTOCOL, buffer_callback=buffers.append)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 (anything may refuse in its own way)
        what = TypeError(f"{type(outcome[1]).__name__} cannot leave its process: {error}")
        return [pickle.dumps((False, what), pickle.HIGHEST_PROTOCOL)]
    return [whole, *(buffer.raw() for buffer in buffers)]


def _job(frame: bytes) -> Job:
    return pickle.loads(frame)  # noqa: S301 (from the parent only)


def _restrict() -> None:
    """No file may grow, no core is written, and of all processes this one is the first to go when memory is short."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    if resource is not None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def _limit(memory: int, seconds: int) -> None:
    if resource is None:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    _lower(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + 1 + seconds)
    _lower(resource.RLIMIT_AS, _mapped() + memory)


def _lower(what: int, most: int) -> None:
    """Set the soft limit; the hard one stays, so that the next piece of work can have its own."""
    assert resource is not None  # noqa: S101 (tells the type checker)
    hard = resource.getrlimit(what)[1]
    resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _mapped() -> int:
    """How much memory is mapped now, in bytes; 0 where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main()
