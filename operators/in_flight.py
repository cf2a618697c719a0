"""Counting what an async function, outside of any `map_async`, has in hand."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from operators.step import Gauge


@contextmanager
def in_flight(gauge: Gauge, name: str) -> Generator[None]:
    """One item is in the hands of the operator `name` while the block runs; one at a time."""
    gauge(name, 1)
    try:
        yield
    finally:
        gauge(name, 0)
