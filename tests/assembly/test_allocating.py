"""Where memory is taken from, told by the C library itself, in a process of its own."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from assembly.running import use_one_malloc_arena

IN_FOUR_THREADS = """
import ctypes, threading
from assembly.running import use_one_malloc_arena
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


LARGE_ONES = """
import ctypes
from assembly.running import use_one_malloc_arena
{before}
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
class Told(ctypes.Structure):  # `struct mallinfo`: the fifth is the bytes of blocks that stand apart
    _fields_ = [(f"field_{{number}}", ctypes.c_int) for number in range(10)]
libc.mallinfo.restype = Told
libc.free(libc.malloc(8_000_000))
apart = libc.mallinfo().field_4
libc.malloc(4_000_000)
print(libc.mallinfo().field_4 - apart >= 4_000_000)
"""
IS_GLIBC = platform.libc_ver()[0] == "glibc"


def said(script: str, **environment: str) -> str:
    """What Python prints that runs a script."""
    ended = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return ended.stdout


def heaps(before: str, **environment: str) -> int:
    """How many places glibc allocates in while four threads run."""
    return said(IN_FOUR_THREADS.format(before=before), **environment).count("<heap nr=")


@pytest.mark.slow
@pytest.mark.skipif(not IS_GLIBC, reason="another C library")
def test_all_threads_allocate_in_one_place_unless_the_operator_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
    assert heaps("") > 1
    assert heaps("use_one_malloc_arena()") == 1
    assert heaps("use_one_malloc_arena()", MALLOC_ARENA_MAX="3") > 1


@pytest.mark.slow
@pytest.mark.skipif(not IS_GLIBC, reason="another C library")
def test_a_large_block_stands_apart_whatever_was_freed_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
    assert said(LARGE_ONES.format(before="")) == "False\n"
    assert said(LARGE_ONES.format(before="use_one_malloc_arena()")) == "True\n"


class Musl:
    """Without what glibc alone has."""

    def __init__(self, _name: str | None) -> None: ...


@pytest.mark.parametrize("platform_name", ["linux", "darwin"])
def test_elsewhere_nothing_is_done(platform_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
    monkeypatch.setattr(sys, "platform", platform_name)
    monkeypatch.setattr("ctypes.CDLL", Musl)
    use_one_malloc_arena()
