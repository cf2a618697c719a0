"""The status of a process where several do the work, what ends one, and the version of the program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from model.health import Condition

VERSION = "0.1.0"
ROLES = ("gateway", "worker", "team", "knowledge")
"""In the order in which a process stops them: a later role still receives what an earlier one sends."""


class UserError(Exception):
    """A user can cause and mend this; it ends the process. The message is one line with the remedy.

    Attributes:
        exit_code: that of the process: 2 if nothing was done, 1 if something failed.
    """

    exit_code = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStatus:
    """The status of one process at one moment.

    Attributes:
        partitions: the number of messages in flight, by the partitions that it owns.
        results: the number of parts since its start, by the kind of their outcome.
        failures: the number of failures since its start, of parts and of background work.
        connection: the server that it is connected to.
        conditions: what it knows of the health of the program.
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
    conditions: tuple[Condition, ...] = ()

    @property
    def in_flight(self) -> int:
        return sum(self.partitions.values())


@dataclass(frozen=True, slots=True)
class Fleet:
    """All processes that answered, and the roles and partitions that they should cover.

    Attributes:
        roles: each should be the role of a process.
        partitions: their number; they are numbered from 0.
    """

    processes: tuple[ProcessStatus, ...]
    roles: tuple[str, ...]
    partitions: int
