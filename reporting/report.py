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

MAX_GROUPED = 2_000
"""The most unanswered questions that are grouped; if there are more, only the newest are."""
MIN_COSINE, MIN_WORD_COSINE = 0.55, 0.3
"""The least cosine with a group that a question needs to join it: of their vectors, and of their words."""
READ_CHARS = 2_000
"""Characters of a question that are read for its words."""
TITLE_CHARS = 90
ROUNDS = 3
"""The most times that all questions choose their group again."""
_MIN_SQUARE = 1e-12
"""The least squared length: a text without words is similar to none."""

_ADDRESS = re.compile(r"https?://\S+")
"""Addresses are removed: a link to the same site does not make questions similar."""
_MARKS = "?!.,:;)>"
_PUNCTUATION = re.compile(f"[{_MARKS}]+$")

Embed = Callable[[Sequence[str]], Awaitable[Vectors]]
OwnerOf = Callable[[int | None], int | None]
"""Takes the id of a server and gives the owner of the knowledge that it uses, as `Servers.owner_of`."""
Floats = NDArray[np.float32]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Gap:
    """Similar questions of servers that share their knowledge.

    Attributes:
        question: the most typical one; of several, the shortest.
        questions: all of them, newest first.
        askers: the number of people.
    """

    question: str
    questions: tuple[PartOutcome, ...]
    askers: int

    @property
    def reasons(self) -> Counter[str]:
        return Counter(map(reason_of, self.questions))

    @property
    def title(self) -> str:
        """The asking sentence of the most typical question, in one line."""
        return title_of(self.question)

    @property
    def asked_ids(self) -> frozenset[int]:
        """The ids of the first messages of all questions."""
        return frozenset(entry.message_ids[0] for entry in self.questions if entry.message_ids)

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
    """Return the asking sentence of a question, or its first, in one short line, without greeting and paths."""
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


def team_answer(entry: PartOutcome, answers: Mapping[int, T]) -> T | None:
    """Return what the team has answered to a question since; None: nothing. `answers`: by the ids of all messages."""
    return next((answers[each] for each in entry.message_ids if each in answers), None)


Lessons = Mapping[int | None, Sequence[Pair]]
"""The lessons that are in a topic, by the owner of the knowledge (`OwnerOf`)."""


def lessons_among(pairs: Iterable[Pair]) -> list[Pair]:
    """Return those that are lessons, not captured on Discord, and whose question is not forgotten."""
    return [pair for pair in pairs if pair.kind is TAUGHT and pair.turns[0].text != REMOVED]


def answered_by_lessons(gaps: Sequence[Gap], lessons: Lessons, owner_of: OwnerOf) -> dict[int, Pair]:
    """Return, by message id of a question, the last of the lessons that answer it. A lesson that asks one question of a
    gap answers every question of that gap that was asked before the lesson was written. Blocks, for a second with
    thousands of them.
    """
    answered = dict[int, Pair]()
    for owner, owners_lessons in lessons.items():
        owners_gaps = [gap for gap in gaps if owner_of(gap.questions[0].guild_id) == owner]
        questions = [entry.question for gap in owners_gaps for entry in gap.questions]
        positions = worded_alike(questions, [lesson.turns[0].text for lesson in owners_lessons])
        asking = dict(zip(questions, positions, strict=True))  # a question → the positions of lessons that ask it
        for gap in owners_gaps:
            answering = sorted(set[int]().union(*(asking[entry.question] for entry in gap.questions)))
            for entry in gap.questions:
                later = [owners_lessons[index] for index in answering if owners_lessons[index].key > entry.at]
                answered |= dict.fromkeys(entry.message_ids, later[-1]) if later else {}
    return answered


def is_gap(entry: PartOutcome) -> bool:
    """Return True if a question got no answer. A pointer to a page counts as none."""
    if not entry.question:
        return False
    if entry.result is OutcomeKind.REPLIED:
        return entry.level == "point"
    return entry.result is OutcomeKind.SKIPPED and traits_of(entry.reason).is_gap


def is_answered(entry: PartOutcome) -> bool:
    """Return True if a question got an answer, and not a pointer alone."""
    return entry.result is OutcomeKind.REPLIED and not is_gap(entry)


def shared_by_all(_guild_id: int | None) -> None:
    """Return None, as an `OwnerOf`: no server has knowledge of its own, all share one."""


async def find_gaps(
    entries: Sequence[PartOutcome], embed: Embed | None, owner_of: OwnerOf = shared_by_all
) -> list[Gap]:
    """Group the unanswered questions among `entries`, by meaning, or if `embed` is None by their words; the largest
    group first. Questions of servers whose knowledge has different owners are never in one group.

    Raises what `embed` raises.
    """
    unanswered = [entry for entry in entries if is_gap(entry) and entry.question.replace(REMOVED, "").strip()]
    unanswered = unanswered[-MAX_GROUPED:]
    if not unanswered:
        return []
    texts = [_ADDRESS.sub(" ", entry.question).strip() or entry.question for entry in unanswered]
    vectors = None if embed is None else await embed(texts)
    by_owner = defaultdict[int | None, list[int]](list)
    for index, entry in enumerate(unanswered):
        by_owner[owner_of(entry.guild_id)].append(index)
    found = list[Gap]()
    for own in by_owner.values():
        own_vectors = None if vectors is None else vectors[own]
        found += await in_thread(
            _grouped, [unanswered[each] for each in own], [texts[each] for each in own], own_vectors
        )
    return sorted(found, key=lambda gap: (-len(gap.questions), -gap.askers, -gap.questions[0].at))


def _grouped(unanswered: Sequence[PartOutcome], texts: Sequence[str], vectors: Vectors | None) -> list[Gap]:
    """Group the questions by meaning, or by words if `vectors` is None. Blocks, for a second with `MAX_GROUPED`."""
    if vectors is None:
        likeness, min_cosine = _word_cosines(texts), MIN_WORD_COSINE
    else:
        unit_vectors, min_cosine = _unit(np.asarray(vectors, dtype=np.float32)), MIN_COSINE
        likeness = unit_vectors @ unit_vectors.T
    groups = _groups(likeness, min_cosine)
    return [_gap([unanswered[each] for each in members], likeness[np.ix_(members, members)]) for members in groups]


def _gap(members: Sequence[PartOutcome], likeness: Floats) -> Gap:
    to_all: list[float] = likeness.mean(axis=1).tolist()
    # In a group of two, both means are equal up to rounding; then the shorter question wins.
    best = max(range(len(members)), key=lambda index: (round(to_all[index], 4), -len(members[index].question)))
    newest_first = tuple(sorted(members, key=lambda entry: -entry.at))
    return Gap(members[best].question, newest_first, len({entry.author_id for entry in members}))


def _groups(likeness: Floats, min_cosine: float) -> list[list[int]]:
    """Group similar questions: each joins the group with the most similar mean or begins one; then all choose again.

    `likeness[i, j]` is the dot product of the vectors of questions i and j. The means are not computed, as these
    products suffice. The sum of a group's vectors points in the direction of their mean; so the cosine of question i
    with the mean of group g is `products[g, i] / sqrt(squares[g])`, where `products[g, i]` is the dot product of its
    vector with the sum, and `squares[g]` the squared length of the sum.
    """
    products, squares = np.zeros_like(likeness), np.zeros(len(likeness), dtype=np.float32)
    groups: list[list[int]] = []
    for index, row in enumerate(likeness):
        count = len(groups)
        cosines = products[:count, index] / _lengths(squares[:count])
        best = int(np.argmax(cosines)) if count else 0
        if not count or cosines[best] < min_cosine:
            best = count
            groups.append([])
        groups[best].append(index)
        squares[best] += 2 * products[best, index] + row[index]  # |s + v|² = |s|² + 2 s·v + |v|²
        products[best] += row
    for _ in range(ROUNDS):
        again = _choose_again(likeness, groups, min_cosine)
        if again == groups:
            break
        groups = again
    return groups


def _choose_again(likeness: Floats, groups: Sequence[Sequence[int]], min_cosine: float) -> list[list[int]]:
    """Let every question choose among the groups again; returns the new groups."""
    # As in `_groups`.
    products = np.stack([likeness[group].sum(axis=0) for group in groups])
    squares = np.array([row[group].sum() for row, group in zip(products, groups, strict=True)], dtype=np.float32)
    cosines = products / _lengths(squares)[:, None]
    again: list[list[int]] = [[] for _ in groups]
    chosen: list[int] = np.argmax(cosines, axis=0).tolist()
    for index, best in enumerate(chosen):
        if cosines[best, index] < min_cosine:
            again.append([index])
        else:
            again[best].append(index)
    return [group for group in again if group]


def _lengths(squares: Floats) -> Floats:
    return np.sqrt(np.maximum(squares, _MIN_SQUARE))


def _word_cosines(texts: Sequence[str]) -> Floats:
    """Return the cosines of texts by their words, of which rare ones weigh more. A text without any terms counts as
    one word, so that "Can someone help me?" is similar to itself.
    """
    # Summed word by word, as a matrix of texts and words could fill the memory.
    holders = defaultdict[str, list[tuple[int, float]]](list)
    for index, text in enumerate(texts):
        words = terms(text[:READ_CHARS], ENGLISH) or [" ".join(text[:READ_CHARS].lower().split())]
        for word, count in Counter(words).items():
            holders[word].append((index, 1 + math.log(count)))
    likeness = np.zeros((len(texts), len(texts)), dtype=np.float32)
    for held_by in holders.values():
        indices = [index for index, _ in held_by]
        weights = np.array([weight for _, weight in held_by], dtype=np.float32)
        weights *= math.log(1 + len(texts) / len(indices))
        likeness[np.ix_(indices, indices)] += np.outer(weights, weights)
    lengths = _lengths(likeness.diagonal())
    return likeness / lengths / lengths[:, None]


def _unit(vectors: Floats) -> Floats:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)


MAX_ABOUT_CHARS = 100
"""The most characters of `CapturedConversation.about`."""


@dataclass(frozen=True, slots=True)
class CapturedConversation:
    """A captured conversation, or a lesson.

    Attributes:
        topic: the topic that it is filed under; None: not filed yet.
        about: the beginning of its first message.
    """

    qa_id: str
    topic: str | None
    about: str


@dataclass(frozen=True, slots=True)
class Knowledge:
    """The pages that answers can come from, and the captured conversations.

    Attributes:
        pages: ids of the index, without topics.
        captured: all captured conversations, by id; captured_by_message: the same, by the ids of their messages.
        lessons: those of the captured ones that are lessons.
        dismissed: the ids of the first messages of questions that an operator has dismissed.
    """

    pages: Collection[str] = ()
    captured: Mapping[str, CapturedConversation] = field(default_factory=dict[str, CapturedConversation])
    captured_by_message: Mapping[int, CapturedConversation] = field(default_factory=dict[int, CapturedConversation])
    lessons: Lessons = field(default_factory=dict[int | None, Sequence[Pair]])
    dismissed: Collection[int] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """The report of a period.

    Attributes:
        asked: the number of questions that reached the gate.
        answered, pointed: the number of those with an answer, and of those with a pointer.
        no_reply_reasons: how often each reason left a question without a reply.
        by_day: for each day, the numbers of asked and of answered questions.
        seconds: the median time from question to reply; None: there was no reply.
        captured: the conversations captured in the period, oldest first.
        used: how often each source was shown; unused: the pages that were never shown; pages: the number of all pages.
        dismissed: the number of gaps that an operator has dismissed; they are not among `gaps`.
        answered_since: what the team has said since, by the id of a message: of a captured conversation, or of a
            question that a lesson answers.
    """

    period: TimeSpan
    asked: int
    answered: int
    pointed: int
    no_reply_reasons: Counter[str]
    by_day: Mapping[str, tuple[int, int]]
    seconds: float | None
    gaps: Sequence[Gap]
    voted_down: Sequence[VotedQuestion]
    captured: Sequence[CapturedConversation]
    used: Counter[str]
    unused: Sequence[str]
    pages: int
    costs: Costs
    dismissed: int = 0
    answered_since: Mapping[int, CapturedConversation] = field(default_factory=dict[int, CapturedConversation])


async def build_report(
    entries: Sequence[PartOutcome],
    period: TimeSpan,
    *,
    voted_down: Sequence[VotedQuestion] = (),
    knowledge: Knowledge | None = None,
    token_days: Mapping[str, Mapping[str, StepTokens]] | None = None,
    prices: Prices | None = None,
    embed: Embed | None = None,
    owner_of: OwnerOf = shared_by_all,
) -> Report:
    """Build the report of a period. `embed`: gives the vectors by which questions are grouped; None: group them by
    words. `owner_of`: as in `find_gaps`. Raises what `embed` raises.
    """
    knowledge = knowledge or Knowledge()
    questions = [entry for entry in entries if entry.question]
    replies = [entry for entry in questions if entry.result is OutcomeKind.REPLIED]
    answered = list(filter(is_answered, questions))
    used = Counter(source for entry in replies for source in entry.sources)
    # Without replies that a person approved: how long they waited for that person says nothing about the bot.
    waits = sorted(entry.seconds for entry in replies if "end" not in entry.path.get("approve", ()))
    found = await find_gaps(entries, embed, owner_of)
    gaps = [gap for gap in found if not gap.is_dismissed(knowledge.dismissed)]
    lessons = await in_thread(answered_by_lessons, gaps, knowledge.lessons, owner_of)
    return Report(
        period=period,
        asked=len(questions),
        answered=len(answered),
        pointed=len(replies) - len(answered),
        no_reply_reasons=Counter(reason_of(entry) for entry in questions if entry.result is not OutcomeKind.REPLIED),
        by_day=_by_day(questions),
        seconds=waits[len(waits) // 2] if waits else None,
        gaps=gaps,
        voted_down=voted_down,
        captured=_captured(entries, knowledge.captured),
        used=used,
        unused=sorted(page for page in knowledge.pages if page not in used),
        pages=len(knowledge.pages),
        costs=costs(token_days or {}, entries, period, prices or Prices()),
        dismissed=len(found) - len(gaps),
        answered_since={
            **{message_id: knowledge.captured[lesson.id] for message_id, lesson in lessons.items()},
            **knowledge.captured_by_message,
        },
    )


def _by_day(questions: Sequence[PartOutcome]) -> dict[str, tuple[int, int]]:
    asked = Counter(entry.day for entry in questions)
    answered = Counter(entry.day for entry in questions if is_answered(entry))
    return {day: (count, answered[day]) for day, count in asked.items()}


def _captured(entries: Sequence[PartOutcome], known: Mapping[str, CapturedConversation]) -> list[CapturedConversation]:
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
