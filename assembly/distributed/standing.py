"""The status that a process reports: results counted, messages in flight, memory, connection."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from assembly.distributed.process import Process
from model.outcomes import Ignored, Outcome, OutcomeKind, Removed, Result
from model.processes import Fleet, ProcessStatus
from model.version import VERSION
from transport.connection import shown
from transport.status import gather, memory_mb

ROLES = ("gateway", "worker", "team", "knowledge")


@dataclass(slots=True)
class ProcessStatusReporter:
    """Counts results, and knows what is in hand. `owned`: set by the role that owns partitions."""

    process: Process
    owned: Callable[[], Mapping[int, int]] = dict
    results: Counter[str] = field(default_factory=Counter[str])
    since: float = field(default_factory=time.monotonic)

    def add(self, result: Result) -> None:
        """One more result of any graph of this process."""
        match result:
            case Outcome():
                self.results[result.result] += 1
            case Ignored():
                self.results["ignored"] += 1
            case Removed():
                self.results["removed"] += 1

    def status(self) -> ProcessStatus:
        return ProcessStatus(
            name=self.process.name,
            roles=self.process.roles,
            version=VERSION,
            uptime_seconds=time.monotonic() - self.since,
            partitions=self.owned(),
            results=dict(self.results),
            failures=self.results[OutcomeKind.FAILED],
            memory_mb=memory_mb(),
            connection=shown(self.process.client),
        )


async def fleet_of(process: Process) -> Fleet:
    """All processes, asked now, and what there should be."""
    expected = len(await process.members.alive())
    found = await gather(process.client, expected=expected)
    return Fleet(tuple(found), ROLES, process.layout.partitions)
