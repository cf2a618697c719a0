"""Counts the work of an async function outside of any `map_async`."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from operators.step import Gauge, named


@contextmanager
def in_flight(gauge: Gauge | None, name: str) -> Generator[None]:
    """Report one item in flight at the operator `name` while the block runs; one at a time."""
    report = named(gauge, name)
    if report is not None:
        report(1)
    try:
        yield
    finally:
        if report is not None:
            report(0)
