"""What happened in a period: questions, answers, votes, what was taught, and groups of similar questions that had no
answer.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.messages import AuthorType
from model.outcomes import OutcomeKind, Reason, traits_of
from reporting.cost import Costs, Prices, costs
from reporting.reading import TimeSpan, Voted
from services.llm import StepTokens
from services.search import ENGLISH, terms
from services.search.embedding import Vectors
from services.storage import in_thread
from services.telemetry import PartOutcome

MOST = 2_000
"""Questions that are grouped: the newest ones."""
_JUDGED_CHARS = 2_000
"""Of a question."""
LIKE, LIKE_BY_WORDS = 0.55, 0.3
"""From this cosine on two questions are one: of their vectors, or of their words."""
ROUNDS = 3
_LEAST = 1e-12
"""Squared length: what has no words is like nothing."""

_ADDRESS = re.compile(r"https?://\S+")
"""Questions are not alike because they link to the same site."""

Embed = Callable[[Sequence[str]], Awaitable[Vectors]]
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Gap:
    """Questions that are alike.

    Attributes:
        question: the one that is most like the others; the shortest of these.
        asked: all of them, newest first.
        askers: how many people asked.
    """

    question: str
    asked: tuple[PartOutcome, ...]
    askers: int

    @property
    def reasons(self) -> Counter[str]:
        return Counter(map(reason_of, self.asked))


POINTED = "pointed to a page"


def reason_of(entry: PartOutcome) -> str:
    """Why there was no answer, in the words of outcomes."""
    if entry.result is OutcomeKind.REPLIED:
        return POINTED
    return (entry.reason or "") if entry.result is OutcomeKind.SKIPPED else f"{entry.result}: {entry.reason}"


def is_gap(entry: PartOutcome) -> bool:
    """Tell whether a question got no answer. Being pointed to a page counts as none."""
    if not entry.question:
        return False
    if entry.result is OutcomeKind.REPLIED:
        return entry.level == "point"
    return entry.result is OutcomeKind.SKIPPED and traits_of(entry.reason).is_gap


async def gaps(entries: Sequence[PartOutcome], embed: Embed | None) -> list[Gap]:
    """Group the unanswered of `entries`; the largest group first. `embed` None: by their words.

    Raises what `embed` raises.
    """
    unanswered = [entry for entry in entries if is_gap(entry)][-MOST:]
    if not unanswered:
        return []
    questions = [entry.question[:_JUDGED_CHARS] for entry in unanswered]
    texts = [_ADDRESS.sub(" ", question).strip() or question for question in questions]
    vectors = None if embed is None else await embed(texts)
    return await in_thread(_grouped, unanswered, texts, vectors)


def _grouped(unanswered: Sequence[PartOutcome], texts: Sequence[str], meaning: Vectors | None) -> list[Gap]:
    """Blocking, for a second where there are `MOST`."""
    if meaning is None:
        likeness, like = _by_words(texts), LIKE_BY_WORDS
    else:
        vectors = _unit(np.asarray(meaning, dtype=np.float32))
        likeness, like = vectors @ vectors.T, LIKE
    found = [
        _gap([unanswered[at] for at in members], likeness[np.ix_(members, members)])
        for members in _groups(likeness, like)
    ]
    return sorted(found, key=lambda gap: (-len(gap.asked), -gap.askers, -gap.asked[0].at))


def _gap(members: Sequence[PartOutcome], cosines: Floats) -> Gap:
    likeness: list[float] = cosines.mean(axis=0).tolist()
    # Of two questions, each is as typical as the other.
    best = max(range(len(members)), key=lambda at: (round(likeness[at], 4), -len(members[at].question)))
    newest_first = tuple(sorted(members, key=lambda entry: -entry.at))
    return Gap(members[best].question, newest_first, len({entry.author_id for entry in members}))


def _groups(likeness: Floats, like: float) -> list[list[int]]:
    """Group what is alike: each joins the group with the most similar mean or begins one; then all choose again.

    Means are never made: their cosines follow from those of their members.
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
    """The groups, once every row has chosen among them anew."""
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


def _by_words(texts: Sequence[str]) -> Floats:
    """Return how alike each two texts are by their words (cosine); a rare word weighs more. No vectors of all words are
    made: strangers can make up any number of them.
    """
    held_by: dict[str, list[tuple[int, int]]] = {}
    for at, text in enumerate(texts):
        for word, count in Counter(terms(text, ENGLISH)).items():
            held_by.setdefault(word, []).append((at, count))
    products = np.zeros((len(texts), len(texts)))
    for held in held_by.values():
        rareness = math.log(1 + len(texts) / len(held))
        rows, weights = zip(*((at, (1 + math.log(count)) * rareness) for at, count in held), strict=True)
        if len(rows) == 1:  # most words
            products[rows[0], rows[0]] += weights[0] ** 2
        else:
            products[np.ix_(rows, rows)] += np.outer(weights, weights)
    lengths = np.sqrt(products.diagonal())
    lengths = np.where(lengths == 0, 1, lengths)
    return (products / np.outer(lengths, lengths)).astype(np.float32)


def _unit(vectors: Floats) -> Floats:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)


TAUGHT_TITLE = 100
"""Characters of what somebody was taught."""


@dataclass(frozen=True, slots=True)
class Taught:
    """A conversation that the team had in the period.

    Attributes:
        topic: where it is filed; None: nowhere yet.
        about: its first line.
    """

    qa_id: str
    topic: str | None
    about: str


@dataclass(frozen=True, slots=True)
class Knowledge:
    """The pages that answers can come from, and the conversations the team has taught.

    Attributes:
        pages: ids of the index, without topics.
        taught: by conversation id.
    """

    pages: Collection[str] = ()
    taught: Mapping[str, Taught] | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """Attributes:
    asked: questions that reached the gate; answered, pointed: of these; left: of these, why there was no reply.
    by_day: of each day, how many were asked and how many answered.
    seconds: the median from question to reply; None without replies.
    used: how often each source was shown; unused: pages that were not.
    """

    period: TimeSpan
    asked: int
    answered: int
    pointed: int
    left: Counter[str]
    by_day: Mapping[str, tuple[int, int]]
    seconds: float | None
    gaps: Sequence[Gap]
    voted_down: Sequence[Voted]
    taught: Sequence[Taught]
    used: Counter[str]
    unused: Sequence[str]
    pages: int
    costs: Costs


async def report(
    entries: Sequence[PartOutcome],
    period: TimeSpan,
    *,
    voted_down: Sequence[Voted] = (),
    knowledge: Knowledge | None = None,
    token_days: Mapping[str, Mapping[str, StepTokens]] | None = None,
    prices: Prices | None = None,
    embed: Embed | None = None,
) -> Report:
    """Build the report of a period. `embed` groups similar questions by meaning; None: by words. Raises what `embed`
    raises.

    Raises what `embed` raises.
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
        gaps=await gaps(entries, embed),
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
    # Of several captures of one conversation the last one is kept, and the others are not known any more.
    return [known[qa_id] for qa_id in captured if qa_id in known]
