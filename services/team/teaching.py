"""Questions and answers that team members write to teach the bot: checks them, and makes captures of them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from model.conversations import TAUGHT
from model.messages import Part
from model.words import clean, number_of, without_invisible
from services.team import archive
from services.team.archive import PairTurn, Speaker
from services.team.captures import Capture, CapturedMessage

MAX_QUESTION_CHARS, MAX_ANSWER_CHARS = 1_000, 4_000
"""The second is the most that Discord takes in a form."""

SAME_WORDING = 0.75
"""The share of a question's wording from which on a text counts as that question."""


class LessonRefused(ValueError):
    """A lesson cannot be taught. The message is one sentence that says why, and what to do."""


@dataclass(frozen=True, slots=True)
class LessonForm:
    """A question and its answer as somebody wrote them.

    Attributes:
        lesson_id: an id that nothing else has, such as that of the form; 0: one is made. Twice the same is stored once.
        place_id: where on Discord it was written; 0: elsewhere.
        author_id: who wrote the answer; `archive.UNKNOWN` if that is not known.
        asker_id: who wrote the question, if it is in a user's words; None: the author did. So whoever is forgotten
            takes their own words away.
    """

    guild_id: int | None
    question: str
    answer: str
    lesson_id: int = 0
    place_id: int = 0
    author_id: int = archive.UNKNOWN
    asker_id: int | None = None


# In scripts without blanks between words (Thai to Khmer, Han and kana) each letter counts as a word.
_WORD = re.compile(r"[^\W\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uf900-\ufaff]+|\w")


_Pairs = set[tuple[str, str]]


def share_of_wording(text: str, other: str) -> float:
    """Return the share of the pairs of neighbouring words of a text that another one has as well, from 0 to 1: two
    people may ask about one matter, but seldom with words in one order. Case, punctuation and invisible signs, which no
    page shows, do not count.
    """
    return _share(_pairs_of(text), _pairs_of(other))


def worded_alike(questions: Sequence[str], others: Sequence[str]) -> list[set[int]]:
    """Return for each question the positions of the others that are the same question, as each has the wording of the
    other. Blocks, for a second with thousands of them.
    """
    known = [(at, pairs) for at, pairs in enumerate(map(_pairs_of, others)) if pairs]
    return [
        {at for at, pairs in known if min(_share(own, pairs), _share(pairs, own)) >= SAME_WORDING}
        for own in map(_pairs_of, questions)
    ]


def asker_among(question: str, asked: Iterable[tuple[int, str]]) -> int | None:
    """Return the person in whose wording a question is; None: it is in nobody's. `asked`: ids of people, each with a
    question of theirs.

    It is the person whose question has most of its wording, if that is more than half. Of several, it is the one whose
    question has the least besides.
    """
    pairs, best, asker_id = _pairs_of(question), (1 / 2, 1.0), None
    for author_id, text in asked:
        other = _pairs_of(text)
        shares = _share(pairs, other), _share(other, pairs)
        if shares[0] > 1 / 2 and shares > best:
            best, asker_id = shares, author_id
    return asker_id


def _share(pairs: _Pairs, others: _Pairs) -> float:
    return len(pairs & others) / len(pairs) if pairs else float(not others)


def _pairs_of(text: str) -> _Pairs:
    """Return the pairs of neighbouring words; of a single word, the pair with nothing."""
    words = _WORD.findall(unicodedata.normalize("NFKC", without_invisible(text)).casefold())
    return set(pairwise(words)) if words[1:] else {(each, "") for each in words}


class TeachingResult(NamedTuple):
    """The result of teaching. `text`: sentences about what has become of the lesson; `is_filed`: it is in a topic by
    now.
    """

    text: str
    is_filed: bool = False


@dataclass(frozen=True, slots=True)
class Lesson:
    """A question and its answer that can be stored, without secrets.

    Attributes:
        author_id, asker_id: who wrote the answer, and the question.
        hidden: the number of secrets that were replaced.
    """

    question: str
    answer: str
    author_id: int
    asker_id: int
    hidden: int

    @property
    def note(self) -> str:
        """A sentence about the secrets."""
        return f"{number_of(self.hidden, 'secret')} in it {'was' if self.hidden == 1 else 'were'} made unreadable."

    def capture(self, first_id: int, *, conversation_id: str = "", part: Part | None = None) -> Capture:
        """Make the capture of this lesson. `first_id`: the id of the question, unused so far; the next one is the
        answer's. `conversation_id`: of the lesson that this one replaces.
        """
        return Capture(
            part,
            conversation_id or TAUGHT.make_id(first_id),
            (
                CapturedMessage(first_id, self.asker_id, PairTurn(Speaker.USER, self.question)),
                CapturedMessage(first_id + 1, self.author_id, PairTurn(Speaker.TEAM, self.answer)),
            ),
        )


def lesson_of(form: LessonForm, redact: Callable[[str], tuple[str, dict[str, int]]]) -> Lesson:
    """Check what somebody wrote. `redact`: `Redactor.redact_and_count`. Raises LessonRefused."""
    texts, hidden = list[str](), 0
    for name, text, most in (
        ("question", form.question, MAX_QUESTION_CHARS),
        ("answer", form.answer, MAX_ANSWER_CHARS),
    ):
        written, counts = redact(clean(text).strip())
        if not written:
            raise LessonRefused(f"The {name} is empty: write one.")
        if len(written) > most:
            raise LessonRefused(f"The {name} has {len(written):,} characters, and {most:,} is the most: shorten it.")
        texts.append(written)
        hidden += sum(counts.values())
    question, answer = texts
    asker_id = form.author_id if form.asker_id is None else form.asker_id
    return Lesson(question, answer, form.author_id, asker_id, hidden)
