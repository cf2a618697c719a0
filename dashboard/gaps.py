"""What was asked and not answered, put together by likeness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dashboard.answers import id_of, ranked_of
from dashboard.showing import DisplayRules, link_to, minute
from reporting.gaps import Gap, reason_of
from services.telemetry import Ended


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


def view(gap: Gap, showing: DisplayRules) -> GapView:
    newest = gap.asked[0]
    reasons = gap.reasons
    return GapView(
        id_of(newest),
        showing.text(newest.question),
        len(gap.asked),
        gap.askers,
        ", ".join(f"{reason} ({count})" if len(reasons) > 1 else reason for reason, count in reasons.most_common()),
        next((ranked[0].source for entry in gap.asked if (ranked := ranked_of(entry, showing))), ""),
        [_asked(entry, showing) for entry in gap.asked],
    )


def _asked(entry: Ended, showing: DisplayRules) -> Asked:
    last = entry.message_ids[-1] if entry.message_ids else None
    link = link_to(entry.guild_id, entry.place_id, last)
    where, who = showing.place(entry.place_id), showing.person(entry.author_id)
    return Asked(id_of(entry), minute(entry.at), where, who, link, reason_of(entry), showing.text(entry.question))
