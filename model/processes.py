"""What a process reports about itself where several do the work, and the version of the program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

VERSION = "0.1.0"
ROLES = ("gateway", "worker", "team", "knowledge")
"""In the order in which a process stops them: a later role still takes what an earlier one sends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStatus:
    """One process at one moment.

    Attributes:
        partitions: those that it owns, with how many messages are in flight in each.
        results: how many parts ended how, since it started.
        failures: of these and of its own work, how many failed.
        connection: the server that it is connected to.
    """

    name: str
    roles: tuple[str, ...]
    version: str
    uptime_seconds: float
    partitions: Mapping[int, int] = field(default_factory=dict[int, int])
    results: Mapping[str, int] = field(default_factory=dict[str, int])
    failures: int = 0
    memory_mb: float = 0.0
    connection: str = ""

    @property
    def in_flight(self) -> int:
        return sum(self.partitions.values())


@dataclass(frozen=True, slots=True)
class Fleet:
    """All processes that answered, and what there should be.

    Attributes:
        roles: each is to be played by somebody.
        partitions: how many there are, numbered from 0.
    """

    processes: tuple[ProcessStatus, ...]
    roles: tuple[str, ...]
    partitions: int
