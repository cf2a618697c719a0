"""The health of the program: what is wrong with each thing that it needs, and the incidents that people are told of.

`TOPICS` has the words for each of these things, for all that is shown of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class HealthTopic(StrEnum):
    """A thing that the program needs.

    `ACCESS`: that Discord lets the bot in. `ERRORS`: its own log; it is shown, and makes no incidents.
    """

    DISCORD = "discord"
    ACCESS = "access"
    MODEL = "model"
    KNOWLEDGE = "knowledge"
    SOURCES = "sources"
    BUDGET = "budget"
    DISK = "disk"
    ERRORS = "errors"


class TopicWords(NamedTuple):
    """The words for a topic: a title, a sentence for each state, and what to do."""

    title: str
    trouble: str
    well: str
    remedy: str


TOPICS: Mapping[HealthTopic, TopicWords] = {
    HealthTopic.DISCORD: TopicWords(
        "Discord",
        "Discord is not connected",
        "Discord is connected",
        "Look at https://discordstatus.com, then at this machine's network and the log. The bot reconnects by itself, "
        "and catches up with what was asked.",
    ),
    HealthTopic.ACCESS: TopicWords(
        "Access",
        "Discord refuses the bot",
        "Discord lets the bot in",
        "The program has ended: set what is named here, and start it again. Then it catches up with what was asked.",
    ),
    HealthTopic.MODEL: TopicWords(
        "Model",
        "The model does not answer",
        "The model answers",
        "Check that its server runs, then key and credit; `--check` asks it one question.",
    ),
    HealthTopic.KNOWLEDGE: TopicWords(
        "Knowledge",
        "The knowledge base is not updated",
        "The knowledge base is up to date",
        "Look into the log for what stops the updates, then restart the program.",
    ),
    HealthTopic.SOURCES: TopicWords(
        "Sources",
        "Sources cannot be read",
        "All sources can be read",
        "Look at them, and take those that are gone out of the list. Answers use their earlier text meanwhile.",
    ),
    HealthTopic.BUDGET: TopicWords(
        "Budget",
        "The budget of the day is used up",
        "There is budget left for the day",
        "Raise the limit, or wait for the next day (UTC). Questions stay unanswered until then.",
    ),
    HealthTopic.DISK: TopicWords(
        "Disk",
        "The disk is nearly full, or cannot be written",
        "The disk has room",
        "Make room where app.data_dir is. While it is full, nothing that the team teaches is stored.",
    ),
    HealthTopic.ERRORS: TopicWords("Last error", "An error was logged", "No recent error", "Look into the log."),
}


class Trouble(NamedTuple):
    """When something went wrong, and when it was last seen to be so, in seconds since 1970."""

    since: float
    seen: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """The state of one topic.

    Attributes:
        troubles: by what is in trouble (a host, a source, a model, a limit), or by an empty text if there is only one;
            empty: all is well.
        well: what is known to be well, with the time at which that was last seen.
        detail: figures and the like, for people.
    """

    topic: HealthTopic
    troubles: Mapping[str, Trouble] = field(default_factory=dict[str, Trouble])
    well: Mapping[str, float] = field(default_factory=dict[str, float])
    detail: str = ""

    @property
    def is_well(self) -> bool:
        return not self.troubles

    @property
    def since(self) -> float | None:
        """When the oldest trouble began; None if all is well."""
        return min((trouble.since for trouble in self.troubles.values()), default=None)

    @property
    def words(self) -> TopicWords:
        return TOPICS[self.topic]


def merge_conditions(reports: Iterable[Sequence[Condition]]) -> list[Condition]:
    """Merge the conditions that several processes report: one for each topic that any of them knows of.

    What one process saw to be well after another last saw it in trouble is well.
    """
    by_topic: dict[HealthTopic, list[Condition]] = {}
    for report in reports:
        for each in report:
            by_topic.setdefault(each.topic, []).append(each)
    return [_merge(topic, by_topic[topic]) for topic in HealthTopic if topic in by_topic]


def _merge(topic: HealthTopic, found: Sequence[Condition]) -> Condition:
    troubles, well = dict[str, Trouble](), dict[str, float]()
    for condition in found:
        for subject, seen in condition.well.items():
            well[subject] = max(seen, well.get(subject, seen))
        for subject, trouble in condition.troubles.items():
            known = troubles.get(subject, trouble)
            troubles[subject] = Trouble(min(known.since, trouble.since), max(known.seen, trouble.seen))
    lasting = {name: trouble for name, trouble in troubles.items() if well.get(name, 0.0) <= trouble.seen}
    chosen = [each for each in found if each.is_well is not bool(lasting)]
    return Condition(
        topic=topic,
        troubles=lasting,
        well={name: seen for name, seen in well.items() if name not in lasting},
        detail="; ".join(dict.fromkeys(each.detail for each in chosen if each.detail)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """A trouble that lasted so long that people are told of it. Times are in seconds since 1970.

    Attributes:
        since: when the trouble began; begun: when it had lasted long enough.
        subjects: everything that was in trouble, as far as it was told.
        told_at: when the last of them was told.
        ended: when all was well again; None: it is open.
    """

    topic: HealthTopic
    since: float
    begun: float
    subjects: tuple[str, ...] = ()
    detail: str = ""
    told_at: float = 0.0
    ended: float | None = None


class Stage(StrEnum):
    """`GROWN`: more is in trouble than was told."""

    BEGUN = "begun"
    GROWN = "grown"
    ENDED = "ended"


class Notice(NamedTuple):
    """A message to people about an incident."""

    stage: Stage
    incident: Incident
