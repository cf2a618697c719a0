"""The first page: is it well, what did it do, what is to be done next. Functions from values to frozen dataclasses, and
the positions of columns, lines and labels in its charts.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from clock import DAY
from dashboard.display import DisplayRules, ago, minute
from dashboard.views import GapView, KnownSource, find_voted_part, id_of, votes_of
from model.health import TOPICS, Condition, HealthTopic
from model.outcomes import OutcomeKind
from model.source_ids import bare_name
from model.words import without_invisible
from reporting.cost import whole_days
from reporting.reading import TimeSpan, VotedQuestion
from reporting.report import is_answered, title_of
from services.telemetry import PartOutcome, number_of

DAYS = 14
NAMED_SUBJECTS = 2
NAMED_STEPS = 3
"""The most gaps and the most voted answers that are named."""
MINOR = frozenset({HealthTopic.SOURCES, HealthTopic.ERRORS})
"""Topics whose trouble does not keep the bot from answering."""
UNASKED = "no model has been asked since the start"
WELL, WORTH_A_LOOK, ILL, UNKNOWN = "well", "look", "ill", "unknown"
_ORDER = (ILL, WORTH_A_LOOK, WELL, UNKNOWN)


class HealthRow(NamedTuple):
    """One thing that the program needs. `state`: `well`, `look`, `ill` or `unknown`; `remedy`: empty if all is well."""

    topic: str
    title: str
    state: str
    says: str
    since: str
    detail: str
    remedy: str


@dataclass(frozen=True, slots=True)
class HealthView:
    """The health of the program, as rows.

    Attributes:
        state: the worst of the rows; `verdict`: the same in a sentence.
    """

    state: str
    verdict: str
    rows: Sequence[HealthRow]


def health_view(
    conditions: Iterable[Condition], rules: DisplayRules, now: float, *, has_model: bool = True
) -> HealthView:
    """Make the view of the conditions, those in trouble first. `has_model`: a model is set."""
    known = {each.topic: each for each in conditions}
    rows = [_health_row(known[topic], rules, now) for topic in HealthTopic if topic in known]
    if has_model and HealthTopic.DISCORD in known and HealthTopic.MODEL not in known:
        rows.append(
            HealthRow(HealthTopic.MODEL, TOPICS[HealthTopic.MODEL].title, UNKNOWN, UNASKED.capitalize(), "", "", "")
        )
    rows.sort(key=lambda row: _ORDER.index(row.state))
    if not rows:
        return HealthView(UNKNOWN, "What is well and what is not cannot be found out now", rows)
    ill = [row for row in rows if row.state == ILL]
    look = [row for row in rows if row.state == WORTH_A_LOOK]
    if ill:
        first, *others = ill
        more = f"; {len(others)} more {'things are' if others[1:] else 'thing is'} wrong" if others else ""
        return HealthView(ILL, f"{first.says} {first.since}{more}", rows)
    if look:
        return HealthView(
            WORTH_A_LOOK, f"It works; worth a look: {' and '.join(row.title.lower() for row in look)}", rows
        )
    is_known = all(row.state == WELL for row in rows)
    return HealthView(WELL, "All is well" if is_known else f"Nothing is wrong so far; {UNASKED}", rows)


def _health_row(condition: Condition, rules: DisplayRules, now: float) -> HealthRow:
    topic, words, detail = condition.topic, condition.words, condition.detail
    if topic is HealthTopic.ERRORS and not rules.texts:  # it may name somebody's file
        detail = detail.partition(": ")[0]
    if condition.since is None:
        seen = max(condition.well.values(), default=None)
        since = "" if seen is None else f"seen {ago(seen, now)}"
        return HealthRow(topic, words.title, WELL, words.well, since, without_invisible(detail), "")
    named = [name for name in condition.troubles if name]
    subjects = ", ".join(named[:NAMED_SUBJECTS])
    if len(named) > NAMED_SUBJECTS:
        subjects += f" and {len(named) - NAMED_SUBJECTS} more"
    state = WORTH_A_LOOK if topic in MINOR else ILL
    past = ago(condition.since, now).replace(" ", "\N{NO-BREAK SPACE}")
    since = f"since {minute(condition.since)} ({past})"
    told = ": ".join(filter(None, (subjects, detail)))
    return HealthRow(
        topic, words.title, state, words.trouble, since, without_invisible(told), words.remedy.replace("`", "")
    )


class NextStep(NamedTuple):
    """Something to do, with the page where it is done. `more`: a few words about it."""

    text: str
    link: str
    more: str


FAILING_SOURCES = "/knowledge?state=failing#sources"


def with_troubles(health: HealthView | None, steps: Sequence[NextStep]) -> list[NextStep]:
    """Add what is to be done about each trouble: first what keeps the bot from answering, last what does not."""
    rows = [] if health is None else [row for row in health.rows if row.remedy]
    known = {step.link for step in steps}
    ill = [NextStep(row.says, "#well", row.remedy) for row in rows if row.state == ILL]
    if health is not None and not health.rows:
        told = "No process answers: look at the NATS servers, and at the log of this process."
        ill.append(NextStep("Find out whether all is well", "/processes", told))
    minor = [
        NextStep(row.says, FAILING_SOURCES if row.topic == HealthTopic.SOURCES else "#well", row.remedy)
        for row in rows
        if row.state != ILL and not (row.topic == HealthTopic.SOURCES and FAILING_SOURCES in known)
    ]
    return [*ill, *steps, *minor]


def first_steps(*, has_knowledge: bool, was_asked: bool) -> list[NextStep]:
    """List what a new bot still needs."""
    steps: list[NextStep] = []
    if not has_knowledge:
        where = "It knows nothing yet. Put documents into kb.sources_dir, or addresses into kb.links_file_path."
        steps.append(NextStep("Give it something to answer from", "/knowledge#sources", where))
    if not was_asked:
        steps.append(
            NextStep("Ask it something in Discord", "/answers", "Nobody has yet. What comes of it is shown here.")
        )
    return steps


def next_steps(
    gaps: Sequence[GapView],
    sources: Iterable[KnownSource],
    votes: Sequence[VotedQuestion],
    entries: Sequence[PartOutcome],
    rules: DisplayRules,
    now: float,
    drafts: Collection[float] = (),
) -> list[NextStep]:
    """List what a person can do, most urgent first. `gaps`: those without an answer, the largest first; `drafts`: when
    each answer that waits for a person was made, in seconds since 1970.
    """
    steps: list[NextStep] = []
    if drafts:
        says = f"Post or discard {number_of(len(drafts), 'draft')}"
        steps.append(NextStep(says, "/drafts", f"the oldest was made {ago(min(drafts), now)}"))
    down = sorted((each for each in votes if each.downs > each.ups), key=lambda each: (-each.downs, -each.at))
    for vote in down[:NAMED_STEPS]:
        answer = find_voted_part(entries, vote)
        about = f": {title_of(rules.question(vote.question))}" if rules.texts else ""
        link = "/answers" if answer is None else f"/answers/{id_of(answer)}"
        steps.append(
            NextStep(f"Check an answer voted down{about}", link, f"votes: {votes_of(vote)}; {ago(vote.at, now)}")
        )
    for gap in gaps[:NAMED_STEPS]:
        people = f" by {gap.people} people" if gap.people > 1 else ""
        times = "once" if gap.open == 1 else f"{gap.open} times"
        steps.append(NextStep(f"Write what is missing: {gap.title}", f"/gaps#gap-{gap.id}", f"asked {times}{people}"))
    failing = [each for each in sources if each.has_trouble]
    if failing:
        says = f"See to {number_of(len(failing), 'source')} that cannot be read"
        first = without_invisible(bare_name(failing[0].id))
        steps.append(NextStep(says, FAILING_SOURCES, f"{first}: {failing[0].state}"))
    return steps


WIDTH, HEIGHT = 480, 170
_LEFT, _TOP, _BOTTOM = 38, 8, 44
_COLUMN_SHARE = 0.68
"""The share of a day's width that its column takes."""
_MAX_LINES = 4
MONTHS = ("", "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class Series(NamedTuple):
    """One number for each day. `kind`: the class of its columns in the style sheet."""

    kind: str
    label: str
    values: Sequence[int]


class Column(NamedTuple):
    """A part of a column, with a text that browsers show beside the pointer."""

    kind: str
    says: str
    x: float
    y: float
    width: float
    height: float


class Label(NamedTuple):
    text: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart of stacked columns. `says`: its content in a sentence; `lines`: the marks of the axis."""

    title: str
    says: str
    series: Sequence[Series]
    columns: Sequence[Column]
    days: Sequence[Label]
    lines: Sequence[Label]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = _LEFT


def draw_columns(title: str, days: Sequence[str], series: Sequence[Series]) -> Chart:
    """Draw a column for each day (`2026-11-28`), with the series on top of each other, the first one lowest."""
    totals = [sum(values) for values in zip(*(each.values for each in series), strict=True)]
    top, step = _scale(max(totals, default=0))
    floor, across = HEIGHT - _BOTTOM, (WIDTH - _LEFT) / max(1, len(days))
    unit = (floor - _TOP) / top
    columns: list[Column] = []
    for at, day in enumerate(days):
        y, x = float(floor), _LEFT + across * (at + (1 - _COLUMN_SHARE) / 2)
        for each in series:
            value = each.values[at]
            y -= value * unit
            if value:
                says = f"{day}: {value} {each.label}"
                columns.append(
                    Column(each.kind, says, round(x, 1), round(y, 1), round(across * _COLUMN_SHARE, 1), value * unit)
                )
    labels: list[Label] = []
    for at, day in enumerate(days):
        x = round(_LEFT + across * (at + 0.5), 1)
        labels.append(Label(day[8:].lstrip("0"), x, floor + 17))
        if at == 0 or day.endswith("-01"):
            labels.append(Label(MONTHS[int(day[5:7])], x, floor + 36))
    lines = [Label(f"{value:,}", _LEFT - 6, round(floor - value * unit, 1)) for value in range(0, top + 1, step)]
    sums = ", ".join(f"{sum(each.values):,} {each.label}" for each in series)
    return Chart(title, f"{sums}; in {len(days)} days.", series, columns, labels, lines)


def _scale(most: int) -> tuple[int, int]:
    """Return the upper end of the axis and the distance of its lines, as round numbers."""
    round_numbers = (factor * 10**power for power in itertools.count() for factor in (1, 2, 5))
    step = next(each for each in round_numbers if each * _MAX_LINES >= most)
    return max(step, -(-most // step) * step), step


class DayRow(NamedTuple):
    """The numbers of one day.

    Attributes:
        unanswered: without a reply.
        ups, downs: the votes on answers whose last vote was on this day.
    """

    day: str
    asked: int
    answered: int
    pointed: int
    unanswered: int
    ups: int
    downs: int


@dataclass(frozen=True, slots=True)
class ActivityView:
    """The counts of some days. `total`: the sums, with an empty `day`; `days`: oldest first."""

    total: DayRow
    days: Sequence[DayRow]
    questions: Chart
    votes: Chart

    @property
    def answered_share(self) -> str:
        """The share of questions with an answer; empty if nobody asked."""
        return f"{self.total.answered / self.total.asked:.0%}" if self.total.asked else ""


def period_of(now: float) -> TimeSpan:
    """Return the last `DAYS` days, today included."""
    return TimeSpan((now // DAY - DAYS + 1) * DAY, now + 1)


def activity_view(entries: Iterable[PartOutcome], votes: Iterable[VotedQuestion], period: TimeSpan) -> ActivityView:
    """Count questions, answers and votes by day."""
    days = whole_days(period)
    counts = {day: Counter[str]() for day in days}
    for entry in entries:
        if entry.question and entry.day in counts:
            without = "pointed" if entry.result is OutcomeKind.REPLIED else "unanswered"
            counts[entry.day]["answered" if is_answered(entry) else without] += 1
    for vote in votes:
        day = minute(vote.at)[:10]
        if day in counts:
            counts[day].update(ups=vote.ups, downs=vote.downs)
    rows = [_day_row(day, count) for day, count in counts.items()]
    questions = [
        Series("answered", "answered", [row.answered for row in rows]),
        Series("pointed", "pointed to a page", [row.pointed for row in rows]),
        Series("unanswered", "without a reply", [row.unanswered for row in rows]),
    ]
    voted = [
        Series("ups", "helped", [row.ups for row in rows]),
        Series("downs", "did not help", [row.downs for row in rows]),
    ]
    return ActivityView(
        _day_row("", sum(counts.values(), Counter[str]())),
        rows,
        draw_columns("Questions a day", days, questions),
        draw_columns("Votes a day", days, voted),
    )


def _day_row(day: str, count: Mapping[str, int]) -> DayRow:
    answered, pointed, unanswered = (count.get(name, 0) for name in ("answered", "pointed", "unanswered"))
    asked = answered + pointed + unanswered
    return DayRow(day, asked, answered, pointed, unanswered, count.get("ups", 0), count.get("downs", 0))
