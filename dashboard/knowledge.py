"""Sources, what a search finds and why, and what the team has taught."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dashboard.showing import DisplayRules, ago, plain, size
from services.knowledge import bare_name
from services.search import Found
from services.team import Overview, Pair, spoken
from services.telemetry import Ended, number_of

HITS = 20
_EXCERPT = 900
_DAY, _MINUTE = 10, 16
"""Characters of a time stamp."""


class KnownSource(NamedTuple):
    """A source of the knowledge base as it is known.

    Attributes:
        id: with its namespace.
        state: in a few words.
        trouble: whether that needs somebody.
        size: in bytes; None: not known.
        changed_at: when its text was last read anew, seconds since 1970; None: not known.
    """

    id: str
    kind: str
    state: str
    trouble: bool
    size: int | None
    changed_at: float | None
    description: str


class SourceRow(NamedTuple):
    id: str
    url: str
    kind: str
    state: str
    trouble: bool
    size: str
    age: str
    used: int
    description: str


class HitRow(NamedTuple):
    """A passage that a search found, and what it was ranked by."""

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
        why: the signs that this was told from.
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
        link: where in Discord it comes from; empty where that is not known.
        turns: without texts where these are not shown.
        notes: what it replaces, and what has corrected it.
    """

    id: str
    said: str
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


def uses(entries: Iterable[Ended]) -> Counter[str]:
    """Count how often each source was cited, or selected where nothing was cited."""
    return Counter(source for entry in entries for source in set(entry.sources))


def source_rows(held: Iterable[KnownSource], used: Counter[str], now: float) -> list[SourceRow]:
    """Make the rows of sources, those with trouble first."""
    rows = [
        SourceRow(
            plain(each.id),
            url_of(each.id),
            each.kind,
            each.state,
            each.trouble,
            size(each.size),
            "–" if each.changed_at is None else ago(each.changed_at, now),
            used[each.id],
            plain(each.description),
        )
        for each in held
    ]
    return sorted(rows, key=lambda row: not row.trouble)


def url_of(source_id: str) -> str:
    bare = bare_name(source_id)
    return bare if bare.startswith(("http://", "https://")) else ""


def search_view(found: Found, showing: DisplayRules) -> SearchView:
    """Show the best hits of a search with the signals they were ranked by."""
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
            ("pages that both orders have among their first five", str(signals.agreement)),
            ("words that the best passage covers", f"{signals.coverage:.0%}"),
        ]
    hits = [
        HitRow(
            showing.source(hit.source_id),
            url_of(hit.source_id),
            " › ".join(plain(head) for head in hit.kept.headings if head),
            f"{hit.score:.2f}",
            "–" if hit.cosine is None else f"{hit.cosine:.2f}",
            f"{hit.keywords:.2f}",
            _passage(hit.source_id, hit.kept.text, showing),
        )
        for hit in found.hits[:HITS]
    ]
    return SearchView(str(found.level), f"{found.confidence:.0%}", why, hits, len(found.hits) - len(hits))


def _passage(source_id: str, text: str, showing: DisplayRules) -> str:
    """Shorten a passage; text from topics is shown only where texts may be shown."""
    shown = showing.text(text) if source_id.startswith("team:") else plain(text)
    return shown if len(shown) <= _EXCERPT else f"{shown[:_EXCERPT]}…"


def team_view(held: Overview, used: Counter[str], showing: DisplayRules) -> TeamView:
    topics: list[TopicRow] = []
    for name, topic in held.topics.items():
        days = [pair.said_at[:_DAY] for pair in topic.pairs]
        description = showing.text(held.descriptions.get(name, ""))
        topics.append(TopicRow(name, len(days), days[0], days[-1], used[f"team:{name}.txt"], description))
    pairs = sum(topic.pairs for topic in topics)
    says = f"{number_of(len(topics), 'topic')} with {number_of(pairs, 'conversation')}; {held.captured} captured in all"
    for count, what in ((held.undecided, "to be filed"), (held.failed, "could not be filed")):
        says += f"; {count} {what}" if count else ""
    removed = [(pair_id, topic or "") for pair_id, topic in held.removed]
    return TeamView(topics, removed, says)


def topic_view(
    held: Overview, name: str, address: Callable[[str], str | None], showing: DisplayRules
) -> TopicView | None:
    """Show one topic with its conversations; None: there is no such topic."""
    topic = held.topics.get(name)
    if topic is None:
        return None
    pairs = [pair_view(pair, held, address, showing) for pair in topic.pairs]
    return TopicView(name, showing.text(held.descriptions.get(name, "")), pairs)


def pair_view(pair: Pair, held: Overview, address: Callable[[str], str | None], showing: DisplayRules) -> PairView:
    notes = [f"replaces {', '.join(replaced)}"] if (replaced := held.replaced.get(pair.id)) else []
    for by, what in held.corrected.get(pair.id, ()):
        says = f": {showing.text(what)}" if showing.texts else ""
        notes.append(f"superseded in part by {by.id}{says}")
    turns = [PairTurnView(label, showing.text(turn.text)) for label, turn in spoken(pair)]
    return PairView(pair.id, said(pair), address(pair.id) or "", turns, notes)


def said(pair: Pair) -> str:
    return pair.said_at[:_MINUTE].replace("T", " ")
