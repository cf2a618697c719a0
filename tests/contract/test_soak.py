"""Two small days of the soak: the figures that do not depend on the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.soak import soak

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the system does not tell what is open")


def test_after_two_days_nothing_is_left_over_and_each_outcome_was_counted_once() -> None:
    """Messages, files of threads, votes, captures, curation and web pages, with a model that fails at times."""
    seen = soak(2, 300)
    assert seen.left == []
    assert seen.finished
    assert seen.adds_up
    assert seen.lines == seen.summed == seen.metrics
    assert {"replied", "captured", "skipped", "failed"} <= seen.lines.keys()
    assert 0 < seen.files < 40, "some threads were closed, with their files"
