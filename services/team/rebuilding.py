"""What a rebuild of tier 2 works through, and the folder that it builds in (SPEC 6, "--regen"). Blocking.

    archive    → of each conversation the capture that holds most of it, in order of `said_at`
    decisions  → the last word of operators on each pair, which stays in force

A build that was cut off is gone on with as far as nothing has changed that it depends on: the decisions about the first
so many pairs count as long as these are the same pairs in the same order, word for word, and prompts, model and limits
the same. Whatever comes behind the first difference is decided anew.
"""

from __future__ import annotations

import itertools
import json
import logging
import shutil
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import cast

from services.knowledge import hash_text
from services.storage import files
from services.team import archive, qa_ids
from services.team.archive import Pair
from services.team.decisions import Action, By, Decision, DecisionLog, corrections, render
from services.team.placement import Placement
from services.team.places import TeamPlaces
from services.team.topics import place, teaches

log = logging.getLogger(__name__)

SUPERSEDED = "another capture holds more of the conversation"
WORDLESS = "nothing of the team is left in it"


@dataclass(frozen=True, slots=True)
class Task:
    """A pair to be decided about."""

    pair: Pair
    uphold: str | None = None
    """The topic that it goes into whatever the curator says, since an operator has restored it there."""
    was_in: str | None = None
    """The topic in the live library; it stays there when nobody can say where it belongs now."""


@dataclass(frozen=True, slots=True)
class RebuildPlan:
    read: int
    """Pairs in the archive."""
    kept: int
    """Of these, one for each conversation."""
    tasks: tuple[Task, ...]
    """Those that are to be decided about, in order."""
    corrections: tuple[Decision, ...]
    """By operators; they come before everything else."""
    left_out: tuple[tuple[str, str], ...]
    """Ids of pairs that are skipped unseen, and why."""

    @property
    def wordless(self) -> int:
        """Those of `kept` that are left out."""
        return sum(why == WORDLESS for _, why in self.left_out)


def plan(pairs: Iterable[Pair], decisions: Sequence[Decision]) -> RebuildPlan:
    """`decisions`: those of the live library."""
    before = Placement()
    for decision in decisions:
        before.apply(decision)
    said_by_operators = corrections(decisions)
    restored = {qa_ids.instant(each.qa_id) for each in said_by_operators if each.action is Action.RESTORED}
    read, longest, left_out = longest_of(pairs)
    tasks: list[Task] = []
    for key, pair in longest.items():
        if key in before.withdrawn:
            continue
        if teaches(pair):
            topic = before.topic_of.get(key)
            tasks.append(Task(pair, topic if key in restored else None, topic))
        else:
            left_out[pair.id] = WORDLESS
    tasks.sort(key=lambda task: place(task.pair))
    return RebuildPlan(
        read, len(longest), tuple(tasks), tuple(map(unplaced, said_by_operators)), tuple(left_out.items())
    )


def longest_of(pairs: Iterable[Pair]) -> tuple[int, dict[Decimal, Pair], dict[str, str]]:
    """How many there are; of each conversation the fullest capture, by its id; and why the others are left out."""
    read = 0
    best: dict[str, Pair] = {}
    left_out: dict[str, str] = {}
    for pair in pairs:
        read += 1
        known = best.get(pair.conversation_id, pair)
        best[pair.conversation_id] = fullest = max(known, pair, key=fullness)
        if known is not pair:
            left_out[(pair if fullest is known else known).id] = SUPERSEDED
    longest: dict[Decimal, Pair] = {}
    for pair in best.values():
        longest.setdefault(qa_ids.instant(pair.id), pair)
        left_out.pop(pair.id, None)  # a block that stands there twice
    return read, longest, left_out


def fullness(pair: Pair) -> tuple[int, Decimal]:
    """What is compared of two captures of one conversation: how much they hold, then which is newer (Pitfall 13)."""
    return len(pair.message_ids), qa_ids.instant(pair.id)


def unplaced(correction: Decision) -> Decision:
    """As it stands at the beginning of a rebuild, where no pair is in a topic yet."""
    return replace(correction, topic=None) if correction.action is Action.RESTORED else correction


@dataclass(frozen=True, slots=True)
class Build:
    """A library beside the live one."""

    folder: Path
    live: TeamPlaces

    @property
    def places(self) -> TeamPlaces:
        return TeamPlaces(
            raw=self.live.raw,
            decisions=self.folder / "decisions.jsonl",
            topics=self.folder / "topics",
            index=self.folder / "index-team.txt",
            cache=self.folder / "index-team-cache.json",
            state=self.folder / "state.json",
        )

    @property
    def _plan(self) -> Path:
        return self.folder / "plan.json"

    def begin(self, plan: RebuildPlan, key: str) -> list[Decision]:
        """Prepare the folder for `open_library`. Gives the decisions that stand already, one for
        each of the first tasks.

        `key` changes with whatever decisions depend on besides the pairs. Raises OSError.
        """
        entries = [entry(task) for task in plan.tasks]
        standing = self._standing(plan.tasks, entries, key)
        text = "".join(map(render, (*plan.corrections, *itertools.chain.from_iterable(standing))))
        # The new decisions are a beginning of the old ones, so that either plan fits them.
        files.replace(self.places.decisions, text.encode())
        files.replace(self._plan, json.dumps({"key": key, "tasks": entries}).encode())
        # What follows from decisions is written anew when the library is opened.
        shutil.rmtree(self.places.topics, ignore_errors=True)
        for path in (self.places.state, self.places.index):
            files.remove(path)
        if not self.places.cache.exists() and self.live.cache.exists():
            # A topic that comes out as it was keeps its description.
            files.replace(self.places.cache, self.live.cache.read_bytes())
        return [own[0] for own in standing]

    def finish(self, plan: RebuildPlan, by: By, at: str) -> None:
        """Decide about the pairs that were left out, so that no start takes them for new. Raises OSError.

        For a build that no library is open in any more.
        """
        lines = [render(Decision(pair_id, at, Action.SKIPPED, by, reason=why)) for pair_id, why in plan.left_out]
        if lines:
            files.append(self.places.decisions, "".join(lines).encode())

    def clear(self) -> None:
        """Remove the folder. A crash in the midst leaves files that the next build takes for what they are."""
        # First what would make the rest count.
        files.remove(self._plan)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _standing(self, tasks: Sequence[Task], entries: Sequence[list[str]], key: str) -> list[list[Decision]]:
        """What was noted about the first tasks, as far as it still counts."""
        noted = deque(DecisionLog(self.places.decisions).read())
        while noted and noted[0].by is By.OPERATOR:  # the corrections of then
            noted.popleft()
        common = self._common(entries, key)
        decided: list[list[Decision]] = []
        for task in tasks[:common]:
            own: list[Decision] = []
            while noted and noted[0].qa_id == task.pair.id:
                own.append(noted.popleft())
            if not own or not is_complete(task, own):
                break
            decided.append(own)
        while decided and decided[-1][0].action is Action.FAILED:
            # Perhaps that is why the build was given up.
            decided.pop()
        return decided

    def _common(self, entries: Sequence[list[str]], key: str) -> int:
        """How many tasks at the beginning are those of the build as it was."""
        try:
            found: object = json.loads(self._plan.read_bytes())
        except (FileNotFoundError, ValueError):
            return 0
        known = cast("dict[str, object]", found) if isinstance(found, dict) else {}
        before = known.get("tasks")
        if known.get("key") != key or not isinstance(before, list):
            log.warning("%s: prompts, model or limits have changed since; the build begins anew", self.folder)
            return 0
        there = cast("list[object]", before)
        common = 0
        while common < min(len(entries), len(there)) and entries[common] == there[common]:
            common += 1
        if common < len(there):
            log.warning(
                "%s: the archive has changed; from conversation %d on, all is decided anew", self.folder, common
            )
        return common


def entry(task: Task) -> list[str]:
    """What is compared of a task."""
    return [task.pair.id, hash_text(archive.render(task.pair)), task.uphold or ""]


def is_complete(task: Task, own: Sequence[Decision]) -> bool:
    """Whether all that is to be noted about a task has been."""
    return len(own) > 1 or keeping(task, own[0]) is None


def keeping(task: Task, decision: Decision) -> Decision | None:
    """What is to be noted besides, where the curator would leave out a pair that an operator has restored, or cannot
    tell anything of one that is in the live library.
    """
    if decision.action is Action.ADDED:
        return None
    if task.uphold is not None:
        return replace(decision, action=Action.RESTORED, by=By.OPERATOR, topic=task.uphold, remove_ids=(), reason="")
    if decision.action is Action.FAILED and task.was_in is not None:
        return replace(decision, action=Action.ADDED, topic=task.was_in, reason="it stays where it was")
    return None
