"""The report of a period: questions, answers, votes, captured conversations, and groups of similar questions that had
no answer.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.messages import AuthorType
from model.outcomes import OutcomeKind, Reason, traits_of
from reporting.cost import Costs, Prices, costs
from reporting.reading import TimeSpan, VotedQuestion
from services.llm import StepTokens
from services.search import ENGLISH, terms
from services.search.embedding import Vectors
from services.storage import in_thread
from services.telemetry import PartOutcome

MOST = 2_000
"""The number of the newest questions that are grouped."""
LIKE, LIKE_BY_WORDS = 0.55, 0.3
"""The least cosines of similar questions: of their vectors, and of their words."""
READ_CHARS = 2_000
"""Characters of a question that are read for its words."""
ROUNDS = 3
_LEAST = 1e-12
"""The least squared length: a text without words is similar to none."""

_ADDRESS = re.compile(r"https?://\S+")
"""Addresses are removed: a link to the same site does not make questions similar."""

Embed = Callable[[Sequence[str]], Awaitable[Vectors]]
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Gap:
    """Similar questions.

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


POINTED = "pointed to a page"


def reason_of(entry: PartOutcome) -> str:
    """Say why there was no answer, in the words of outcomes."""
    if entry.result is OutcomeKind.REPLIED:
        return POINTED
    return (entry.reason or "") if entry.result is OutcomeKind.SKIPPED else f"{entry.result}: {entry.reason}"


def is_gap(entry: PartOutcome) -> bool:
    """Return True if a question got no answer. A pointer to a page counts as none."""
    if not entry.question:
        return False
    if entry.result is OutcomeKind.REPLIED:
        return entry.level == "point"
    return entry.result is OutcomeKind.SKIPPED and traits_of(entry.reason).is_gap


async def find_gaps(entries: Sequence[PartOutcome], embed: Embed | None) -> list[Gap]:
    """Group the unanswered of `entries`; the largest group first. `embed` None: by their words.

    Raises what `embed` raises.
    """
    unanswered = [entry for entry in entries if is_gap(entry)][-MOST:]
    if not unanswered:
        return []
    texts = [_ADDRESS.sub(" ", entry.question).strip() or entry.question for entry in unanswered]
    vectors = None if embed is None else await embed(texts)
    return await in_thread(_grouped, unanswered, texts, vectors)


def _grouped(unanswered: Sequence[PartOutcome], texts: Sequence[str], meaning: Vectors | None) -> list[Gap]:
    """Group the questions by meaning, or by words if `meaning` is None. Blocks, for a second with `MOST` questions."""
    if meaning is None:
        likeness, like = _of_words(texts), LIKE_BY_WORDS
    else:
        vectors, like = _unit(np.asarray(meaning, dtype=np.float32)), LIKE
        likeness = vectors @ vectors.T
    groups = _groups(likeness, like)
    found = [_gap([unanswered[at] for at in members], likeness[np.ix_(members, members)]) for members in groups]
    return sorted(found, key=lambda gap: (-len(gap.asked), -gap.askers, -gap.asked[0].at))


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
    """The cosines of texts by their words, of which rare ones weigh more. A matrix of words could fill the memory."""
    holders = defaultdict[str, list[tuple[int, float]]](list)
    for at, text in enumerate(texts):
        for word, count in Counter(terms(text[:READ_CHARS], ENGLISH)).items():
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
    """A conversation that was captured in the period.

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
        taught: captured conversations by id.
    """

    pages: Collection[str] = ()
    taught: Mapping[str, Taught] | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """The report of a period.

    Attributes:
        asked: the number of questions that reached the gate. answered, pointed: the number of those with an answer, or
            with a pointer. left: the reasons of those without a reply, with counts.
        by_day: the numbers of asked and of answered questions of each day.
        seconds: the median time from question to reply; None: there was no reply.
        used: the number of times that each source was shown; unused: the pages that were never shown.
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


async def build_report(
    entries: Sequence[PartOutcome],
    period: TimeSpan,
    *,
    voted_down: Sequence[VotedQuestion] = (),
    knowledge: Knowledge | None = None,
    token_days: Mapping[str, Mapping[str, StepTokens]] | None = None,
    prices: Prices | None = None,
    embed: Embed | None = None,
) -> Report:
    """Build the report of a period. `embed`: gives the vectors by which questions are grouped; None: group them by
    words. Raises what `embed` raises.
    """
    knowledge = knowledge or Knowledge()
    questions = [entry for entry in entries if entry.question]
    replies = [entry for entry in questions if entry.result is OutcomeKind.REPLIED]
    answered = [entry for entry in replies if not is_gap(entry)]
    used = Counter(source for entry in replies for source in entry.sources)
    waits = sorted(entry.seconds for entry in replies)
    return Report(
        period=period,
        asked=len(questions),
        answered=len(answered),
        pointed=len(replies) - len(answered),
        left=Counter(reason_of(entry) for entry in questions if entry.result is not OutcomeKind.REPLIED),
        by_day=_by_day(questions),
        seconds=waits[len(waits) // 2] if waits else None,
        gaps=await find_gaps(entries, embed),
        voted_down=voted_down,
        taught=_taught(entries, knowledge.taught or {}),
        used=used,
        unused=sorted(page for page in knowledge.pages if page not in used),
        pages=len(knowledge.pages),
        costs=costs(token_days or {}, entries, period, prices or Prices()),
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
        if entry.qa_id is not None and entry.author_type is AuthorType.TEAM_MEMBER and entry.reason != Reason.DUPLICATE
    )
    # Of several captures of one conversation only the last one is kept.
    return [known[qa_id] for qa_id in captured if qa_id in known]
