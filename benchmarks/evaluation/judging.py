"""Replies to questions, compared with what answers them. Arithmetic only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from fractions import Fraction
from typing import Any

from benchmarks.evaluation.conversations import share
from benchmarks.evaluation.questions import Question
from commands.evaluating.runs import contains_any

Line = Mapping[str, Any]
"""A line of `--replay --json`."""


@dataclass(frozen=True, slots=True)
class Counts:
    """How many questions came to what; counts of several sets add up.

    Attributes:
        answerable, unanswerable: how many there are.
        replies: to any of them.
        right_page: of the answerable ones, those whose reply names a page that answers.
        right_words: those whose reply holds the words of the answer.
        false_answers: of the unanswerable ones, those that were replied to.
    """

    answerable: int = 0
    unanswerable: int = 0
    replies: int = 0
    right_page: int = 0
    right_words: int = 0
    false_answers: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(one + two for one, two in zip(astuple(self), astuple(other), strict=True)))

    @property
    def page_share(self) -> Fraction:
        return share(self.right_page, self.answerable)

    @property
    def words_share(self) -> Fraction:
        return share(self.right_words, self.answerable)

    @property
    def good_replies(self) -> Fraction:
        """Of all replies, those that name a page that answers."""
        return share(self.right_page, self.replies)


def judged(
    questions: Sequence[Question], asked: Mapping[str, str], lines: Iterable[Line], *, may_point: bool
) -> Counts:
    """The counts of one replay. `asked`: the question's id of each message. `may_point`: to say where to look is no
    false answer.
    """
    replies = replies_of(asked, lines)
    counts = Counts()
    for question in questions:
        reply = replies.get(question.id)
        if question.files:
            page = reply is not None and shows_page(question, reply)
            words = reply is not None and contains_any(reply["reply_text"], question.words)
            counts += Counts(1, 0, int(reply is not None), int(page), int(words))
        else:
            false = reply is not None and not (may_point and reply["level"] == "point")
            counts += Counts(0, 1, int(reply is not None), false_answers=int(false))
    return counts


def replies_of(asked: Mapping[str, str], lines: Iterable[Line]) -> dict[str, Line]:
    """The first reply to each question."""
    found: dict[str, Line] = {}
    for line in lines:
        if line.get("outcome") == "replied":
            for message_id in line["message_ids"]:
                if message_id in asked:
                    found.setdefault(asked[message_id], line)
    return found


def shows_page(question: Question, reply: Line) -> bool:
    return any(source.removeprefix("kb:") in question.files for source in reply["sources"])
