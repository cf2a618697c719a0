"""What the pages read, and the one thing that they do: Protocols and values that the assembly fills in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from dashboard.knowledge import Held
from dashboard.meter import FlowMeter
from services.knowledge import Search
from services.llm import StepTokens
from services.team import Overview
from services.telemetry import Ended


class Team(Protocol):
    """The team's library, for who looks at it."""

    async def overview(self) -> Overview:
        """What it holds. Raises OSError."""
        ...

    def address(self, qa_id: str) -> str | None:
        """Where in Discord a pair comes from."""
        ...

    async def correct(self, action: str, qa_id: str) -> str:
        """`remove` or `restore` a pair, as `--kb` does; gives a line about it.

        Raises:
            CorrectionRefused: there is nothing to correct.
            LibraryUnwritable, OSError: it could not be written.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What the pages are made of.

    Attributes:
        entries: how the last parts ended, oldest first.
        spent: how the parts of the last days ended, for their tokens; the days are given.
        token_days: calls and tokens by day and step.
        price: of a million tokens in prompts and completions; None: not told.
        held: what the knowledge base holds.
        may_correct: whether the team's library may be corrected here; else its pages only show it.
        now: seconds since 1970, in the time of the stream.
    """

    meter: FlowMeter
    entries: Callable[[], Awaitable[Sequence[Ended]]]
    spent: Callable[[int], Awaitable[Sequence[Ended]]]
    token_days: Callable[[], Mapping[str, Mapping[str, StepTokens]]]
    price: tuple[float, float] | None
    held: Callable[[], Awaitable[Sequence[Held]]]
    search: Search
    team: Team
    may_correct: bool
    now: Callable[[], float]
