"""What became of every question and of all that the team said: by what Discord saw, and by what the bot wrote down."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from model.outcomes import OutcomeKind, Reason
from services.telemetry import PartOutcome

CASE = re.compile(r"case-(\d+)")
UNSAVED_SECONDS = 5.0
"""What ended so shortly before a kill may have been written down although its mark was not: it is taken up again."""


@dataclass(slots=True)
class Asked:
    """A question. `root`: the message that its thread is on; `case`: its number, or None if it names none."""

    id: int
    place: int
    root: int
    case: int | None
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class Posted:
    """A message of the bot. `reference`: the message that it replies to."""

    place: int
    content: str
    reference: int | None = None


@dataclass(slots=True)
class Judged:
    """Ids of questions, and of what the team said; `crossed`: contents of posts; `without`: how many, by reason.

    Attributes:
        other_posts: of the bot, that answer no question: what it says of files.
        recorded_twice: messages with two ends written down, no kill between them.
    """

    answered: set[int] = field(default_factory=set[int])
    lost: list[int] = field(default_factory=list[int])
    twice: list[int] = field(default_factory=list[int])
    crossed: list[str] = field(default_factory=list[str])
    without: Counter[str] = field(default_factory=Counter[str])
    recorded_twice: list[int] = field(default_factory=list[int])
    captured: set[int] = field(default_factory=set[int])
    captures_lost: list[int] = field(default_factory=list[int])
    captures_twice: list[int] = field(default_factory=list[int])
    other_posts: int = 0


def judge(
    questions: Sequence[Asked],
    taught: Iterable[int],
    posts: Iterable[Posted],
    outcomes: Iterable[PartOutcome],
    archived: Iterable[int],
    kills: Sequence[float] = (),
) -> Judged:
    """`taught`: ids of the team's answers; `archived`: ids of messages, once for each pair; `kills`: when they were."""
    judged, ends = Judged(), final_ends(outcomes)
    _judge_posts(judged, questions, posts)
    for asked in questions:
        found = ends.get(asked.id)
        if asked.id in judged.answered:
            continue
        if found is None:
            if asked.deleted:
                judged.without["deleted before it was taken up"] += 1
            else:
                judged.lost.append(asked.id)
        elif found[-1].result is not OutcomeKind.REPLIED:
            judged.without[f"{found[-1].result} ({found[-1].reason})"] += 1
        elif judged.answered.isdisjoint(found[-1].message_ids):
            judged.lost.append(asked.id)  # said to be replied to
        else:
            judged.without["answered together with the asker's next one"] += 1
    _judge_captures(judged, taught, ends, archived)
    judged.recorded_twice = [each for each, found in ends.items() if _ended_twice(found, kills)]
    return judged


def final_ends(outcomes: Iterable[PartOutcome]) -> dict[int, list[PartOutcome]]:
    """By message, oldest first, without those after which a start takes the message up again."""
    ends = dict[int, list[PartOutcome]]()
    for outcome in outcomes:
        if outcome.reason != Reason.SHUTDOWN:
            for message_id in outcome.message_ids:
                ends.setdefault(message_id, []).append(outcome)
    return ends


def _judge_posts(judged: Judged, questions: Sequence[Asked], posts: Iterable[Posted]) -> None:
    by_case = {each.case: each for each in questions if each.case is not None}
    by_id = {each.id: each for each in questions}
    times = Counter[int]()
    for post in posts:
        cases = [int(case) for case in CASE.findall(post.content)]
        about = by_case.get(max(cases)) if cases else by_id.get(post.reference or post.place)
        if about is None or (not cases and about.case is not None):
            judged.other_posts += 1
            continue
        here = post.place in {about.root, about.place} or post.reference == about.id
        if not here or any(case not in by_case or by_case[case].root != about.root for case in cases):
            judged.crossed.append(post.content)
        times[about.id] += 1
    judged.answered = set(times)
    judged.twice = [message_id for message_id, count in times.items() if count > 1]


def _judge_captures(
    judged: Judged, taught: Iterable[int], ends: dict[int, list[PartOutcome]], archived: Iterable[int]
) -> None:
    times = Counter(archived)
    for message_id in taught:
        found = ends.get(message_id)
        if times[message_id]:
            judged.captured.add(message_id)
        elif found and found[-1].result is OutcomeKind.SKIPPED:
            judged.without[f"the team's: {found[-1].reason}"] += 1
        else:
            judged.captures_lost.append(message_id)
        if times[message_id] > 1:
            judged.captures_twice.append(message_id)


def _ended_twice(found: Sequence[PartOutcome], kills: Sequence[float]) -> bool:
    between = (found[0].at - UNSAVED_SECONDS, found[-1].at)
    return len(found) > 1 and not any(between[0] <= kill <= between[1] for kill in kills)
