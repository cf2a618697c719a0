"""What the judge has found, as requirements that are met or not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.scale import judge
from benchmarks.scale.faults import Loss, Story
from benchmarks.scale.judge import Log, Posted, Sent
from benchmarks.scale.scene import QUIET_SECONDS

Requirement = tuple[bool, str]

FAILOVER_SECONDS = 3.5
SHARE_SECONDS = 3.0
KILLS = 3
"""So many processes may a message end before it is given up."""
SHOWN = 3
CARELESS = re.compile(r"^Traceback|Task was destroyed", re.MULTILINE)


def none(what: str, found: Sequence[object]) -> Requirement:
    """A requirement that there is nothing of it; a few are shown where there is."""
    shown = "".join(f" {each}" for each in found[:SHOWN])
    return not found, f"{what}: {len(found)}{shown and f' (such as{shown})'}, 0 wanted"


def of_messages(sent: Sequence[Sent], posts: Sequence[Posted], log: Log) -> list[Requirement]:
    """Each message once, in order, whatever happened."""
    pairs = judge.pairs(log)
    replied = sum(ended.kind == "replied" for ended in log.ended)
    captured = sum(ended.kind == "captured" for ended in log.ended)
    asked = sum(each.kind == "question" for each in sent)
    return [
        (bool(sent), f"messages: {len(sent)}, of them {asked} questions; {replied} replied to, {captured} captured"),
        (replied > 0, f"replies: {replied} of {asked} questions, and {len(posts)} posts; some wanted"),
        none("messages lost", judge.lost(sent, log)),
        none("messages in two batches", judge.in_two_batches(log)),
        none(
            "outcomes out of order within channel, author and kind",
            [each.ids[0] for each in judge.out_of_order(sent, log)],
        ),
        none("replies posted twice", [each.nonce for each in judge.posted_twice(posts)]),
        none("messages replied to without a post", judge.unanswered(sent, log, posts)),
        none("late writes accepted", [f"{each.scope} by {each.by}" for each in judge.late_writes(log)]),
        (bool(pairs), f"the team's archive: {len(pairs)} conversations, some wanted"),
        none("conversations out of order in the archive", judge.disorder(pairs)),
        none("captured messages that are not in the archive", judge.not_archived(log, pairs)),
    ]


def of_story(story: Story, sent: Sequence[Sent], log: Log) -> list[Requirement]:
    """What was wanted of each thing that went wrong."""
    found = [
        (story.settled, f"everything had its outcome at the end: {story.settled}"),
        none("processes that ended by themselves", story.by_themselves),
        none("exit codes other than 0 of those told to stop", [code for code in story.codes if code]),
    ]
    for step in dict.fromkeys(story.steps):
        found += of_step(step, story, sent, log)
    return found


def of_step(step: str, story: Story, sent: Sequence[Sent], log: Log) -> list[Requirement]:
    if step == "kill":
        return [failover("fail-over after kill -9 of a worker", story.killed, sent, log, FAILOVER_SECONDS)]
    if step == "freeze":
        return [
            failover("taking over from a frozen worker", story.frozen, sent, log),
            failover("fail-over after kill -9 of the team writer", story.team_killed, sent, log, FAILOVER_SECONDS),
            failover("taking over from a frozen team writer", story.team_frozen, sent, log),
        ]
    if step == "join":
        seconds = story.share_seconds
        took = "never" if seconds is None else f"{seconds:.2f} s after it was seen"
        in_time = seconds is not None and seconds <= SHARE_SECONDS
        return [(in_time, f"a newcomer has its share: {took}, {SHARE_SECONDS:g} s at most wanted")]
    if step == "drain":
        return [
            (story.drained == 0, f"a worker told to stop ends with {story.drained}, 0 wanted"),
            none(
                "questions of that worker that the model was asked again",
                judge.asked_again(sent, log, story.handed_over, story.its, story.others),
            ),
        ]
    return of_poison(story, log) if step == "poison" else []


def of_poison(story: Story, log: Log) -> list[Requirement]:
    poisoned = [ended for ended in log.ended if story.poison in ended.ids]
    alone = [ended.kind for ended in poisoned] == ["failed"] and poisoned[0].ids == (story.poison,)
    became = ", ".join(ended.kind for ended in poisoned) or "nothing"
    others = [ended.ids[0] for ended in log.ended if ended.kind == "failed" and story.poison not in ended.ids]
    line = f"a poison message ended {story.deaths} workers: {became}; {KILLS} and failed wanted, it alone"
    return [(alone and story.deaths == KILLS, line), none("other messages that failed", others)]


def failover(what: str, loss: Loss | None, sent: Sequence[Sent], log: Log, at_most: float | None = None) -> Requirement:
    """How long it took; without `at_most`, only that it came about."""
    if loss is None or not loss.scopes:
        return False, f"{what}: it had nothing to be taken over"
    found = judge.taken_over(sent, log, loss.name, loss.scopes, loss.at, QUIET_SECONDS)
    wanted = "" if at_most is None else f", {at_most:g} s at most wanted"
    # A single writer's first entry as an owner is all that there is to see of it.
    partitions = any(scope.startswith("p") and scope[1:].isdigit() for scope in loss.scopes)
    times = found.outcomes if partitions else found.epochs
    in_time = bool(times) and not found.never and (at_most is None or times[-1] <= at_most)
    owned = f"{len(found.epochs)} of {len(loss.scopes)} scopes taken over in {spread(found.epochs)}"
    waited = f"; first outcomes where messages waited, without their quiet time: {spread(found.outcomes)}"
    outcomes = f"{waited}, {found.never} never"
    return in_time, f"{what}: {owned}{outcomes if partitions else ''}{wanted}"


def spread(seconds: Sequence[float]) -> str:
    if not seconds:
        return "no time at all"
    return f"{seconds[0]:.2f} to {seconds[-1]:.2f} s (median {seconds[len(seconds) // 2]:.2f} s)"


def of_logs(folders: Iterable[Path]) -> list[Requirement]:
    """What the processes said on their way; of tasks that were left to themselves, asyncio says so."""
    said = [(path, path.read_text(errors="replace")) for folder in folders for path in sorted(folder.glob("*-*.log"))]
    return [
        none(
            "processes with a traceback or a task that nobody ended",
            [path.stem for path, text in said if CARELESS.search(text)],
        )
    ]
