"""`--regen`: plans a rebuild of tier 2, and manages the folder in which it is built. Blocking.

    archive    → the fullest capture of each conversation (of a thread the newest), in order of `said_at`
    decisions  → the operators' last decision about each pair, which stays valid

A build that was cut off is resumed: its decisions count up to the first pair that has changed, if prompts, model and
limits are the same. Later pairs are decided again.
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
from services.team import archive
from services.team.archive import Pair
from services.team.decisions import Action, Actor, Decision, DecisionLog, kept_by_rebuild, render
from services.team.index import DescriptionSchedule
from services.team.state import TeamPaths, digest_of_decisions, read_state, render_state
from services.team.topics import Placement, RemovedCaptures, TopicFold, has_team_text, sort_key

log = logging.getLogger(__name__)

PLAN_FILE = "plan.json"
DESCRIBE_EVERY = 16
"""The number of pairs after which topics that have doubled are described; in between the index stays the same."""
SUPERSEDED = "another capture holds more of the conversation"
WORDLESS = "nothing of the team is left in it"


@dataclass(frozen=True, slots=True)
class RebuildTask:
    """A pair to decide about. If an operator restored it, it goes into the topic `restored_to`. If the curator fails,
    it stays in the topic `live_topic` of the live library.
    """

    pair: Pair
    restored_to: str | None = None
    live_topic: str | None = None


@dataclass(frozen=True, slots=True)
class RebuildPlan:
    """The plan of a rebuild: the `tasks` of the curator, in order, and decisions that need no curator.

    Attributes:
        pair_count, conversation_count: how many pairs the archive holds, and how many conversations.
        kept_decisions: decisions that no curator made, which precede all others.
        left_out: ids of pairs that are skipped, and why.
    """

    pair_count: int
    conversation_count: int
    tasks: tuple[RebuildTask, ...]
    kept_decisions: tuple[Decision, ...]
    left_out: tuple[tuple[str, str], ...]

    @property
    def wordless_count(self) -> int:
        """The number of conversations that are left out because they have lost all texts of the team."""
        return sum(why == WORDLESS for _, why in self.left_out)


def plan(pairs: Sequence[Pair], decisions: Sequence[Decision]) -> RebuildPlan:
    """Plan a rebuild from the archive's pairs and the decisions of the live library."""
    before = Placement(decisions)
    kept_decisions = kept_by_rebuild(decisions)
    restored = {each.key for each in kept_decisions if each.action is Action.RESTORED}
    fullest, left_out = _fullest_captures(pairs)
    removals = RemovedCaptures(pair for pair in pairs if pair.key in before.removed)
    tasks: list[RebuildTask] = []
    for key, pair in fullest.items():
        if key in before.withdrawn or removals.others(pair, before.removed):
            continue  # what continues a removed conversation is decided at the next start, as without a rebuild
        if has_team_text(pair):
            topic = before.topic_of.get(key)
            tasks.append(RebuildTask(pair, topic if key in restored else None, topic))
        else:
            left_out[pair.id] = WORDLESS
    tasks.sort(key=lambda task: sort_key(task.pair))
    # At the beginning of a rebuild no pair is in a topic yet.
    first = (replace(each, topic=None) if each.action is Action.RESTORED else each for each in kept_decisions)
    return RebuildPlan(len(pairs), len(fullest), tuple(tasks), tuple(first), tuple(left_out.items()))


def _fullest_captures(pairs: Iterable[Pair]) -> tuple[dict[Decimal, Pair], dict[str, str]]:
    """Return the fullest capture of each conversation, by key; and why others are left out."""
    best: dict[str, Pair] = {}
    left_out: dict[str, str] = {}
    for pair in pairs:
        known = best.get(pair.conversation_id, pair)
        # The one with most messages, then the newest (Pitfall 13); of a thread, which is read as a whole each time, the
        # newest: what it lacks has been deleted.
        best[pair.conversation_id] = fullest = max(
            known, pair, key=lambda each: (len(each.message_ids) if each.kind.joins_by_messages else 0, each.key)
        )
        if known is not pair:
            left_out[(pair if fullest is known else known).id] = SUPERSEDED
    by_key: dict[Decimal, Pair] = {}
    for pair in best.values():
        by_key.setdefault(pair.key, pair)
        left_out.pop(pair.id, None)  # its block is in the archive twice
    return by_key, left_out


@dataclass(frozen=True, slots=True)
class BuildStart:
    """A build that begins, or goes on where an earlier run was cut off.

    Attributes:
        at: when the build was first begun, RFC 3339, UTC. All its decisions have this time, as they become valid
            together, and so that they do not depend on how often the build was cut off.
        decided: the earlier decisions that still count, by task, from the first task on.
    """

    at: str
    decided: tuple[tuple[Decision, ...], ...]

    def growth(self, plan: RebuildPlan) -> DescriptionSchedule:
        """Return the schedule of descriptions as it is after these decisions."""
        schedule = DescriptionSchedule(DESCRIBE_EVERY)
        fold = TopicFold(Placement(plan.kept_decisions), {})
        for task, own in zip(plan.tasks, self.decided, strict=False):
            changed = {name for each in own for name in fold.apply(each, task.pair)}
            schedule.note(fold.topics, sorted(changed))
        return schedule


@dataclass(frozen=True, slots=True)
class LibraryBuild:
    """A library that is built in `folder`, next to the live one. All methods raise OSError."""

    folder: Path
    live: TeamPaths

    @property
    def paths(self) -> TeamPaths:
        return replace(
            self.live,
            decisions=self.folder / "decisions.jsonl",
            topics=self.folder / "topics",
            index=self.folder / "index-team.txt",
            cache=self.folder / "index-team-cache.json",
            state=self.folder / "state.json",
        )

    def begin(self, plan: RebuildPlan, key: str, now: str) -> BuildStart:
        """Prepare the folder for `open_library`. `key` changes with everything that decisions depend on besides the
        pairs; `now`: RFC 3339, UTC.
        """
        # A decision about a task counts while its entry stays the same.
        entries = [[task.pair.id, hash_text(archive.render(task.pair)), task.restored_to or ""] for task in plan.tasks]
        earlier = self._read_plan(key)
        valid = self._read_valid(plan.tasks, self._count_same(entries, earlier))
        at = earlier.get("at")
        at = at if isinstance(at, str) else now
        text = "".join(map(render, (*plan.kept_decisions, *itertools.chain.from_iterable(valid))))
        # The new decisions are a prefix of the old ones, so either plan fits them.
        files.replace(self.paths.decisions, text.encode())
        files.replace(self.folder / PLAN_FILE, json.dumps({"key": key, "at": at, "tasks": entries}).encode())
        # Opening the library writes these files again.
        files.remove_folder(self.paths.topics)
        for path in (self.paths.state, self.paths.index):
            files.remove(path)
        return BuildStart(at, tuple(tuple(own) for own in valid))

    def finish(self, plan: RebuildPlan, by: Actor, at: str) -> None:
        """Record a decision about each pair that was left out, so that no start takes the pair for a new one. Only for
        a library that is not in use.
        """
        lines = [render(Decision(pair_id, at, Action.SKIPPED, by, reason=why)) for pair_id, why in plan.left_out]
        if lines:
            files.append(self.paths.decisions, "".join(lines).encode())

    def adopt(self) -> None:
        """Copy the decisions and descriptions of this build to the live library; its next opening does the rest.

        May be cut off at any point: the decisions are replaced in one step; until then the live library is unchanged.
        Raises LibraryUnusable: the live state file is damaged.
        """
        decisions = DecisionLog(self.paths.decisions).content()
        announced = replace(read_state(self.live.state), announced=digest_of_decisions(decisions))
        files.replace(self.live.state, render_state(announced))
        if self.paths.cache.exists():
            files.replace(self.live.cache, self.paths.cache.read_bytes())
        files.replace(self.live.decisions, decisions)

    def clear(self) -> None:
        """Remove the folder. What a crash leaves of it does not count for the next build."""
        files.remove(self.folder / PLAN_FILE)  # first: without it, no decision counts
        files.remove_folder(self.folder)

    def _read_valid(self, tasks: Sequence[RebuildTask], same: int) -> list[list[Decision]]:
        """Read the earlier decisions that still count, by task. The first `same` tasks are unchanged."""
        noted = deque(DecisionLog(self.paths.decisions).read())
        while noted and not noted[0].by.is_curator:  # the kept decisions of that time
            noted.popleft()
        decided: list[list[Decision]] = []
        for task in tasks[:same]:
            own: list[Decision] = []
            while noted and noted[0].qa_id == task.pair.id:
                own.append(noted.popleft())
            if not own or (len(own) == 1 and keep_in_topic(task, own[0]) is not None):
                break
            decided.append(own)
        while decided and decided[-1][0].action is Action.FAILED:
            decided.pop()  # perhaps the build was given up because of it
        return decided

    def _read_plan(self, key: str) -> dict[str, object]:
        """Read the plan of a build that was cut off; empty if there is none, or its key was another."""
        try:
            found: object = json.loads((self.folder / PLAN_FILE).read_bytes())
        except (FileNotFoundError, ValueError):
            return {}
        known = cast("dict[str, object]", found) if isinstance(found, dict) else {}
        if known.get("key") == key and isinstance(known.get("tasks"), list):
            return known
        log.warning("%s: prompts, model or limits have changed; the build starts again", self.folder)
        return {}

    def _count_same(self, entries: Sequence[list[str]], earlier: Mapping[str, object]) -> int:
        """Count the first tasks that are the same in an earlier plan."""
        old = cast("list[object]", earlier.get("tasks", []))
        same = itertools.takewhile(lambda both: both[0] == both[1], zip(entries, old, strict=False))
        count = sum(1 for _ in same)
        if count < len(old):
            log.warning("%s: the archive has changed; from conversation %d on, decided again", self.folder, count)
        return count


def keep_in_topic(task: RebuildTask, decision: Decision) -> Decision | None:
    """Return a second decision that keeps a pair in its topic, if the curator leaves out a pair that an operator
    restored, or failed about a pair of the live library.
    """
    if decision.action is Action.ADDED:
        return None
    if task.restored_to is not None:
        return replace(
            decision, action=Action.RESTORED, by=Actor.OPERATOR, topic=task.restored_to, remove_ids=(), reason=""
        )
    if decision.action is Action.FAILED and task.live_topic is not None:
        return replace(decision, action=Action.ADDED, topic=task.live_topic, reason="it stays where it was")
    return None
