"""Two small days of the soak: the figures that do not depend on the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.soak import soak
from benchmarks.soak_grown import Grown


class Kept:
    """Something large."""

    __slots__ = tuple(f"slot_{each}" for each in range(200))


pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the system does not tell what is open")


@pytest.fixture(autouse=True)
def kept_readers() -> None:
    """Keep no process for the next test: what is left over is looked for."""


@pytest.mark.slow
def test_after_two_days_nothing_is_left_over_and_each_outcome_was_counted_once() -> None:
    """Messages, files of threads, votes, captures, curation and web pages, with a model that fails at times."""
    seen = soak(2, 300)
    assert seen.left == []
    assert seen.finished
    assert seen.adds_up
    assert seen.lines == seen.summed == seen.metrics
    assert {"replied", "captured", "skipped", "failed"} <= seen.lines.keys()
    assert 0 < seen.files < 40, "some threads were closed, with their files"


def test_what_has_grown_between_two_days_is_told_by_type() -> None:
    shown: list[str] = []
    grown = Grown(1, 3, shown.append)
    grown.look(1)
    kept = [Kept() for _ in range(1_000)]
    grown.look(2)
    assert shown == []
    grown.look(3)
    assert len(kept) == 1_000
    assert "MB a day more" in shown[0]
    (of_ours,) = (line for line in shown if line.endswith("test_soak.Kept"))
    assert of_ours.split()[2] == "500.0", "objects a day, of two days"
