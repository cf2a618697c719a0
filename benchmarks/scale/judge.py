"""What became of every message, by the log itself and by what Discord saw: only what was written down is looked at."""

from __future__ import annotations

import base64
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf

from benchmarks.scale.traffic import case_in
from services.team import Pair
from services.team.archive import parse

RAW = "team-knowledge/raw/"


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the stream `LOG`. `at`: when the server stored it, in seconds since 1970."""

    subject: str
    sequence: int
    at: float
    data: bytes
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def scope(self) -> str:
        return self.subject.split(".")[1]

    @property
    def branch(self) -> str:
        """`epoch`, `done`, `file`, or what else there is."""
        return self.subject.split(".")[2]

    @property
    def path(self) -> str:
        """The file that it changes."""
        token = self.subject.split(".", 3)[3]
        return base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()


@dataclass(frozen=True, slots=True)
class Ended:
    """One outcome. `owner`: whose epoch it was when `by` had it written down."""

    scope: str
    by: str
    owner: str
    at: float
    ids: tuple[int, ...]
    kind: str


@dataclass(frozen=True, slots=True)
class Epoch:
    """From when on a scope was somebody's; without an owner it is nobody's."""

    scope: str
    at: float
    owner: str


@dataclass(slots=True)
class Log:
    """What was read of the log, in its order. `sequence`: the number of the entry read last."""

    sequence: int = 0
    ended: list[Ended] = field(default_factory=list[Ended])
    epochs: list[Epoch] = field(default_factory=list[Epoch])
    owners: dict[str, str] = field(default_factory=dict[str, str])
    archive: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """The files of the team's archive, by path."""
    knowledge: set[str] = field(default_factory=set[str])
    """The paths of everybody's knowledge."""

    def add(self, entry: Entry) -> None:
        self.sequence = entry.sequence
        if entry.branch == "epoch":
            owner = json.loads(entry.data)["owner"]
            if self.owners.get(entry.scope) != owner:
                self.epochs.append(Epoch(entry.scope, entry.at, owner))
            self.owners[entry.scope] = owner
        elif entry.branch == "done":
            record, owner = json.loads(entry.data), self.owners.get(entry.scope, "")
            for _, ids, kind in record["ended"]:
                self.ended.append(Ended(entry.scope, record["by"], owner, entry.at, tuple(ids), kind))
        elif entry.branch == "file" and entry.scope == "team" and entry.path.startswith(RAW):
            self._change(entry.path, entry)
        elif entry.branch == "file" and entry.scope == "knowledge":
            self.knowledge.add(entry.path)

    def _change(self, path: str, entry: Entry) -> None:
        before = self.archive.get(path, b"")
        match entry.headers.get("Change"):
            case "append":
                self.archive[path] = before + entry.data
            case "truncate":
                self.archive[path] = before[: int(entry.data)]
            case "remove":
                self.archive.pop(path, None)
            case _:
                self.archive[path] = entry.data

    def owned_by(self, process: str) -> set[str]:
        return {scope for scope, owner in self.owners.items() if owner == process}

    @property
    def kinds(self) -> Mapping[int, str]:
        """By message."""
        return {message_id: ended.kind for ended in self.ended for message_id in ended.ids}


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that a person said. `kind`: as planned, or `asked` during the drill; `case`: of a question."""

    id: int
    place: int
    author: int
    kind: str
    at: float
    case: str = ""


@dataclass(frozen=True, slots=True)
class Posted:
    """A message of the bot."""

    place: int
    at: float
    nonce: str | None
    content: str


def lost(sent: Iterable[Sent], log: Log) -> list[int]:
    """Messages without an outcome."""
    return sorted({each.id for each in sent} - log.kinds.keys())


def in_two_batches(log: Log) -> list[int]:
    """Messages with more than one outcome."""
    times = Counter(message_id for ended in log.ended for message_id in ended.ids)
    return sorted(message_id for message_id, count in times.items() if count > 1)


def out_of_order(sent: Iterable[Sent], log: Log) -> list[Ended]:
    """Outcomes after one of the same kind of a later message, by the same author in the same place; and those whose
    messages lie between the messages of another.

    Of two kinds the later message may well come first: an answer takes its time, and what asks nothing is settled.
    """
    of = {each.id: (each.place, each.author) for each in sent}
    newest: defaultdict[tuple[int, int, str], int] = defaultdict(int)
    ranges: defaultdict[tuple[int, int], list[Ended]] = defaultdict(list)
    found: list[Ended] = []
    for ended in log.ended:
        ids = [message_id for message_id in ended.ids if message_id in of]
        if not ids:
            continue
        key = (*of[ids[0]], ended.kind)
        if min(ids) <= newest[key]:
            found.append(ended)
        newest[key] = max(newest[key], *ids)
        ranges[of[ids[0]]].append(ended)
    for together in ranges.values():
        together.sort(key=lambda ended: min(ended.ids))
        found += [later for earlier, later in pairwise(together) if min(later.ids) < max(earlier.ids)]
    return found


def late_writes(log: Log) -> list[Ended]:
    """Outcomes that were accepted from a process which did not own their scope then."""
    return [ended for ended in log.ended if ended.by != ended.owner]


def posted_twice(posts: Iterable[Posted]) -> list[Posted]:
    """Posts of a nonce that stands in the same place already, of a content that stands there already, or about a
    case that was answered, wherever that was.
    """
    seen = set[tuple[object, ...]]()
    found: list[Posted] = []
    for post in posts:
        case = case_in(post.content)
        marks = {
            ("text", post.place, post.content),
            ("nonce", post.place, post.nonce or post.at),
            ("case", case or post.at),
        }
        if not seen.isdisjoint(marks):
            found.append(post)
        seen |= marks
    return found


def unanswered(sent: Iterable[Sent], log: Log, posts: Iterable[Posted]) -> list[int]:
    """Questions said to be replied to, without a post about their case."""
    answered = {case_in(post.content) for post in posts}
    kinds = log.kinds
    return [each.id for each in sent if each.case and kinds.get(each.id) == "replied" and each.case not in answered]


def asked_again(
    sent: Iterable[Sent], log: Log, scopes: Iterable[str], before: Iterable[str], after: Iterable[str]
) -> list[str]:
    """ThreadFiles of `scopes` that the model was asked about `before` they were handed over and `after` that."""
    theirs = {message_id for ended in log.ended if ended.scope in set(scopes) for message_id in ended.ids}
    both = set(before) & set(after)
    return sorted(each.case for each in sent if each.id in theirs and each.case in both)


def pairs(log: Log) -> list[Pair]:
    """The archive, file by file."""
    texts = ((path, log.archive[path].decode(errors="replace")) for path in sorted(log.archive))
    return [pair for path, text in texts for pair in parse(text, path)]


def disorder(found: Sequence[Pair]) -> list[str]:
    """Ids of pairs that are not later than the one before."""
    return [after.id for before, after in pairwise(found) if after.key <= before.key]


def not_archived(log: Log, found: Sequence[Pair]) -> list[int]:
    """Messages said to be captured that stand in no pair."""
    held = {message_id for pair in found for message_id in pair.message_ids}
    return sorted(each for ended in log.ended if ended.kind == "captured" for each in ended.ids if each not in held)


@dataclass(frozen=True, slots=True)
class TakenOver:
    """How long the scopes of a former owner waited, in seconds, the shortest first.

    Attributes:
        epochs: until a scope had another owner.
        outcomes: until its first outcome by another, without the time for which a batch waits anyway; of scopes in
            which messages had come in before it had that owner.
        never: such scopes without an outcome by another.
    """

    epochs: Sequence[float]
    outcomes: Sequence[float]
    never: int = 0


def taken_over(
    sent: Iterable[Sent], log: Log, owner: str, scopes: Iterable[str], at: float, quiet: float = 0.0
) -> TakenOver:
    """`owner` had `scopes` until `at`. `quiet`: for how many seconds a batch waits."""
    said = {each.id: each.at for each in sent}
    epochs, outcomes, never = list[float](), list[float](), 0
    for scope in scopes:
        taken = next((each.at for each in log.epochs if each.scope == scope and each.at > at and each.owner), None)
        after = [each for each in log.ended if each.scope == scope and each.at > at]
        latest = at if taken is None else taken
        waited = any(said.get(message_id, latest) < latest for each in after for message_id in each.ids)
        done = next((each.at - at - quiet for each in after if each.by != owner), None)
        if taken is not None:
            epochs.append(taken - at)
        if waited and done is not None:
            outcomes.append(done)
        never += waited and done is None
    return TakenOver(sorted(epochs), sorted(outcomes), never)


def longest_silence(sent: Iterable[Sent], log: Log, since: float, until: float) -> float:
    """The longest time without an outcome while a message waited for its own, in seconds, of those that ended between
    `since` and `until`.
    """
    said = {each.id: each.at for each in sent}
    ended = sorted((each.at, message_id) for each in log.ended for message_id in each.ids if message_id in said)
    # By the end of the list: when the oldest of those was said that have their outcome there or later.
    oldest, waiting = inf, dict[int, float]()
    for place in reversed(range(len(ended))):
        oldest = min(oldest, said[ended[place][1]])
        waiting[place] = oldest
    return max(
        (
            after - max(before, waiting[place])
            for place, ((before, _), (after, _)) in enumerate(pairwise(ended), 1)
            if since <= after < until
        ),
        default=0.0,
    )
