"""Async tests run on the virtual loop, where waiting takes no time; those marked `real_time` on an ordinary one, those
marked `virtual_sockets` on a virtual one that waits for sockets.
"""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Callable

import hypothesis
import pytest

from clock import VirtualLoop
from tests.loopback.patient_loop import PatientLoop

# The products of numpy here are small: its threads would wait for each other with more work than they have. Set before
# anything imports numpy, and inherited by every process that a test starts.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A machine that is busy is no failure. The ordinary run tries few cases, always the same; `make fuzz` many new ones.
FUZZING = "MILLRACE_FUZZ" in os.environ
hypothesis.settings.register_profile(
    "millrace", deadline=None, max_examples=500 if FUZZING else 25, derandomize=not FUZZING
)
hypothesis.settings.load_profile("millrace")


def pytest_collection() -> None:
    """Keep imported modules and collected tests out of garbage collection: they stay to the end."""
    gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    if item.get_closest_marker("real_time"):
        return {"real": asyncio.new_event_loop}
    if item.get_closest_marker("virtual_sockets"):
        return {"virtual": PatientLoop}
    return {"virtual": VirtualLoop}
