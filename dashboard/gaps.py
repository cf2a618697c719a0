"""What was asked and not answered, put together by likeness."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dashboard.answers import id_of
from dashboard.showing import Showing, link_to, minute
from model.messages import AuthorType
from model.outcomes import OutcomeKind, Reason
from services.search import language_of, terms
from services.telemetry import Ended

UNANSWERED = frozenset(
    {
        Reason.NOT_ANSWERABLE,
        Reason.NO_SOURCES,
        Reason.SOURCES_UNAVAILABLE,
        Reason.NO_ANSWER_IN_SOURCES,
        Reason.UNSURE,
        Reason.NO_CITATION,
        Reason.TOO_LONG,
        Reason.REJECTED,
    }
)
ALIKE = 0.4
"""The share of words that two questions have in common, of those that either has."""
POINTED = "point"


@dataclass(frozen=True, slots=True)
class Gap:
    """Questions that are alike, newest first."""

    entries: tuple[Ended, ...]


class Asked(NamedTuple):
    id: str
    at: str
    where: str
    who: str
    link: str
    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class GapView:
    """A gap as it is shown.

    Attributes:
        id: of its newest question, for a search with its words.
        title: that question, where texts are shown; else empty.
        nearest: the page that the search ranked first for one of them.
    """

    id: str
    title: str
    count: int
    people: int
    reasons: str
    nearest: str
    asked: Sequence[Asked]


def is_unanswered(entry: Ended) -> bool:
    """Whether somebody asked something, and got at most a pointer."""
    if entry.author_type is AuthorType.TEAM_MEMBER or not entry.question:
        return False
    skipped = entry.result is OutcomeKind.SKIPPED and entry.reason in UNANSWERED
    return skipped or (entry.result is OutcomeKind.REPLIED and entry.level == POINTED)


def gaps(entries: Iterable[Ended]) -> list[Gap]:
    """Unanswered questions in groups, the largest first; each joins the first group whose first question is like it."""
    groups: list[tuple[frozenset[str], list[Ended]]] = []
    for entry in sorted(filter(is_unanswered, entries), key=lambda each: -each.at):
        words = frozenset(terms(entry.question, language_of(entry.question)))
        for known, members in groups:
            if words == known or len(words & known) >= ALIKE * max(1, len(words | known)):
                members.append(entry)
                break
        else:
            groups.append((words, [entry]))
    found = [Gap(tuple(members)) for _, members in groups]
    return sorted(found, key=lambda gap: (-len(gap.entries), -gap.entries[0].at))


def view(gap: Gap, showing: Showing) -> GapView:
    newest = gap.entries[0]
    reasons = Counter(_reason(entry) for entry in gap.entries)
    return GapView(
        id_of(newest),
        showing.text(newest.question),
        len(gap.entries),
        len({entry.author_id for entry in gap.entries}),
        ", ".join(f"{reason} ({count})" if len(reasons) > 1 else reason for reason, count in reasons.most_common()),
        next((near for entry in gap.entries if (near := _nearest(entry, showing))), ""),
        [_asked(entry, showing) for entry in gap.entries],
    )


def _asked(entry: Ended, showing: Showing) -> Asked:
    last = entry.message_ids[-1] if entry.message_ids else None
    link = link_to(entry.guild_id, entry.place_id, last)
    where, who = showing.place(entry.place_id), showing.person(entry.author_id)
    return Asked(id_of(entry), minute(entry.at), where, who, link, _reason(entry), showing.text(entry.question))


def _reason(entry: Ended) -> str:
    return entry.reason or "only pointed to pages"


def _nearest(entry: Ended, showing: Showing) -> str:
    ranked = entry.path.get("select", {}).get("ranked") if isinstance(entry.path.get("select"), dict) else None
    return showing.source(str(ranked[0][0])) if ranked else ""
