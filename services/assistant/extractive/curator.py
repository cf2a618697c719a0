"""The curator that needs no model: conversations as weighted terms (TF-IDF), topics by likeness of words, duplicates
by overlap.
"""

from __future__ import annotations

import math
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from services.assistant.curator import ClassificationResult, ImageSummary, ImageSummaryResult, IntegrationResult
from services.assistant.extractive.describing import content_words
from services.search import asking_sentences, corrects, is_another_question, stem, terms
from services.storage import in_thread
from services.team import Actor, Remark, exchanges_of

if TYPE_CHECKING:
    from model.conversations import Conversation
    from services.knowledge import IndexEntry
    from services.llm import Usage
    from services.team import Pair

_TEAM_WEIGHT = 0.5
"""Answers weigh less than questions, as they wander from the subject."""
_MAX_READ_CHARS = 4_000
"""Characters of a message that are read: the rest is a pasted log."""
_EXTRA_CONVERSATIONS = 12
"""So many conversations without any of the terms are added to the count: else no term is rare among the first few."""
_NOISE = re.compile(
    r"```.*?```|https?://\S+|\[(?:image|file): [^\]\n]{0,1000}\]|(?<!\S)@[\w.-]+"
    r"|\b(?=\w*\d)\w{12,}\b",  # ids and hashes
    re.DOTALL,
)
_SHOWN = re.compile(r"`[^`]+`|https?://\S")
_DETAIL = re.compile(
    r"`[^`]+`|https?://\S+[\w/]|\d[\d.:]*"
    r"|\b(?:not|no|never|nothing|none|without|cannot|neither|nor)\b|n['’]t\b",
    re.IGNORECASE,
)
"""Code, links, numbers and negations: one of these tells apart what has the same terms otherwise."""
_SAYS_CHANGED = re.compile(
    r"\b(?:no longer|any ?more|instead|outdated|obsolete|deprecated|changed|renamed|gone|moved|correction|corrected"
    r"|wrong|used to|since (?:v(?:ersion)?\b|\d)|as of|meanwhile)",
    re.IGNORECASE,
)
_NAME_WORDS = 4
_MIN_NAME_WORDS = 2
"""A sentence with fewer content words names no topic if another has as many."""
_MIN_TERM_CHARS = 3


@dataclass(frozen=True, slots=True)
class Subject:
    """The terms of one conversation. Thousands are kept, without `words`; equal terms are one object in memory.

    Attributes:
        terms: of both sides; those of the users come first.
        values: the weight of each term, which grows with its count.
        asked_count: the number of the users' terms; if nobody asked, of the team's.
        answered_terms: the terms of the team.
        asked_details, answered_details: what each side's words have of `_DETAIL`; a word that comes again is followed
            by its count.
        is_certain: whether it is known of each question whom the team answered (`Exchange.asker_known`), and nobody
            has doubted an answer.
        shows: whether the team's words show code or a link, which are in no terms.
        says_changed: whether they say that something has changed.
        words: the words, in lower case, of the first sentence that asks, or else of the first one, in its order. A new
            topic is named after them.
    """

    terms: tuple[str, ...]
    values: tuple[float, ...]
    asked_count: int
    answered_terms: tuple[str, ...]
    asked_details: tuple[str, ...]
    answered_details: tuple[str, ...]
    is_certain: bool
    shows: bool
    says_changed: bool
    words: tuple[str, ...]

    @property
    def asked(self) -> frozenset[str]:
        return frozenset(self.terms[: self.asked_count])

    @property
    def answered(self) -> frozenset[str]:
        return frozenset(self.answered_terms)

    @property
    def weights(self) -> dict[str, float]:
        return dict(zip(self.terms, self.values, strict=True))


# A pair's subject is used for classifying, integrating and updating; later only its topic keeps it.
@lru_cache(maxsize=16)
def subject_of(pair: Pair) -> Subject:
    found = list(exchanges_of(pair, _MAX_READ_CHARS))
    found = [each for each in found if each.answer] or found
    # Where no question is needed, the answer stands for it.
    users, team = _bare(each.question or each.answer for each in found), _bare(each.answer for each in found)
    asked, answered = Counter(_terms(users)), Counter(_terms(team))
    both = tuple(asked | answered)  # in order of the users' terms, then of the others
    asking, others = asking_sentences(users)
    words = [content_words(sentence) for sentence in (*asking, *others)]
    return Subject(
        both,
        tuple(_damped(asked[term] + _TEAM_WEIGHT * answered[term]) for term in both),
        len(asked),
        tuple(answered),
        _details(each.question for each in found),
        _details(each.answer for each in found),
        not pair.doubted_ids and all(each.asker_known for each in found),
        any(_SHOWN.search(each.answer) for each in found),
        any(_SAYS_CHANGED.search(each.answer) or corrects(each.answer) for each in found),
        next((each for each in words if len(each) >= _MIN_NAME_WORDS), max(words, key=len, default=())),
    )


@lru_cache(maxsize=1_024)
def _damped(count: float) -> float:
    return 1 + math.log(max(1.0, count))


class _TopicPairs(NamedTuple):
    pairs: tuple[Pair, ...] = ()
    subjects: tuple[Subject, ...] = ()


class TopicVectors:
    """The conversations of all topics as vectors of terms, weighed by rarity (TF-IDF)."""

    def __init__(self) -> None:
        self._topics: dict[str, _TopicPairs] = {}  # replaced, not changed: it is read from several threads
        self._holders: Counter[str] = Counter()
        self._count = 0
        self._rare: dict[str, float] = {}

    def update(self, topics: Mapping[str, Sequence[Pair]]) -> None:
        """Take over the present pairs of all topics. Only pairs that came or went are read."""
        present = {name: tuple(pairs) for name, pairs in topics.items() if pairs}
        for name in self._topics.keys() - present.keys():
            self._recount(name, ())
        # Rebuilt in the order of `topics`: `nearest` takes the first of two that are equally near.
        self._topics = {name: self._recount(name, pairs) for name, pairs in present.items()}

    def subjects(self, topic: str, pairs: Sequence[Pair]) -> list[Subject]:
        """Return the subjects of pairs of this topic and its continuations. Pairs that came since `update` are read."""
        known = {
            id(pair): subject
            for name, topic_pairs in self._topics.items()
            if name.startswith(topic)
            for pair, subject in zip(*topic_pairs, strict=True)
        }
        return [known.get(id(pair)) or subject_of(pair) for pair in pairs]

    def _recount(self, name: str, new: tuple[Pair, ...]) -> _TopicPairs:
        """Count the terms of a topic that now has the pairs `new`, and return these with their subjects."""
        old, subjects = self._topics.get(name, _TopicPairs())
        start = _common_prefix(old, new)
        end = _common_prefix(old[start:][::-1], new[start:][::-1])
        gone = subjects[start : len(old) - end]
        came = tuple(replace(subject_of(pair), words=()) for pair in new[start : len(new) - end])
        if gone or came:
            self._holders.subtract(term for subject in gone for term in subject.terms)
            self._holders.update(term for subject in came for term in subject.terms)
            self._count += len(came) - len(gone)
            self._rare.clear()
            for term in {term for subject in gone for term in subject.terms if not self._holders[term]}:
                del self._holders[term]
        return _TopicPairs(new, (*subjects[:start], *came, *subjects[len(old) - end :]))

    def nearest(self, subject: Subject) -> tuple[str, float]:
        """Return the topic whose conversations are most like this one on average, and their likeness, 0 to 1. The
        average keeps topics from growing without end.
        """
        unit = self._unit(subject)
        near = {
            name: sum(_dot(unit, self._unit(each)) for each in topic_pairs.subjects) / len(topic_pairs.subjects)
            for name, topic_pairs in self._topics.items()
        }
        return max(near.items(), key=lambda item: item[1], default=("", 0.0))

    def name(self, subject: Subject) -> str:
        """Return the name of a new topic: the users' rarest words, above all those that both sides use."""
        stems: dict[str, str] = {}
        for word in subject.words:
            stems.setdefault(stem(word), word)
        weights, answered = subject.weights, subject.answered
        worth = {
            word: self._rarity(term) * weights[term] * (2 if term in answered else 1)
            for term, word in stems.items()
            if term in weights
        }
        best = sorted(worth, key=lambda word: -worth[word])[:_NAME_WORDS]
        return "-".join(word for word in worth if word in best)

    def _unit(self, subject: Subject) -> dict[str, float]:
        weighed = {
            term: weight * self._rarity(term) for term, weight in zip(subject.terms, subject.values, strict=True)
        }
        length = math.sqrt(sum(value * value for value in weighed.values())) or 1.0
        return {term: value / length for term, value in weighed.items()}

    def _rarity(self, term: str) -> float:
        rare = self._rare.get(term)
        if rare is None:
            rare = self._rare[term] = math.log(1 + (self._count + _EXTRA_CONVERSATIONS) / (1 + self._holders[term]))
        return rare


def _common_prefix(one: Sequence[Pair], other: Sequence[Pair]) -> int:
    """Count the pairs at the beginning that are the same."""
    same = 0
    for mine, its in zip(one, other, strict=False):
        if mine is not its and mine != its:
            break
        same += 1
    return same


def share(part: frozenset[str], whole: frozenset[str]) -> float:
    """Return the share of `part` that is in `whole`, 0 to 1; 0 for an empty part, which shows no likeness."""
    return len(part & whole) / (len(part) or 1)


def _bare(said: Iterable[str]) -> str:
    return _NOISE.sub(" ", "\n".join(said))


def _details(said: Iterable[str]) -> tuple[str, ...]:
    count = Counter(each.lower().rstrip(".:") for each in _DETAIL.findall("\n".join(said)))
    return tuple(sys.intern(each if times == 1 else f"{each} {times}") for each, times in count.items())


def _terms(text: str) -> list[str]:
    return [sys.intern(term) for term in terms(text) if len(term) >= _MIN_TERM_CHARS and not term.isdigit()]


def _dot(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    return sum(value * other[term] for term, value in one.items() if term in other)


# ruff: noqa: ARG002 (the Protocol's arguments: likeness of words needs no index, topic names or `usage`)


ALIKE = 0.19
"""The likeness from which a conversation belongs to a topic. On two days of real support chat, with 95 and 21
conversations that answer something, 0.12 makes 40 and 16 topics, with up to 8 and 4 conversations, many of which a
reader would not put together; this value 63 and 19, with up to 7 and 2.
"""
_MIN_ASKED_TERMS = 4
"""A question with fewer terms cannot be told from another one."""
_SAME_ANSWER = 0.8
_SAME_MATTER = 0.6
_SAME_QUESTION = 0.8
_SHORTER = "a newer and shorter answer to the same question"
_MORE = "a newer answer to a question that asks more"


class ExtractiveCurator:
    """Implements `Curator`. Counts nothing in `Usage`. `topics`: returns the pairs that each topic holds now; it may
    block, and is called off the event loop.
    """

    actor = Actor.EXTRACTIVE

    def __init__(self, topics: Callable[[], Mapping[str, Sequence[Pair]]]) -> None:
        self._topics = topics
        self._vectors = TopicVectors()
        self._alone = threading.Lock()  # pairs may be looked at in several threads

    async def summarise_images(
        self, conversation: Conversation, message_ids: Sequence[int], usage: Usage
    ) -> ImageSummaryResult:
        """Give the file names of images as their summaries: there is no model to look at them."""
        named = [
            ImageSummary(message_id=str(message_id), image_index=index, summary=image.name)
            for turn, message_id in zip(conversation.turns, message_ids, strict=True)
            for index, image in enumerate(turn.images)
        ]
        return ImageSummaryResult(summaries=named)

    async def classify(self, pair: Pair, index: Sequence[IndexEntry], usage: Usage) -> ClassificationResult:
        topic = await in_thread(self._topic_for, pair)
        return ClassificationResult(skip=not topic, topic_name=topic)

    async def integrate(self, pair: Pair, topic: str, topic_pairs: Sequence[Pair], usage: Usage) -> IntegrationResult:
        """Compare a pair with those of its topic that are about the same question.

        The first line that holds decides about an older pair:

            it says all that the new pair says                         the new pair is skipped
            the new pair asks and says all that it does                it is removed
            both ask the same, the new pair asks no more than it,
            and the new answer is as full                              it is removed
            both ask the same                                          both stay, and the conflict is noted

        A new pair that is not certain removes nothing, and may be skipped for another one that is not. One that was
        written in a form is never skipped, and removes all that ask the same.
        """
        new, question = subject_of(pair), _question_of(pair)
        subjects = self._vectors.subjects(topic, topic_pairs)
        olds = [
            (each.id, old)
            for each, old in zip(topic_pairs, subjects, strict=True)
            if _may_replace(new, old) and not is_another_question(question, _question_of(each))
        ]
        # What was taught in so many words replaces the answer to the same question, whatever that says.
        is_deliberate = not pair.kind.is_on_discord
        # An older answer that is doubted, or whose asker is unknown, is never quoted: it is no reason to skip a newer
        # one that may be.
        comparable = [old for _, old in olds if old.is_certain or not new.is_certain]
        if not is_deliberate and any(_adds_nothing_to(new, old) for old in comparable):
            return IntegrationResult(skip=True, remove_ids=[])
        if not new.is_certain:
            return IntegrationResult(skip=False, remove_ids=[])
        remove_ids, conflicts = list[str](), list[Remark]()
        for old_id, old in olds:
            if _repeats(new, old):
                remove_ids.append(old_id)
            elif _asks_the_same(new, old):
                # A question asked again must not replace a full answer by a short one ("as I said yesterday"), nor by
                # an answer to a longer question.
                if is_deliberate or (_is_as_full(new, old) and not _asks_more(new, old)):
                    remove_ids.append(old_id)
                else:
                    conflicts.append(Remark(old_id, _MORE if _asks_more(new, old) else _SHORTER))
        return IntegrationResult(skip=False, remove_ids=remove_ids, conflicts=conflicts)

    def _topic_for(self, pair: Pair) -> str:
        subject = subject_of(pair)
        if not teaches(pair):
            return ""
        topics = self._topics()
        for name, topic_pairs in topics.items():
            if any(each.conversation_id == pair.conversation_id for each in topic_pairs):
                return name  # a continued conversation stays in its topic
        with self._alone:
            self._vectors.update(topics)
            nearest, likeness = self._vectors.nearest(subject)
            return nearest if likeness >= ALIKE else self._vectors.name(subject)


def teaches(pair: Pair) -> bool:
    """Return True if the pair could help others: the team answered, and nobody said that it did not help."""
    return any(each.answer and each.helped is not False for each in exchanges_of(pair))


def _question_of(pair: Pair) -> str:
    return "\n".join(each.question for each in exchanges_of(pair, _MAX_READ_CHARS) if each.answer)


def _may_replace(new: Subject, old: Subject) -> bool:
    """Return True if one of two pairs may stand for the other, or contradict it, should both ask the same. By their
    terms alone: to compare two questions word by word takes two milliseconds.
    """
    return _adds_nothing_to(new, old) or _repeats(new, old) or _asks_the_same(new, old)


def _adds_nothing_to(new: Subject, old: Subject) -> bool:
    """Return True if an older conversation says all that a newer one does: each word, in order; and if the newer one
    says that something has changed, so does the older.
    """
    told = iter(old.answered_terms)
    return (
        _covers(old, new)
        and all(term in told for term in new.answered_terms)
        and (old.says_changed or not new.says_changed)
    )


def _covers(one: Subject, other: Subject) -> bool:
    """Return True if one conversation says nearly all that another one says, and has all of its details."""
    return (
        share(other.answered, one.answered) >= _SAME_ANSWER
        and share(other.asked, one.asked | one.answered) >= _SAME_MATTER
        and {*other.asked_details} <= {*one.asked_details, *one.answered_details}
        and {*other.answered_details} <= {*one.answered_details}
    )


def _repeats(new: Subject, old: Subject) -> bool:
    """Return True if a newer conversation asks and says all that an older one does; every word of the answer, if it
    asks more.
    """
    is_whole = new.asked == old.asked or old.answered <= new.answered
    return _asks_all_of(new, old) and _covers(new, old) and is_whole


def _asks_more(new: Subject, old: Subject) -> bool:
    """Return True if a newer question has words of its own, unless its answer says that something has changed and does
    not take them up.
    """
    more = new.asked - old.asked
    return bool(more if not new.says_changed else more & new.answered)


def _asks_all_of(new: Subject, old: Subject) -> bool:
    return old.asked <= new.asked and {*new.asked_details} == {*old.asked_details}


def _asks_the_same(new: Subject, old: Subject) -> bool:
    """Return True if the questions are the same, or one says a little more. A word in the place of another one
    (disable, enable) makes it another question.
    """
    return (
        len(new.asked) >= _MIN_ASKED_TERMS
        and share(new.asked, old.asked) >= _SAME_QUESTION
        and share(old.asked, new.asked) >= _SAME_QUESTION
        and (new.asked <= old.asked or old.asked <= new.asked)
        and {*new.asked_details} == {*old.asked_details}
    )


def _is_as_full(new: Subject, old: Subject) -> bool:
    """Return True if a newer answer may stand for an older one: it is as long, and shows code or a link if that does;
    or it says that something has changed.
    """
    return new.says_changed or (len(new.answered) >= len(old.answered) and (new.shows or not old.shows))
