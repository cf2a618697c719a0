"""Who does the work, where several processes do, and what nobody does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dashboard.showing import plain
from dashboard.showing import seconds as duration
from model.processes import Fleet, ProcessStatus

DAY, HOUR = 86_400.0, 3600.0


class ProcessRow(NamedTuple):
    name: str
    roles: str
    partitions: str
    owned: int
    in_flight: int
    results: str
    failures: int
    memory: str
    up: str
    version: str
    connection: str


@dataclass(frozen=True, slots=True)
class FleetView:
    """`missing`: what nobody does or two do, a sentence each; `mixed`: whether versions differ."""

    rows: Sequence[ProcessRow]
    missing: Sequence[str]
    mixed: bool


def view(fleet: Fleet) -> FleetView:
    return FleetView(
        [_row(each) for each in fleet.processes],
        list(_missing(fleet)),
        len({each.version for each in fleet.processes}) > 1,
    )


def spans(numbers: Iterable[int]) -> str:
    """Write numbers as ranges, such as `0–3, 7`."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}–{last}" for first, last in found)


def _row(status: ProcessStatus) -> ProcessRow:
    results = sorted(status.results.items(), key=lambda item: (-item[1], item[0]))
    return ProcessRow(
        plain(status.name),
        plain(", ".join(status.roles)),
        spans(status.partitions),
        len(status.partitions),
        status.in_flight,
        plain(", ".join(f"{count:,} {result}" for result, count in results)),
        status.failures,
        f"{status.memory_mb:,.0f} MiB" if status.memory_mb else "–",
        _up(status.uptime_seconds),
        plain(status.version),
        plain(status.connection),
    )


def _missing(fleet: Fleet) -> Iterable[str]:
    played = {role for each in fleet.processes for role in each.roles}
    for role in fleet.roles:
        if role not in played:
            yield f"Nobody plays the role {role}."
    owners: dict[int, int] = {}
    for each in fleet.processes:
        for partition in each.partitions:
            owners[partition] = owners.get(partition, 0) + 1
    unowned = [partition for partition in range(fleet.partitions) if partition not in owners]
    if unowned:
        yield f"Nobody owns {_named(unowned)}: {'its' if len(unowned) == 1 else 'their'} messages wait."
    twice = [partition for partition, count in owners.items() if count > 1]
    if twice:
        # The stream lets one of them write; the other is about to notice.
        yield f"Two processes say that they own {_named(twice)}: one of them has lost it and does not know yet."


def _named(partitions: Sequence[int]) -> str:
    return f"partition{'s' if len(partitions) > 1 else ''} {spans(partitions)}"


def _up(seconds: float) -> str:
    if seconds >= DAY:
        return f"{seconds / DAY:.1f} d"
    return f"{seconds / HOUR:.1f} h" if seconds >= HOUR else duration(seconds)
