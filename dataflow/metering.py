"""Count and time the items of an operator by its name, for metrics and dashboards."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from dataflow.map_async import Watch

Gauge = Callable[[str, int], object]
"""Called with the name of an operator and the number of items that it is working on."""


@runtime_checkable
class Meter(Protocol):
    """A `Gauge` that also receives each waiting, beginning and ending item. Must not raise."""

    def __call__(self, operator: str, count: int) -> object: ...

    def on_waiting(self, operator: str, count: int) -> object:
        """Called with the number of items that wait for the operator."""
        ...

    def on_begin(self, operator: str) -> Callable[[Exception | None], object]:
        """Called when an item begins at the operator; see `Watch.on_begin`."""
        ...


def operator_gauge(gauge: Gauge | None, name: str) -> Callable[[int], object] | None:
    """Return the gauge of one operator, with its name filled in; None if nothing is measured."""
    return None if gauge is None else lambda count: gauge(name, count)


@dataclass(frozen=True, slots=True)
class _OperatorWatch:
    """A meter's `Watch` of one operator."""

    meter: Meter
    name: str

    def on_waiting(self, count: int) -> object:
        return self.meter.on_waiting(self.name, count)

    def on_begin(self) -> Callable[[Exception | None], object]:
        return self.meter.on_begin(self.name)


def operator_watch(gauge: Gauge | None, name: str) -> Watch | None:
    """Return the `Watch` of one operator, if the gauge is a `Meter`; else None."""
    return _OperatorWatch(gauge, name) if isinstance(gauge, Meter) else None


@contextmanager
def measure_item(gauge: Gauge | None, name: str) -> Generator[None]:
    """Report one item in flight at the operator `name` while the block runs; one at a time."""
    report, watch = operator_gauge(gauge, name), operator_watch(gauge, name)
    on_end = None if watch is None else watch.on_begin()
    failure: Exception | None = None
    if report is not None:
        report(1)
    try:
        yield
    except Exception as error:
        failure = error
        raise
    finally:
        if report is not None:
            report(0)
        if on_end is not None:
            on_end(failure)
