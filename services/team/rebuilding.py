"""`--regen`: plans a rebuild of tier 2, and manages the folder in which it is built. Blocking.

    archive    → the fullest capture of each conversation, in order of `said_at`
    decisions  → the operators' last decision about each pair, which stays valid

A build that was cut off is resumed as far as nothing has changed that it depends on: its decisions about the first
pairs count as long as these are the same in the same order, word for word, and prompts, model and limits are the same.
Everything after the first difference is decided again.
"""

from __future__ import annotations

import itertools
import json
import logging
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import cast

from services.knowledge import hash_text
from services.storage import files
from services.team import archive, library
from services.team.archive import Pair
from services.team.decisions import Action, By, Decision, DecisionLog, corrections, render
from services.team.index import DescriptionSchedule
from services.team.library import TeamPaths
from services.team.topics import Placement, TopicFold, has_team_text, sort_key

log = logging.getLogger(__name__)

PLAN = "plan.json"
EVERY = 16
"""Pairs between two looks for topics that have doubled, so that the index stays the same in between."""
SUPERSEDED = "another capture holds more of the conversation"
WORDLESS = "nothing of the team is left in it"


@dataclass(frozen=True, slots=True)
class Task:
    """A pair to decide about. If an operator restored it, it goes into the topic `uphold`, whatever the curator says.
    If the curator fails, it stays in the topic that it `was_in`.
    """

    pair: Pair
    uphold: str | None = None
    was_in: str | None = None


@dataclass(frozen=True, slots=True)
class RebuildPlan:
    """The plan of a rebuild: the `tasks` of the curator, in order, and what needs no curator.

    Attributes:
        read, kept: pairs in the archive; of these, one for each conversation.
        corrections: decisions of no curator, which precede all others.
        left_out: ids of pairs that are skipped, and why.
    """

    read: int
    kept: int
    tasks: tuple[Task, ...]
    corrections: tuple[Decision, ...]
    left_out: tuple[tuple[str, str], ...]

    @property
    def wordless(self) -> int:
        """How many of `kept` are left out because no text of the team is left in them."""
        return sum(why == WORDLESS for _, why in self.left_out)


def plan(pairs: Iterable[Pair], decisions: Sequence[Decision]) -> RebuildPlan:
    """Plan a rebuild from the archive's pairs and the decisions of the live library."""
    before = Placement(decisions)
    by_operators = corrections(decisions)
    restored = {each.key for each in by_operators if each.action is Action.RESTORED}
    read, longest, left_out = _longest_of(pairs)
    tasks: list[Task] = []
    for key, pair in longest.items():
        if key in before.withdrawn:
            continue
        if has_team_text(pair):
            topic = before.topic_of.get(key)
            tasks.append(Task(pair, topic if key in restored else None, topic))
        else:
            left_out[pair.id] = WORDLESS
    tasks.sort(key=lambda task: sort_key(task.pair))
    # At the beginning of a rebuild no pair is in a topic yet.
    first = (replace(each, topic=None) if each.action is Action.RESTORED else each for each in by_operators)
    return RebuildPlan(read, len(longest), tuple(tasks), tuple(first), tuple(left_out.items()))


def _longest_of(pairs: Iterable[Pair]) -> tuple[int, dict[Decimal, Pair], dict[str, str]]:
    """The number of pairs; the fullest capture of each conversation, by its key; and why the others are left out."""
    read = 0
    best: dict[str, Pair] = {}
    left_out: dict[str, str] = {}
    for pair in pairs:
        read += 1
        known = best.get(pair.conversation_id, pair)
        # Which holds most, then which is newest (Pitfall 13).
        best[pair.conversation_id] = fullest = max(known, pair, key=lambda each: (len(each.message_ids), each.key))
        if known is not pair:
            left_out[(pair if fullest is known else known).id] = SUPERSEDED
    longest: dict[Decimal, Pair] = {}
    for pair in best.values():
        longest.setdefault(pair.key, pair)
        left_out.pop(pair.id, None)  # its block is in the archive twice
    return read, longest, left_out


@dataclass(frozen=True, slots=True)
class ResumedBuild:
    """A build that was begun, perhaps by an earlier run, and can go on.

    Attributes:
        at: when it was first begun, RFC 3339, UTC. All its decisions bear this time, as they become valid as one step,
            and so that they are the same however often it was cut off.
        decided: the decisions that still count, those about each of the first tasks.
    """

    at: str
    decided: tuple[tuple[Decision, ...], ...]

    def growth(self, plan: RebuildPlan) -> DescriptionSchedule:
        """Return the schedule of descriptions as it is after these decisions."""
        growth = DescriptionSchedule(EVERY)
        fold = TopicFold(Placement(plan.corrections), {})
        for task, own in zip(plan.tasks, self.decided, strict=False):
            changed = {name for each in own for name in fold.apply(each, task.pair)}
            growth.note(fold.topics, sorted(changed))
        return growth


@dataclass(frozen=True, slots=True)
class Build:
    """A library that is built in `folder`, next to the live one. All methods raise OSError."""

    folder: Path
    live: TeamPaths

    @property
    def places(self) -> TeamPaths:
        return replace(
            self.live,
            decisions=self.folder / "decisions.jsonl",
            topics=self.folder / "topics",
            index=self.folder / "index-team.txt",
            cache=self.folder / "index-team-cache.json",
            state=self.folder / "state.json",
        )

    def begin(self, plan: RebuildPlan, key: str, now: str) -> ResumedBuild:
        """Prepare the folder for `open_library`. `key` changes with everything that decisions depend on besides the
        pairs; `now`: RFC 3339, UTC.
        """
        # What must stay the same for a decision about a task to count.
        entries = [[task.pair.id, hash_text(archive.render(task.pair)), task.uphold or ""] for task in plan.tasks]
        before = self._before(key)
        valid = self._valid(plan.tasks, self._common(entries, before))
        at = before.get("at")
        at = at if isinstance(at, str) else now
        text = "".join(map(render, (*plan.corrections, *itertools.chain.from_iterable(valid))))
        # The new decisions are a prefix of the old ones, so either plan fits them.
        files.replace(self.places.decisions, text.encode())
        files.replace(self.folder / PLAN, json.dumps({"key": key, "at": at, "tasks": entries}).encode())
        # Opening the library writes again what follows from decisions.
        files.remove_folder(self.places.topics)
        for path in (self.places.state, self.places.index):
            files.remove(path)
        return ResumedBuild(at, tuple(tuple(own) for own in valid))

    def finish(self, plan: RebuildPlan, by: By, at: str) -> None:
        """Record a decision about each pair that was left out, so that no start takes it for a new one. Only for a
        library that is not in use.
        """
        lines = [render(Decision(pair_id, at, Action.SKIPPED, by, reason=why)) for pair_id, why in plan.left_out]
        if lines:
            files.append(self.places.decisions, "".join(lines).encode())

    def adopt(self) -> None:
        """Make the decisions and descriptions of this build those of the live library; its next opening does the rest.

        May be cut off at any point: the decisions are swapped in one step; until then the live library is unchanged.
        Raises LibraryUnusable: the live state file is damaged.
        """
        decisions = DecisionLog(self.places.decisions).content()
        announced = replace(library.read_state(self.live.state), announced=library.digest_of_decisions(decisions))
        files.replace(self.live.state, library.render_state(announced))
        if self.places.cache.exists():
            files.replace(self.live.cache, self.places.cache.read_bytes())
        files.replace(self.live.decisions, decisions)

    def clear(self) -> None:
        """Remove the folder. What a crash leaves of it does not count for the next build."""
        files.remove(self.folder / PLAN)  # first: without it, no decision counts
        files.remove_folder(self.folder)

    def _valid(self, tasks: Sequence[Task], common: int) -> list[list[Decision]]:
        """The earlier decisions about each of the first `common` tasks that still count."""
        noted = deque(DecisionLog(self.places.decisions).read())
        while noted and not noted[0].by.is_curator:  # the corrections of that time
            noted.popleft()
        decided: list[list[Decision]] = []
        for task in tasks[:common]:
            own: list[Decision] = []
            while noted and noted[0].qa_id == task.pair.id:
                own.append(noted.popleft())
            if not own or (len(own) == 1 and keeping(task, own[0]) is not None):
                break
            decided.append(own)
        while decided and decided[-1][0].action is Action.FAILED:
            decided.pop()  # perhaps that is why the build was given up
        return decided

    def _before(self, key: str) -> dict[str, object]:
        """The plan of the build that was cut off; empty if there is none, or it depended on something else."""
        try:
            found: object = json.loads((self.folder / PLAN).read_bytes())
        except (FileNotFoundError, ValueError):
            return {}
        known = cast("dict[str, object]", found) if isinstance(found, dict) else {}
        if known.get("key") == key and isinstance(known.get("tasks"), list):
            return known
        log.warning("%s: prompts, model or limits have changed; the build starts again", self.folder)
        return {}

    def _common(self, entries: Sequence[list[str]], before: Mapping[str, object]) -> int:
        """How many of the first tasks are the same as before."""
        there = cast("list[object]", before.get("tasks", []))
        same = itertools.takewhile(lambda both: both[0] == both[1], zip(entries, there, strict=False))
        common = sum(1 for _ in same)
        if common < len(there):
            log.warning("%s: the archive has changed; from conversation %d on, decided again", self.folder, common)
        return common


def keeping(task: Task, decision: Decision) -> Decision | None:
    """Return a second decision that keeps a pair in its topic, if the curator would leave out what an operator
    restored, or failed about a pair that is in the live library.
    """
    if decision.action is Action.ADDED:
        return None
    if task.uphold is not None:
        return replace(decision, action=Action.RESTORED, by=By.OPERATOR, topic=task.uphold, remove_ids=(), reason="")
    if decision.action is Action.FAILED and task.was_in is not None:
        return replace(decision, action=Action.ADDED, topic=task.was_in, reason="it stays where it was")
    return None
