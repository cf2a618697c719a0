"""What the pages read, and the one thing that they do: Protocols and values that the assembly fills in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from dashboard.knowledge import KnownSource
from dashboard.meter import FlowMeter
from model.processes import Fleet
from reporting.cost import Costs
from services.knowledge import Search
from services.team import Overview
from services.telemetry import Ended


class Team(Protocol):
    """The team's library as the dashboard reads and corrects it."""

    async def overview(self) -> Overview:
        """What it holds. Raises OSError."""
        ...

    def address(self, qa_id: str) -> str | None:
        """Give the Discord address of a pair."""
        ...

    async def correct(self, action: str, qa_id: str) -> str:
        """`remove` or `restore` a pair, as `--kb` does; gives a line about it.

        Raises:
            CorrectionRefused: there is nothing to correct.
            LibraryUnwritable, OSError: it could not be written.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardData:
    """The data that the pages read.

    Attributes:
        entries: how the last parts ended, oldest first.
        costs: what models were asked for in the last days; the days are given.
        held: what the knowledge base holds.
        may_correct: whether the team's library may be corrected here; else its pages only show it.
        now: seconds since 1970, in the time of the stream.
        fleet: who does the work, asked for each time; None: this process does all of it, and there is no page.
    """

    meter: FlowMeter
    entries: Callable[[], Awaitable[Sequence[Ended]]]
    costs: Callable[[int], Awaitable[Costs]]
    held: Callable[[], Awaitable[Sequence[KnownSource]]]
    search: Search
    team: Team
    may_correct: bool
    now: Callable[[], float]
    fleet: Callable[[], Awaitable[Fleet]] | None = None
