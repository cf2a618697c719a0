"""Functions from values to frozen dataclasses that the templates show: answers, gaps, knowledge, cost and processes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from dashboard.display import DisplayRules, ago, duration, link_to, minute, size
from dashboard.flow import StepDuration
from model.messages import AuthorType, is_snowflake
from model.outcomes import OutcomeKind
from model.processes import Fleet, ProcessStatus
from model.source_ids import bare_name, topic_id
from model.steps import DECISIONS, STEPS
from model.words import without_invisible
from reporting.cost import Costs, Expense
from reporting.reading import VotedQuestion
from reporting.report import Gap, lessons_among, reason_of, team_answer, title_of
from services.knowledge import Source
from services.search import SearchResult
from services.team import AuditEntry, Overview, Pair, labelled_turns
from services.telemetry import PartOutcome, number_of

ROWS_PER_PAGE = 40
_EXCERPT_CHARS = 160

REPLIES, UNANSWERED, CAPTURES, OTHERS = "replies", "unanswered", "captures", "others"
GROUPS = {
    REPLIES: "Replies",
    UNANSWERED: "Without a reply",
    CAPTURES: "From the team",
    OTHERS: "Not for the bot",
    "all": "All",
}
"""The groups of parts in the list, each with its title; the first is shown first."""


class PartRow(NamedTuple):
    """One part in the list.

    Attributes:
        group: the key of one of `GROUPS`.
        took: the time of the work, empty if it is not known; votes: such as `2 up, 1 down`.
    """

    id: str
    group: str
    at: str
    result: str
    reason: str
    kind: str
    who: str
    where: str
    sources: tuple[str, ...]
    took: str
    tokens: int
    excerpt: str
    votes: str


class Fact(NamedTuple):
    name: str
    value: str


class RankedSource(NamedTuple):
    source: str
    score: str
    chosen: bool


class StepView(NamedTuple):
    """A step of a path, with its decision and its duration, if known."""

    name: str
    facts: tuple[Fact, ...]
    ranked: tuple[RankedSource, ...]
    took: str
    tokens: str


@dataclass(frozen=True, slots=True)
class PartView:
    """One part with its path.

    Attributes:
        question, reply: None if texts are not shown; empty if there is none.
        asked_at, sent_to: addresses in Discord.
    """

    row: PartRow
    question: str | None
    reply: str | None
    asked_at: str
    sent_to: str
    level: str
    qa_id: str
    calls: int
    steps: Sequence[StepView]


_ORDER = tuple(name for each in STEPS if each.handles_parts for name in each.path_keys)


DurationsOf = Callable[[tuple[int, ...]], Sequence[StepDuration]]
"""Gives the durations of the steps of a part, by the ids of its messages; none if they are not known."""


def part_rows(
    entries: Sequence[PartOutcome],
    rules: DisplayRules,
    query: str = "",
    votes: Iterable[VotedQuestion] = (),
    durations_of: DurationsOf = lambda _message_ids: (),
) -> list[PartRow]:
    """Return the rows, newest first, whose shown texts contain all words of `query`."""
    words, voted = query.casefold().split(), {each.asked_id: each for each in votes}
    found: list[PartRow] = []
    for entry in reversed(entries):
        vote = voted.get(entry.message_ids[-1]) if entry.message_ids else None
        row = part_row(entry, rules, vote, durations_of(entry.message_ids))
        if all(word in _searchable(row, entry, rules) for word in words):
            found.append(row)
    return found


def _searchable(row: PartRow, entry: PartOutcome, rules: DisplayRules) -> str:
    shown = (row.id, row.result, row.reason, row.kind, row.who, row.where, *row.sources, entry.qa_id or "")
    return " ".join((*shown, rules.question(entry.question), rules.text(entry.reply))).casefold()


def part_row(
    entry: PartOutcome, rules: DisplayRules, vote: VotedQuestion | None = None, durations: Sequence[StepDuration] = ()
) -> PartRow:
    text = " ".join(rules.question(entry.question).split())
    spent = work_seconds(entry, durations)
    return PartRow(
        id=id_of(entry),
        group=group_of(entry),
        at=minute(entry.at),
        result=str(entry.result),
        reason=entry.reason or ("only points" if entry.level == "point" else ""),
        kind="capture" if entry.author_type is AuthorType.TEAM_MEMBER else "question",
        who=rules.person(entry.author_id),
        where=rules.place(entry.place_id),
        sources=tuple(map(rules.source, entry.sources)),
        took="" if spent is None else duration(spent),
        tokens=sum(map(sum, entry.tokens.values())),
        excerpt=_cut(text, _EXCERPT_CHARS),
        votes="" if vote is None else votes_of(vote),
    )


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def group_of(entry: PartOutcome) -> str:
    """Return the key of `GROUPS` that a part belongs to."""
    if entry.author_type is AuthorType.TEAM_MEMBER:
        return CAPTURES
    if entry.result is OutcomeKind.REPLIED:
        return REPLIES
    return UNANSWERED if entry.question else OTHERS


def votes_of(vote: VotedQuestion) -> str:
    return ", ".join(f"{count} {way}" for way, count in (("up", vote.ups), ("down", vote.downs)) if count)


def work_seconds(entry: PartOutcome, durations: Sequence[StepDuration]) -> float | None:
    """Return how long the work on a part took, without waiting for a typing team member: the sum of its steps in real
    time, or if they are not known, the time from the close of its window. None: zero seconds, as in a replay,
    whose clock stands still.
    """
    if durations:
        return sum(each.seconds for each in durations if each.step != "hold")
    held: object = entry.path.get("hold")
    waited = cast("Mapping[str, Any]", held).get("seconds", 0.0) if isinstance(held, Mapping) else 0.0
    return max(0.0, entry.seconds - (waited if isinstance(waited, int | float) else 0.0)) or None


def is_about(vote: VotedQuestion, entry: PartOutcome) -> bool:
    """Return True if the answer to a part was voted on."""
    return vote.asked_id in entry.message_ids[-1:]


def find_voted_part(entries: Sequence[PartOutcome], vote: VotedQuestion) -> PartOutcome | None:
    """Return the outcome whose answer was voted on; None if it is not among `entries`."""
    return next((entry for entry in reversed(entries) if is_about(vote, entry)), None)


class AuditRow(NamedTuple):
    """A line of the audit log. `link`: the page of the question, if it is among the last ones."""

    at: str
    who: str
    action: str
    about: str
    link: str


def audit_rows(entries: Sequence[AuditEntry], answers: Sequence[PartOutcome], rules: DisplayRules) -> list[AuditRow]:
    """Make the rows of the audit log, newest first. Members of the team on Discord are pseudonyms."""
    pages = {str(each): f"/answers/{id_of(answer)}" for answer in answers for each in answer.message_ids}

    def row(entry: AuditEntry) -> AuditRow:
        who = rules.person(int(entry.by)) if is_snowflake(entry.by) else entry.by or "somebody"
        about = without_invisible(entry.about)
        return AuditRow(
            minute(entry.at), without_invisible(who), without_invisible(entry.action), about, pages.get(about, "")
        )

    return [row(entry) for entry in reversed(entries)]


def id_of(entry: PartOutcome) -> str:
    """Return the id of an outcome in addresses of the dashboard."""
    return f"{entry.message_ids[0] if entry.message_ids else 0:x}"


def find_part(entries: Sequence[PartOutcome], answer_id: str) -> PartOutcome | None:
    """Return the newest outcome with this id."""
    return next((entry for entry in reversed(entries) if id_of(entry) == answer_id), None)


def part_view(
    entry: PartOutcome, durations: Sequence[StepDuration], rules: DisplayRules, vote: VotedQuestion | None = None
) -> PartView:
    """Make the view of a part. `durations`: of its steps, if known."""
    reply_place = entry.reply_place_id
    return PartView(
        row=part_row(entry, rules, vote, durations),
        question=rules.question(entry.question) if rules.texts else None,
        reply=rules.text(entry.reply) if rules.texts else None,
        asked_at=_link_to_question(entry),
        sent_to="" if reply_place is None else link_to(entry.guild_id, reply_place),
        level=entry.level or "",
        qa_id=entry.qa_id or "",
        calls=entry.llm_calls,
        steps=step_views(entry, durations, rules),
    )


def _link_to_question(entry: PartOutcome) -> str:
    return link_to(entry.guild_id, entry.place_id, entry.message_ids[-1] if entry.message_ids else None)


def step_views(entry: PartOutcome, durations: Sequence[StepDuration], rules: DisplayRules) -> list[StepView]:
    """List every step with a decision or a known duration, in the order of the flow."""
    spent = defaultdict[str, float](float)
    for each in durations:
        spent[each.step] += each.seconds
    known = {*entry.path, *spent, *entry.tokens}
    order = [name for name in _ORDER if name in known]
    order += sorted(known.difference(order))
    return [_step(name, entry, spent.get(name), rules) for name in order]


def _step(name: str, entry: PartOutcome, spent: float | None, rules: DisplayRules) -> StepView:
    decided: object = entry.path.get(name)
    facts: list[Fact] = []
    ranked: tuple[RankedSource, ...] = ()
    if isinstance(decided, Mapping):
        decision = cast("Mapping[str, Any]", decided)
        if name == "select":
            ranked = ranked_of(entry, rules)
        facts = [Fact(key, _fact_text(name, key, value, rules)) for key, value in decision.items() if key != "ranked"]
    elif isinstance(decided, (list, tuple)):
        facts = [Fact(name, _fact_text(name, name, cast("Sequence[object]", decided), rules))]
    prompt, completion = entry.tokens.get(name, (0, 0))
    tokens = f"{prompt:,} + {completion:,}" if prompt or completion else ""
    return StepView(name, tuple(facts), ranked, "" if spent is None else duration(spent), tokens)


def ranked_of(entry: PartOutcome, rules: DisplayRules) -> tuple[RankedSource, ...]:
    """Read the sources that search ranked for the question, best first. Malformed pieces of the record are left out."""
    found: list[RankedSource] = []
    match entry.path.get("select"):
        case {"ranked": [*pairs], **rest}:
            chosen = cast("object", rest.get("selected"))
            for pair in cast("Sequence[object]", pairs):
                match pair:
                    case [str() as source, (int() | float()) as score]:
                        picked = isinstance(chosen, (list, tuple)) and source in chosen
                        found.append(RankedSource(rules.source(source), f"{score:.2f}", picked))
                    case _:
                        pass
        case _:
            pass
    return tuple(found)


def _fact_text(step: str, key: str, value: object, rules: DisplayRules) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        values = [str(each) for each in cast("Sequence[object]", value)]
        decision = DECISIONS.get(step)
        is_reason = decision is not None and key == decision.reason_field
        if is_reason and not rules.texts:  # they may quote the question
            return str(len(values))
        if not is_reason and (decision is None or decision.names_sources):
            values = list(map(rules.source, values))
        return ", ".join(map(without_invisible, values)) or "none"
    return without_invisible(str(value))


class GapQuestion(NamedTuple):
    """A question of a gap.

    Attributes:
        text: empty if it reads like the title of the gap, or like an earlier question of it.
        topic: where the team has answered since, or empty.
    """

    id: str
    at: str
    where: str
    who: str
    link: str
    reason: str
    text: str
    topic: str


@dataclass(frozen=True, slots=True)
class GapView:
    """A gap as it is shown.

    Attributes:
        id: of its newest question, for a search with its words.
        title: the question that is typical of it, or if texts are not shown, the nearest page.
        open: the number of questions that the team has not answered since.
        nearest: the page that the search ranked first for one of the questions.
    """

    id: str
    title: str
    count: int
    open: int
    people: int
    reasons: str
    nearest: str
    asked: Sequence[GapQuestion]


def gap_view(gap: Gap, rules: DisplayRules, answers: Mapping[int, str] | None = None) -> GapView:
    """Make the view of a gap. `answers`: by message id, the topics where the team has answered."""
    reasons, asked = gap.reasons, [_gap_question(entry, rules, answers or {}) for entry in gap.questions]
    title = title_of(rules.question(gap.question)) if rules.texts else ""
    seen, without_repeats = {title.casefold()}, list[GapQuestion]()
    for each in asked:
        normalised = " ".join(each.text.casefold().split())
        without_repeats.append(each._replace(text="") if normalised in seen else each)
        seen.add(normalised)
    nearest = next((ranked[0].source for entry in gap.questions if (ranked := ranked_of(entry, rules))), "")
    fallback_title = f"Something near {bare_name(nearest)}" if nearest else f"Something in {asked[0].where}"
    counted = (f"{reason} ({count})" if len(reasons) > 1 else reason for reason, count in reasons.most_common())
    return GapView(
        id=asked[0].id,
        title=title or fallback_title,
        count=len(asked),
        open=sum(not each.topic for each in asked),
        people=gap.askers,
        reasons=", ".join(counted),
        nearest=nearest,
        asked=without_repeats,
    )


def topics_by_message(overview: Overview) -> dict[int, str]:
    """Return the topics of all captured conversations, by the ids of their messages."""
    return {
        message_id: name
        for name, topic in overview.topics.items()
        for pair in topic.pairs
        for message_id in pair.message_ids
    }


def topics_by_pair(overview: Overview) -> dict[str, str]:
    """Return the topics of all captured conversations, by their ids."""
    return {pair.id: name for name, topic in overview.topics.items() for pair in topic.pairs}


def lessons(overview: Overview) -> list[Pair]:
    return lessons_among(pair for topic in overview.topics.values() for pair in topic.pairs)


def _gap_question(entry: PartOutcome, rules: DisplayRules, answers: Mapping[int, str]) -> GapQuestion:
    return GapQuestion(
        id=id_of(entry),
        at=minute(entry.at),
        where=rules.place(entry.place_id),
        who=rules.person(entry.author_id),
        link=_link_to_question(entry),
        reason=reason_of(entry),
        text=rules.question(entry.question),
        topic=team_answer(entry, answers) or "",
    )


MAX_HITS = 20
_PASSAGE_CHARS = 900
_DAY_CHARS, _MINUTE_CHARS = 10, 16
"""The length of a time stamp up to its day, and up to its minute."""


class KnownSource(NamedTuple):
    """A source of the knowledge base.

    Attributes:
        id: with its namespace.
        state: in a few words; why it cannot be read.
        has_trouble: True if the state needs a person.
        size: in bytes; None: unknown.
        changed_at, read_at: when its text last changed, and was last read, in seconds since 1970; None: unknown.
    """

    id: str
    kind: str
    state: str
    has_trouble: bool
    size: int | None
    changed_at: float | None
    description: str
    read_at: float | None = None


class SourceRow(NamedTuple):
    id: str
    url: str
    kind: str
    state: str
    has_trouble: bool
    size: str
    read: str
    changed: str
    used: int
    description: str


class HitRow(NamedTuple):
    """A passage that a search found, with the figures of its rank."""

    source: str
    url: str
    headings: str
    score: str
    meaning: str
    words: str
    text: str


@dataclass(frozen=True, slots=True)
class SearchView:
    """The result of a search on the dashboard.

    Attributes:
        level: what the bot would do with it: `answer`, `point` or `silence`.
        why: the signals behind the level.
    """

    level: str
    confidence: str
    why: Sequence[tuple[str, str]]
    hits: Sequence[HitRow]
    more: int


class TopicRow(NamedTuple):
    name: str
    pairs: int
    first: str
    last: str
    used: int
    description: str


class PairTurnView(NamedTuple):
    label: str
    text: str


@dataclass(frozen=True, slots=True)
class PairView:
    """A captured conversation.

    Attributes:
        link: its address in Discord; empty if unknown.
        turns: without texts if these are not shown.
        notes: the pairs that it replaces, and corrections of it.
    """

    id: str
    said_at: str
    link: str
    turns: Sequence[PairTurnView]
    notes: Sequence[str]


@dataclass(frozen=True, slots=True)
class TeamView:
    topics: Sequence[TopicRow]
    removed: Sequence[tuple[str, str]]
    summary: str


@dataclass(frozen=True, slots=True)
class TopicView:
    name: str
    description: str
    pairs: Sequence[PairView]


def uses(entries: Iterable[PartOutcome]) -> Counter[str]:
    """Count how often each source was cited, or selected if nothing was cited."""
    return Counter(source for entry in entries for source in set(entry.sources))


SOURCE_FILTERS = {"": "all", "failing": "failing", "unused": "never used"}
"""The filters of sources, each with its name."""


def chosen_sources(rows: Iterable[SourceRow], query: str, chosen: str) -> list[SourceRow]:
    """Return the rows that pass the `chosen` one of `SOURCE_FILTERS` and contain all words of `query`."""
    words = query.casefold().split()
    return [
        row
        for row in rows
        if (chosen != "failing" or row.has_trouble)
        and (chosen != "unused" or not row.used)
        and all(word in f"{row.id} {row.kind} {row.state} {row.description}".casefold() for word in words)
    ]


def source_rows(sources: Iterable[KnownSource], used: Counter[str], now: float) -> list[SourceRow]:
    """Make the rows of sources, those with trouble first."""
    rows = [
        SourceRow(
            id=without_invisible(each.id),
            url=url_of(each.id),
            kind=each.kind,
            state=each.state,
            has_trouble=each.has_trouble,
            size=size(each.size),
            read="–" if each.read_at is None else ago(each.read_at, now),
            changed="–" if each.changed_at is None else ago(each.changed_at, now),
            used=used[each.id],
            description=without_invisible(each.description),
        )
        for each in sources
    ]
    return sorted(rows, key=lambda row: not row.has_trouble)


def url_of(source_id: str) -> str:
    return Source(source_id, "").url or ""


def search_view(found: SearchResult, rules: DisplayRules) -> SearchView:
    """Make the view of the best hits of a search, with the signals of their rank."""
    signals = found.signals
    why: list[tuple[str, str]] = []
    if signals is not None:
        best, mean = (
            "words only" if each is None else f"{each:.2f}" for each in (signals.best_cosine, signals.mean_cosine)
        )
        why = [
            ("nearest by meaning (cosine)", best),
            ("all passages by meaning (mean cosine)", mean),
            ("words in the best passage (BM25)", f"{signals.keywords:.2f}"),
            ("words that occur nowhere", f"{signals.absent:.0%}"),
            ("pages in the top five by meaning and by words", str(signals.agreement)),
            ("words that the best passage covers", f"{signals.coverage:.0%}"),
        ]
    hits = [
        HitRow(
            source=rules.source(hit.source_id),
            url=url_of(hit.source_id),
            headings=" › ".join(filter(None, (rules.said_in(hit.source_id, head) for head in hit.passage.headings))),
            score=f"{hit.score:.2f}",
            meaning="–" if hit.cosine is None else f"{hit.cosine:.2f}",
            words=f"{hit.keywords:.2f}",
            text=_cut(rules.said_in(hit.source_id, hit.passage.text), _PASSAGE_CHARS),
        )
        for hit in found.hits[:MAX_HITS]
    ]
    return SearchView(str(found.level), f"{found.confidence:.0%}", why, hits, len(found.hits) - len(hits))


def team_view(overview: Overview, used: Counter[str], rules: DisplayRules) -> TeamView:
    topics: list[TopicRow] = []
    for name, topic in overview.topics.items():
        days = [pair.said_at[:_DAY_CHARS] for pair in topic.pairs]
        description = rules.text(overview.descriptions.get(name, ""))
        topics.append(TopicRow(name, len(days), days[0], days[-1], used[topic_id(name)], description))
    pairs = sum(topic.pairs for topic in topics)
    filed = f"{number_of(len(topics), 'topic')} with {number_of(pairs, 'conversation')}"
    summary = f"{filed}; {overview.captured} captured in all"
    for count, what in ((overview.undecided, "to be filed"), (overview.failed, "could not be filed")):
        summary += f"; {count} {what}" if count else ""
    removed = [(pair_id, topic or "") for pair_id, topic in overview.removed]
    return TeamView(topics, removed, summary)


def topic_view(
    overview: Overview, name: str, address: Callable[[str], str | None], rules: DisplayRules
) -> TopicView | None:
    """Make the view of one topic with its pairs; None: there is no such topic."""
    topic = overview.topics.get(name)
    if topic is None:
        return None
    pairs = [pair_view(pair, overview, address, rules) for pair in topic.pairs]
    return TopicView(name, rules.text(overview.descriptions.get(name, "")), pairs)


def pair_view(pair: Pair, overview: Overview, address: Callable[[str], str | None], rules: DisplayRules) -> PairView:
    notes = [f"replaces {', '.join(replaced)}"] if (replaced := overview.replaced.get(pair.id)) else []
    for by, what in overview.corrected.get(pair.id, ()):
        correction = f": {rules.text(what)}" if rules.texts else ""
        notes.append(f"superseded in part by {by.id}{correction}")
    turns = [PairTurnView(label, rules.text(turn.text)) for label, turn in labelled_turns(pair)]
    return PairView(pair.id, said_at(pair), address(pair.id) or "", turns, notes)


def said_at(pair: Pair) -> str:
    return pair.said_at[:_MINUTE_CHARS].replace("T", " ")


DAYS = 30
ELSEWHERE = "all else"
_PENNIES = 0.01


class CostRow(NamedTuple):
    """`money`: empty if a price is unknown; `share`: in per cent of the largest of its table."""

    name: str
    calls: int
    prompt: int
    completion: int
    money: str
    share: int


@dataclass(frozen=True, slots=True)
class CostView:
    """`has_prices`: all prices are known, so that there are sums of money."""

    total: CostRow
    by_day: Sequence[CostRow]
    by_step: Sequence[CostRow]
    by_channel: Sequence[CostRow]
    has_prices: bool


def cost_view(costs: Costs, rules: DisplayRules) -> CostView:
    """Return the newest days first; the largest steps and channels first, then the expenses without a channel."""
    channels = [(rules.place(channel), spent) for channel, spent in costs.channels.items()]
    if costs.elsewhere.calls or costs.elsewhere.tokens:
        channels.append((ELSEWHERE, costs.elsewhere))
    return CostView(
        total=_cost_rows([("all", costs.total)])[0],
        by_day=_cost_rows(sorted(costs.days.items(), reverse=True)),
        by_step=_cost_rows(sorted(costs.steps.items(), key=lambda item: (-item[1].tokens, item[0]))),
        by_channel=_cost_rows(channels),
        has_prices=costs.total.money is not None,
    )


def _cost_rows(expenses: Sequence[tuple[str, Expense]]) -> list[CostRow]:
    """Make rows of names and expenses; names may occur twice."""
    largest = max((each.tokens for _, each in expenses), default=0)
    return [
        CostRow(
            name=name,
            calls=each.calls,
            prompt=each.prompt,
            completion=each.completion,
            money=money(each.money),
            share=round(100 * each.tokens / largest) if largest else 0,
        )
        for name, each in expenses
    ]


def money(amount: float | None) -> str:
    """Format an amount in the currency of the prices; empty if unknown."""
    if amount is None:
        return ""
    return f"{amount:.4f}" if 0 < amount < _PENNIES else f"{amount:,.2f}"


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
    """`missing`: a sentence for each role that nobody plays, and on partitions without an owner or with two;
    `versions_differ`: not all processes run the same version.
    """

    rows: Sequence[ProcessRow]
    missing: Sequence[str]
    versions_differ: bool


def fleet_view(fleet: Fleet) -> FleetView:
    return FleetView(
        rows=list(map(_process_row, fleet.processes)),
        missing=list(_missing(fleet)),
        versions_differ=len({each.version for each in fleet.processes}) > 1,
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


def _process_row(status: ProcessStatus) -> ProcessRow:
    results = sorted(status.results.items(), key=lambda item: (-item[1], item[0]))
    return ProcessRow(
        name=without_invisible(status.name),
        roles=without_invisible(", ".join(status.roles)),
        partitions=spans(status.partitions),
        owned=len(status.partitions),
        in_flight=status.in_flight,
        results=without_invisible(", ".join(f"{count:,} {result}" for result, count in results)),
        failures=status.failures,
        memory=f"{status.memory_mb:,.0f} MiB" if status.memory_mb else "–",
        up=duration(status.uptime_seconds),
        version=without_invisible(status.version),
        connection=without_invisible(status.connection),
    )


def _missing(fleet: Fleet) -> Iterable[str]:
    played = {role for each in fleet.processes for role in each.roles}
    for role in fleet.roles:
        if role not in played:
            yield f"Nobody plays the role {role}."
    owners = Counter(partition for each in fleet.processes for partition in each.partitions)
    unowned = [partition for partition in range(fleet.partitions) if partition not in owners]
    if unowned:
        yield f"Nobody owns {_partition_names(unowned)}: {'its' if len(unowned) == 1 else 'their'} messages wait."
    twice = [partition for partition, count in owners.items() if count > 1]
    if twice:
        # The stream lets one of them write; the other is about to notice.
        owned = _partition_names(twice)
        yield f"Two processes say that they own {owned}: one of them has lost it and does not know yet."


def _partition_names(partitions: Sequence[int]) -> str:
    return f"partition{'s' if len(partitions) > 1 else ''} {spans(partitions)}"
