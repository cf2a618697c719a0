"""The main function of a process of `clock.processes`: runs one job after another, as read from its standard input.

The argument is the limit of memory of one job, in bytes, beyond what the process has when the job begins.
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
"""The number of bytes before each buffer; the number of buffers before an answer."""
OUT_OF_MEMORY = 86
"""The exit status of a process whose job passed the limit of memory."""

Job = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any], int]
"""A function, its arguments, and its limit of CPU time in seconds."""


def main() -> None:
    """Serve until the standard input ends."""
    memory = int(sys.argv[1])
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # libraries must not print into the answer
    _restrict()
    answers.write(LENGTH.pack(0))  # it is ready: the limit of the first job begins
    answers.flush()
    while request := _read_request(requests):
        answers.writelines(_run(request, memory))
        answers.flush()


def _read_request(requests: BinaryIO) -> bytes:
    head = requests.read(LENGTH.size)
    return requests.read(LENGTH.unpack(head)[0]) if len(head) == LENGTH.size else b""


def _run(request: bytes, memory: int) -> Iterator[bytes | memoryview]:
    """Run a job and yield the answer: the number of buffers, then each buffer with its length before it."""
    try:
        work, args, kwargs, seconds = _unpickle(request)
        _limit(memory, seconds)
        try:
            result = True, work(*args, **kwargs)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 (it is raised by the caller in the other process)
            result = False, error
        buffers = _pickle(result)
    except MemoryError:
        # The half-done job is gone with the process; no handler could be sure of a byte of memory.
        os._exit(OUT_OF_MEMORY)
    yield LENGTH.pack(len(buffers))
    for buffer in buffers:
        yield LENGTH.pack(len(buffer))
        yield buffer


def _pickle(result: tuple[bool, object]) -> list[bytes | memoryview]:
    """Return the pickle, and the large objects that it refers to as buffers."""
    buffers: list[pickle.PickleBuffer] = []
    try:
        pickled = pickle.dumps(result, pickle.HIGHEST_PROTOCOL, buffer_callback=buffers.append)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 (objects refuse with exceptions of any type)
        refusal = TypeError(f"{type(result[1]).__name__} cannot leave its process: {error}")
        return [pickle.dumps((False, refusal), pickle.HIGHEST_PROTOCOL)]
    return [pickled, *(buffer.raw() for buffer in buffers)]


def _unpickle(request: bytes) -> Job:
    return pickle.loads(request)  # noqa: S301 (from the parent only)


def _restrict() -> None:
    """Forbid files to grow and cores to be written, and let the system kill this process first if memory is short."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    if resource is not None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def _limit(memory: int, seconds: int) -> None:
    if resource is None:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    _set_soft_limit(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + 1 + seconds)
    _set_soft_limit(resource.RLIMIT_AS, _mapped_bytes() + memory)


def _set_soft_limit(what: int, limit: int) -> None:
    """Set the soft limit of a resource; the hard one stays, so that the next job can have another soft limit."""
    assert resource is not None  # noqa: S101 (tells the type checker)
    hard = resource.getrlimit(what)[1]
    resource.setrlimit(what, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


def _mapped_bytes() -> int:
    """Return how much memory is mapped now; 0 where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main()
