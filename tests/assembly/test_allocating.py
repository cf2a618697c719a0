"""Where memory is taken from, told by the C library itself, in a process of its own."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from assembly.running import allocate_together

IN_FOUR_THREADS = """
import ctypes, threading
from assembly.running import allocate_together
{before}
together = threading.Barrier(5)
for _ in range(4):
    threading.Thread(target=lambda: (bytearray(10_000), together.wait())).start()
together.wait()
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
file = ctypes.c_void_p(libc.fopen(b"/dev/stdout", b"w"))
libc.malloc_info(0, file)
libc.fflush(file)
"""


def heaps(before: str, **environment: str) -> int:
    """How many places glibc allocates in while four threads run."""
    ended = subprocess.run(
        [sys.executable, "-c", IN_FOUR_THREADS.format(before=before)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return ended.stdout.count("<heap nr=")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_all_threads_allocate_in_one_place_unless_the_operator_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
    assert heaps("") > 1
    assert heaps("allocate_together()") == 1
    assert heaps("allocate_together()", MALLOC_ARENA_MAX="3") > 1


class Musl:
    """Without what glibc alone has."""

    def __init__(self, _name: str | None) -> None: ...


@pytest.mark.parametrize("platform_name", ["linux", "darwin"])
def test_elsewhere_nothing_is_done(platform_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
    monkeypatch.setattr(sys, "platform", platform_name)
    monkeypatch.setattr("ctypes.CDLL", Musl)
    allocate_together()
