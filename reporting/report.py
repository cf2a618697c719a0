"""What happened in some days, for who runs the bot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from model.messages import AuthorType
from model.outcomes import OutcomeKind, Reason
from reporting.cost import Costs, Prices, costs
from reporting.gaps import Embed, Gap, gaps, is_gap, reason_of
from reporting.reading import TimeSpan, Voted
from services.llm import StepTokens
from services.telemetry import Ended

TAUGHT_TITLE = 100
"""Characters of what somebody was taught."""


@dataclass(frozen=True, slots=True)
class Taught:
    """A conversation that the team had in the period.

    Attributes:
        topic: where it is filed; None: nowhere yet.
        about: its first line.
    """

    qa_id: str
    topic: str | None
    about: str


@dataclass(frozen=True, slots=True)
class Knowledge:
    """The pages that answers can come from, and the conversations the team has taught.

    Attributes:
        pages: ids of the index, without topics.
        taught: by conversation id.
    """

    pages: Collection[str] = ()
    taught: Mapping[str, Taught] | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """Attributes:
    asked: questions that reached the gate; answered, pointed: of these; left: of these, why there was no reply.
    by_day: of each day, how many were asked and how many answered.
    seconds: the median from question to reply; None without replies.
    used: how often each source was shown; unused: pages that were not.
    """

    period: TimeSpan
    asked: int
    answered: int
    pointed: int
    left: Counter[str]
    by_day: Mapping[str, tuple[int, int]]
    seconds: float | None
    gaps: Sequence[Gap]
    voted_down: Sequence[Voted]
    taught: Sequence[Taught]
    used: Counter[str]
    unused: Sequence[str]
    pages: int
    costs: Costs


async def report(
    entries: Sequence[Ended],
    period: TimeSpan,
    *,
    voted_down: Sequence[Voted] = (),
    knowledge: Knowledge | None = None,
    token_days: Mapping[str, Mapping[str, StepTokens]] | None = None,
    prices: Prices | None = None,
    embed: Embed | None = None,
) -> Report:
    """Build the report of a period. `embed` groups similar questions by meaning; None: by words. Raises what `embed`
    raises.

    Raises what `embed` raises.
    """
    knowledge = knowledge or Knowledge()
    questions = [entry for entry in entries if entry.question]
    replies = [entry for entry in questions if entry.result is OutcomeKind.REPLIED]
    answered = [entry for entry in replies if not is_gap(entry)]
    used = Counter(source for entry in replies for source in entry.sources)
    waits = sorted(entry.seconds for entry in replies)
    return Report(
        period=period,
        asked=len(questions),
        answered=len(answered),
        pointed=len(replies) - len(answered),
        left=Counter(reason_of(entry) for entry in questions if entry.result is not OutcomeKind.REPLIED),
        by_day=_by_day(questions),
        seconds=waits[len(waits) // 2] if waits else None,
        gaps=await gaps(entries, embed),
        voted_down=voted_down,
        taught=_taught(entries, knowledge.taught or {}),
        used=used,
        unused=sorted(page for page in knowledge.pages if page not in used),
        pages=len(knowledge.pages),
        costs=costs(token_days or {}, entries, period, prices or Prices()),
    )


def _by_day(questions: Sequence[Ended]) -> dict[str, tuple[int, int]]:
    days: dict[str, tuple[int, int]] = {}
    for entry in questions:
        asked, answered = days.get(entry.day, (0, 0))
        days[entry.day] = (asked + 1, answered + (entry.result is OutcomeKind.REPLIED and not is_gap(entry)))
    return days


def _taught(entries: Sequence[Ended], known: Mapping[str, Taught]) -> list[Taught]:
    """List each captured conversation once, oldest first."""
    captured = dict.fromkeys(
        entry.qa_id
        for entry in entries
        if entry.qa_id is not None and entry.author_type is AuthorType.TEAM_MEMBER and entry.reason != Reason.DUPLICATE
    )
    # Of several captures of one conversation the last one is kept, and the others are not known any more.
    return [known[qa_id] for qa_id in captured if qa_id in known]
