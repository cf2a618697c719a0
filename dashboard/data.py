"""The interfaces by which the pages read and change a run, and the record of them all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from dashboard.flow import FlowMeter
from dashboard.views import KnownSource
from model.health import Condition
from model.processes import Fleet
from reporting.cost import Costs
from reporting.reading import TimeSpan, VotedQuestion
from reporting.report import OwnerOf, shared_by_all
from services.conversations import Draft, DraftAction
from services.knowledge import Search
from services.team import AuditEntry, LessonForm, Overview, TeachingResult
from services.telemetry import PartOutcome


class Team(Protocol):
    """The team's library as the dashboard reads and corrects it."""

    async def overview(self) -> Overview:
        """Return the topics and their pairs. Raises OSError."""
        ...

    def address(self, qa_id: str) -> str | None:
        """Return the Discord address of a pair."""
        ...

    async def correct(self, action: str, qa_id: str, operator: str) -> str:
        """Remove or restore a pair (`action`), as `--kb` does, and note who did. Returns a line about it.

        Raises:
            RemovalRefused: there is nothing to correct.
            LibraryUnwritable, OSError: it could not be written.
        """
        ...


class History(Protocol):
    """The outcomes of questions, the votes on their answers, and what was decided by whom."""

    async def last(self) -> Sequence[PartOutcome]:
        """Read the newest outcomes, oldest first."""
        ...

    async def of(self, period: TimeSpan) -> Sequence[PartOutcome]:
        """Read the outcomes of a period, oldest first."""
        ...

    async def votes(self, period: TimeSpan) -> Sequence[VotedQuestion]:
        """Read the votes on answers whose last vote was in the period."""
        ...

    async def audit(self) -> Sequence[AuditEntry]:
        """Read the audit log, oldest first. Raises OSError."""
        ...


class GapDismissals(Protocol):
    """The questions whose gaps were dismissed, by the ids of their first messages. Its methods raise OSError."""

    async def read(self) -> Collection[int]: ...

    async def change(self, action: str, asked_ids: Collection[int], operator: str) -> None:
        """Dismiss or restore questions (`action`), and note who did."""
        ...


class DraftList(Protocol):
    """The drafts of all processes."""

    async def waiting(self) -> Sequence[Draft]:
        """Return the drafts that have not ended, oldest first."""
        ...

    async def decide(self, draft_id: int, action: DraftAction, *, operator: str, text: str = "", seen: str = "") -> str:
        """Note who decided, and decide as the review channel does. `seen`: see `DraftRequest`. Returns a line."""
        ...


class Teacher(Protocol):
    """Stores what the team teaches."""

    async def teach(self, form: LessonForm, operator: str) -> TeachingResult:
        """Note who teaches, and store a question and its answer. Raises LessonRefused: nothing is stored."""
        ...

    async def may_quote(self, asked: PartOutcome) -> bool:
        """Return True if a question may be told to everybody as it was asked."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardData:
    """The data that the pages read.

    Attributes:
        meter: None: nothing runs, so there is no page about the flow.
        costs: gives the calls of models in the last days; its argument is the number of days.
        known_sources: gives the sources of the knowledge base.
        may_correct: True if the team's library may be corrected here, and gaps be dismissed; else all is read-only.
        now: gives seconds since 1970, in the time of the stream.
        health: gives the conditions of what the program needs; None: nothing is connected.
        has_model: True if a model is set, so that one that nobody has asked yet is told.
        notice: a sentence about what is shown, where it is not a running bot.
        fleet: gives the state of all processes; None: there is only this one, and no page about processes.
        drafts: the answers that wait for approval; None: no answer does.
        teacher: takes answers to gaps; None: nothing is kept here.
        owner_of: gives whose knowledge a server has.
    """

    meter: FlowMeter | None
    history: History
    dismissed: GapDismissals
    costs: Callable[[int], Awaitable[Costs]]
    known_sources: Callable[[], Awaitable[Sequence[KnownSource]]]
    search: Search
    team: Team
    may_correct: bool
    now: Callable[[], float]
    health: Callable[[], Awaitable[Sequence[Condition]]] | None = None
    has_model: bool = True
    notice: str = ""
    fleet: Callable[[], Awaitable[Fleet]] | None = None
    drafts: DraftList | None = None
    teacher: Teacher | None = None
    owner_of: OwnerOf = shared_by_all
