"""Splits a conversation into exchanges: each question of a user with what the team replied to it. No input or output."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from services.search import (
    answers,
    is_question,
    may_ask,
    says_it_worked,
    searched,
    statements,
    terms,
    without_greeting,
)

TEAM = "Team"
MOST_CHARS = 3_000
"""Of an answer: what comes after is another matter."""
_SELF_CONTAINED = 4
"""Different words; a shorter question is about what was said before it."""
_ASKED = 1
_REFERS = re.compile(
    r"^\W*(?:and|but|so|ok(?:ay)?|then|also|what about|how about|or)\b"
    r"|\b(?:that|it|this|they|them|those|these|there)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question of a user, and what the team said until the next one.

    Attributes:
        asked: in the asker's words; empty where the team spoke first.
        before: what the question refers to ("and on Windows?"); empty where it stands on its own.
        said: the team's words, as they are.
        answer: what of them answers (`services.search.statements`); empty: nothing does.
        helped: what the asker said of it afterwards; None: nothing.
        turns: the places of the first one asked and of the last one of the answer.
    """

    asked: str
    before: str
    said: str
    answer: str
    helped: bool | None
    turns: tuple[int, int]


@dataclass(slots=True)
class _Open:
    """An exchange that is still going on. `since`: what users said after the team's last words."""

    asked: list[str] = field(default_factory=list[str])
    before: str = ""
    said: list[str] = field(default_factory=list[str])
    answered: list[str] = field(default_factory=list[str])
    helped: bool | None = None
    first: int = 0
    last: int = 0


def exchanges(turns: Iterable[tuple[str, str]]) -> Iterator[Exchange]:
    """Yield the exchanges of a conversation. `turns`: who (`Team`, or any user) said what, in order.

    A question of a user opens one, until somebody asks the next. What the team asks back answers nothing: what the user
    says then belongs to the question.
    """
    now = _Open()
    for at, (name, said) in enumerate(turns):
        if name == TEAM:
            now.said.append(said)
            stated = statements(said)
            if stated and sum(map(len, now.answered)) < MOST_CHARS:
                now.answered.append(stated)
                now.last = at
        elif now.answered and _asks(said):
            yield from _closed(now)
            now = _Open([said], before=_whole(now) if _refers(said) else "", first=at)
        elif now.answered:
            told = says_it_worked(said)
            now.helped = now.helped if told is None else told
        elif now.asked or _opens(said):
            now.first = now.first if now.asked else at
            now.asked.append(said)
    yield from _closed(now)


def _opens(said: str) -> bool:
    """Whether a question may begin with it: neither thanks nor a remark in passing."""
    return says_it_worked(said) is None and len(set(terms(searched(said)))) >= _ASKED


def _asks(said: str) -> bool:
    return len(set(terms(searched(said)))) >= _ASKED and (is_question(said) or may_ask(said))


def _refers(said: str) -> bool:
    return len(set(terms(searched(said)))) < _SELF_CONTAINED or bool(_REFERS.search(said[:200]))


def _whole(now: _Open) -> str:
    return " ".join(each for each in (now.before, _question(now.asked)) if each)


def _closed(now: _Open) -> Sequence[Exchange]:
    if not now.said:
        return ()
    asked, answer = _question(now.asked), "\n".join(now.answered)
    answered = len(set(terms(searched(asked)))) >= _ASKED and answers(answer)
    whole = "\n".join(now.said)
    return (Exchange(asked, now.before, whole, answer if answered else "", now.helped, (now.first, now.last)),)


def _question(asked: Sequence[str]) -> str:
    return without_greeting("\n".join(asked)).strip()
