"""The report of a period, with groups of similar questions that had no answer."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from model.conversations import TAUGHT
from model.messages import AuthorType
from model.outcomes import OutcomeKind, Reason, traits_of
from reporting.cost import Costs, Prices, costs
from reporting.reading import TimeSpan, VotedQuestion
from services.llm import StepTokens
from services.search import ENGLISH, asking_sentences, terms, without_greeting
from services.search.embedding import Vectors
from services.storage import in_thread
from services.team import REMOVED, Pair, worded_alike
from services.telemetry import PartOutcome

MOST = 2_000
"""The number of the newest questions that are grouped."""
LIKE, LIKE_BY_WORDS = 0.55, 0.3
"""The least cosines of similar questions: of their vectors, and of their words."""
READ_CHARS = 2_000
"""Characters of a question that are read for its words."""
TITLE_CHARS = 90
ROUNDS = 3
_LEAST = 1e-12
"""The least squared length: a text without words is similar to none."""

_ADDRESS = re.compile(r"https?://\S+")
"""Addresses are removed: a link to the same site does not make questions similar."""
_MARKS = "?!.,:;)>"
_PUNCTUATION = re.compile(f"[{_MARKS}]+$")

Embed = Callable[[Sequence[str]], Awaitable[Vectors]]
OwnerOf = Callable[[int | None], int | None]
"""Gives whose knowledge a server has, as `Servers.owner_of`."""
Floats = NDArray[np.float32]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Gap:
    """Similar questions of servers that share their knowledge.

    Attributes:
        question: the most typical one; of several, the shortest.
        asked: all questions, newest first.
        askers: the number of people.
    """

    question: str
    asked: tuple[PartOutcome, ...]
    askers: int

    @property
    def reasons(self) -> Counter[str]:
        return Counter(map(reason_of, self.asked))

    @property
    def title(self) -> str:
        """The sentence of the most typical question that asks, in one line."""
        return title_of(self.question)

    @property
    def asked_ids(self) -> frozenset[int]:
        """The ids of the first messages of all questions."""
        return frozenset(entry.message_ids[0] for entry in self.asked if entry.message_ids)

    def is_dismissed(self, dismissed: Collection[int]) -> bool:
        """Return True if at least half of the questions are among the dismissed ones. So a few more change nothing, and
        one dismissed question hides no larger group that it joins.
        """
        return bool(self.asked_ids) and 2 * len(self.asked_ids.intersection(dismissed)) >= len(self.asked_ids)


POINTED = "pointed to a page"


def reason_of(entry: PartOutcome) -> str:
    """Say why there was no answer, in the words of outcomes."""
    if entry.result is OutcomeKind.REPLIED:
        return POINTED
    if entry.result in {OutcomeKind.SKIPPED, OutcomeKind.HELD}:
        return entry.reason or ""
    return f"{entry.result}: {entry.reason}"


def title_of(question: str) -> str:
    """Return the sentence of a question that asks, or its first, in one short line, without greeting and paths."""
    question = _ADDRESS.sub(_host, question[:READ_CHARS])
    asking, others = asking_sentences(without_greeting(question))
    words = " ".join(next(iter([*asking, *others]), question).split())
    if len(words) > TITLE_CHARS:
        words = f"{words[:TITLE_CHARS].rpartition(' ')[0] or words[:TITLE_CHARS]}…"
    return words[:1].upper() + words[1:]


def _host(address: re.Match[str]) -> str:
    host, _, rest = address[0].partition("://")[2].partition("/")
    after = _PUNCTUATION.search(rest or host)
    return host.rpartition("@")[2].rstrip(_MARKS) + ("" if after is None else after[0])


def team_answer(entry: PartOutcome, taught: Mapping[int, T]) -> T | None:
    """Return what the team has answered to a question since; None: nothing. `taught`: by the ids of all messages."""
    return next((taught[each] for each in entry.message_ids if each in taught), None)


Lessons = Mapping[int | None, Sequence[tuple[Pair, T]]]
"""The lessons that are in a topic, each with what is told of it, by whose knowledge they are in (`OwnerOf`)."""


def lessons_among(pairs: Iterable[tuple[Pair, T]]) -> list[tuple[Pair, T]]:
    """Return those that were written to teach and not captured, and whose question is not forgotten."""
    return [each for each in pairs if each[0].kind is TAUGHT and each[0].turns[0].text != REMOVED]


def answered_by_lessons(gaps: Sequence[Gap], lessons: Lessons[T], owner_of: OwnerOf) -> dict[int, T]:
    """Return what is told of the lessons that answer questions of gaps, by the ids of the messages: a lesson with a
    question of the gap, to all of its questions that were asked before. Blocks, for a second with thousands of them.
    """
    answered = dict[int, T]()
    for owner, known in lessons.items():
        own = [gap for gap in gaps if owner_of(gap.asked[0].guild_id) == owner]
        questions = [pair.turns[0].text for pair, _ in known]
        alike = iter(worded_alike([entry.question for gap in own for entry in gap.asked], questions))
        for gap in own:
            found = [known[at] for at in sorted(set[int]().union(*(next(alike) for _ in gap.asked)))]
            for entry in gap.asked:
                since = [told for pair, told in found if pair.key > entry.at]
                answered |= dict.fromkeys(entry.message_ids, since[-1]) if since else {}
    return answered


def is_gap(entry: PartOutcome) -> bool:
    """Return True if a question got no answer. A pointer to a page counts as none."""
    if not entry.question:
        return False
    if entry.result is OutcomeKind.REPLIED:
        return entry.level == "point"
    return entry.result is OutcomeKind.SKIPPED and traits_of(entry.reason).is_gap


def without_owner(_guild_id: int | None) -> None:
    """Return None: no server has knowledge of its own, and all share theirs."""


async def find_gaps(
    entries: Sequence[PartOutcome], embed: Embed | None, owner_of: OwnerOf = without_owner
) -> list[Gap]:
    """Group the unanswered of `entries`; the largest group first. `embed` None: by their words. `owner_of`: only
    questions of servers with one owner make a group.

    Raises what `embed` raises.
    """
    unanswered = [entry for entry in entries if is_gap(entry) and entry.question.replace(REMOVED, "").strip()][-MOST:]
    if not unanswered:
        return []
    texts = [_ADDRESS.sub(" ", entry.question).strip() or entry.question for entry in unanswered]
    vectors = None if embed is None else await embed(texts)
    by_owner = defaultdict[int | None, list[int]](list)
    for at, entry in enumerate(unanswered):
        by_owner[owner_of(entry.guild_id)].append(at)
    found = list[Gap]()
    for own in by_owner.values():
        meaning = None if vectors is None else vectors[own]
        found += await in_thread(_grouped, [unanswered[at] for at in own], [texts[at] for at in own], meaning)
    return sorted(found, key=lambda gap: (-len(gap.asked), -gap.askers, -gap.asked[0].at))


def _grouped(unanswered: Sequence[PartOutcome], texts: Sequence[str], meaning: Vectors | None) -> list[Gap]:
    """Group the questions by meaning, or by words if `meaning` is None. Blocks, for a second with `MOST` questions."""
    if meaning is None:
        likeness, like = _of_words(texts), LIKE_BY_WORDS
    else:
        vectors, like = _unit(np.asarray(meaning, dtype=np.float32)), LIKE
        likeness = vectors @ vectors.T
    groups = _groups(likeness, like)
    return [_gap([unanswered[at] for at in members], likeness[np.ix_(members, members)]) for members in groups]


def _gap(members: Sequence[PartOutcome], likeness: Floats) -> Gap:
    to_all: list[float] = likeness.mean(axis=1).tolist()
    # Two questions are equally typical, but for rounding.
    best = max(range(len(members)), key=lambda at: (round(to_all[at], 4), -len(members[at].question)))
    newest_first = tuple(sorted(members, key=lambda entry: -entry.at))
    return Gap(members[best].question, newest_first, len({entry.author_id for entry in members}))


def _groups(likeness: Floats, like: float) -> list[list[int]]:
    """Group similar rows: each joins the group with the most similar mean or begins one; then all choose again.

    The means are not computed: their cosines follow from the cosines of the members.
    """
    sums, squares = np.zeros_like(likeness), np.zeros(len(likeness), dtype=np.float32)
    groups: list[list[int]] = []
    for at, row in enumerate(likeness):
        found = len(groups)
        cosines = sums[:found, at] / _lengths(squares[:found])
        best = int(np.argmax(cosines)) if found else 0
        if not found or cosines[best] < like:
            best = found
            groups.append([])
        groups[best].append(at)
        squares[best] += 2 * sums[best, at] + row[at]
        sums[best] += row
    for _ in range(ROUNDS):
        again = _chosen(likeness, groups, like)
        if again == groups:
            break
        groups = again
    return groups


def _chosen(likeness: Floats, groups: Sequence[Sequence[int]], like: float) -> list[list[int]]:
    """Let every row choose among the groups again; returns the new groups."""
    sums = np.stack([likeness[group].sum(axis=0) for group in groups])
    squares = np.array([row[group].sum() for row, group in zip(sums, groups, strict=True)], dtype=np.float32)
    cosines = sums / _lengths(squares)[:, None]
    again: list[list[int]] = [[] for _ in groups]
    chosen: list[int] = np.argmax(cosines, axis=0).tolist()
    for at, best in enumerate(chosen):
        if cosines[best, at] < like:
            again.append([at])
        else:
            again[best].append(at)
    return [group for group in again if group]


def _lengths(squares: Floats) -> Floats:
    return np.sqrt(np.maximum(squares, _LEAST))


def _of_words(texts: Sequence[str]) -> Floats:
    """Return the cosines of texts by their words, of which rare ones weigh more. Of a text without such words all of it
    is one: "Can someone help me?" is like itself. A matrix of words could fill the memory.
    """
    holders = defaultdict[str, list[tuple[int, float]]](list)
    for at, text in enumerate(texts):
        words = terms(text[:READ_CHARS], ENGLISH) or [" ".join(text[:READ_CHARS].lower().split())]
        for word, count in Counter(words).items():
            holders[word].append((at, 1 + math.log(count)))
    likeness = np.zeros((len(texts), len(texts)), dtype=np.float32)
    for held_by in holders.values():
        at, weights = [at for at, _ in held_by], np.array([weight for _, weight in held_by], dtype=np.float32)
        weights *= math.log(1 + len(texts) / len(at))
        likeness[np.ix_(at, at)] += np.outer(weights, weights)
    lengths = _lengths(likeness.diagonal())
    return likeness / lengths / lengths[:, None]


def _unit(vectors: Floats) -> Floats:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)


TAUGHT_TITLE = 100
"""The most characters of `Taught.about`."""


@dataclass(frozen=True, slots=True)
class Taught:
    """A captured conversation.

    Attributes:
        topic: the topic that it is filed under; None: not filed yet.
        about: its first line.
    """

    qa_id: str
    topic: str | None
    about: str


@dataclass(frozen=True, slots=True)
class Knowledge:
    """The pages that answers can come from, and the captured conversations.

    Attributes:
        pages: ids of the index, without topics.
        taught: captured conversations by id; answered: the same by the ids of their messages; lessons: those of them
            that were written to teach.
        dismissed: the questions whose gaps are not reported, by the ids of their first messages.
    """

    pages: Collection[str] = ()
    taught: Mapping[str, Taught] = field(default_factory=dict[str, Taught])
    answered: Mapping[int, Taught] = field(default_factory=dict[int, Taught])
    lessons: Lessons[Taught] = field(default_factory=dict[int | None, Sequence[tuple[Pair, Taught]]])
    dismissed: Collection[int] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """The report of a period.

    Attributes:
        asked: the number of questions that reached the gate. answered, pointed: the number of those with an answer, or
            with a pointer. left: the reasons of those without a reply, with counts.
        by_day: the numbers of asked and of answered questions of each day.
        seconds: the median time from question to reply; None: there was no reply.
        used: the number of times that each source was shown; unused: the pages that were never shown.
        dismissed: the number of gaps that an operator has dismissed; they are not among `gaps`.
        answered_since: the conversations in which the team answered, by the ids of their messages, and what it taught
            to these questions, by theirs.
    """

    period: TimeSpan
    asked: int
    answered: int
    pointed: int
    left: Counter[str]
    by_day: Mapping[str, tuple[int, int]]
    seconds: float | None
    gaps: Sequence[Gap]
    voted_down: Sequence[VotedQuestion]
    taught: Sequence[Taught]
    used: Counter[str]
    unused: Sequence[str]
    pages: int
    costs: Costs
    dismissed: int = 0
    answered_since: Mapping[int, Taught] = field(default_factory=dict[int, Taught])


async def build_report(
    entries: Sequence[PartOutcome],
    period: TimeSpan,
    *,
    voted_down: Sequence[VotedQuestion] = (),
    knowledge: Knowledge | None = None,
    token_days: Mapping[str, Mapping[str, StepTokens]] | None = None,
    prices: Prices | None = None,
    embed: Embed | None = None,
    owner_of: OwnerOf = without_owner,
) -> Report:
    """Build the report of a period. `embed`: gives the vectors by which questions are grouped; None: group them by
    words. `owner_of`: as in `find_gaps`. Raises what `embed` raises.
    """
    knowledge = knowledge or Knowledge()
    questions = [entry for entry in entries if entry.question]
    replies = [entry for entry in questions if entry.result is OutcomeKind.REPLIED]
    answered = [entry for entry in replies if not is_gap(entry)]
    used = Counter(source for entry in replies for source in entry.sources)
    # Nobody can tell how long a person takes.
    waits = sorted(entry.seconds for entry in replies if "end" not in entry.path.get("approve", ()))
    found = await find_gaps(entries, embed, owner_of)
    gaps = [gap for gap in found if not gap.is_dismissed(knowledge.dismissed)]
    lessons = await in_thread(answered_by_lessons, gaps, knowledge.lessons, owner_of)
    return Report(
        period=period,
        asked=len(questions),
        answered=len(answered),
        pointed=len(replies) - len(answered),
        left=Counter(reason_of(entry) for entry in questions if entry.result is not OutcomeKind.REPLIED),
        by_day=_by_day(questions),
        seconds=waits[len(waits) // 2] if waits else None,
        gaps=gaps,
        voted_down=voted_down,
        taught=_taught(entries, knowledge.taught),
        used=used,
        unused=sorted(page for page in knowledge.pages if page not in used),
        pages=len(knowledge.pages),
        costs=costs(token_days or {}, entries, period, prices or Prices()),
        dismissed=len(found) - len(gaps),
        answered_since={**lessons, **knowledge.answered},
    )


def _by_day(questions: Sequence[PartOutcome]) -> dict[str, tuple[int, int]]:
    days: dict[str, tuple[int, int]] = {}
    for entry in questions:
        asked, answered = days.get(entry.day, (0, 0))
        days[entry.day] = (asked + 1, answered + (entry.result is OutcomeKind.REPLIED and not is_gap(entry)))
    return days


def _taught(entries: Sequence[PartOutcome], known: Mapping[str, Taught]) -> list[Taught]:
    """List each captured conversation once, oldest first."""
    captured = dict.fromkeys(
        entry.qa_id
        for entry in entries
        if entry.qa_id is not None
        and (entry.author_type is AuthorType.TEAM_MEMBER or entry.result is OutcomeKind.REPLIED)
        and entry.reason != Reason.DUPLICATE
    )
    # Of several captures of one conversation only the last one is kept.
    return [known[qa_id] for qa_id in captured if qa_id in known]
