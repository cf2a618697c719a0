"""Regular expressions from outside: only those are taken that cannot run away.

A pattern is a row of single characters and classes, of which at most one may be repeated beside something that it could
match as well. So a line costs at most the square of its length for each place where a match may begin.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

LONGEST_PATTERN = 200
LONGEST_LINE = 1000  # what comes later in a line is not searched
_MOST_WAYS = 64  # in which optional parts and alternatives may be combined
_MOST_REPEATED = 100

_TOKEN = re.compile(
    r"(?P<open>\((?:\?:|\?P<[A-Za-z_]\w{0,30}>|(?!\?)))|(?P<close>\))|(?P<bar>\|)|(?P<anchor>[\^$]|\\[bBAZ])"
    r"|(?P<atom>\[\^?\]?(?:\\.|[^\]\\])*\]|\\[dDwWsStnr]|\\[^\w\s]|\.|[^\\()\[\]|?*+{}^$])"
)
_QUANTIFIER = re.compile(r"(?:[?*+]|\{(?P<least>\d{1,3})?(?P<comma>,)?(?P<most>\d{1,3})?\})\??")
_SET_LIKE = re.compile(
    r"^\[\^?\[|^\[.*(?:--|&&|~~|\|\|)", re.DOTALL
)  # Python warns of these: they may mean something else
# What stands for all characters when two classes are compared.
_SAMPLE = "".join(map(chr, range(9, 127))) + "éßжλ中\u00a0€"


class Refused(Exception):
    """Why a pattern is not taken, in one clause."""


@dataclass(frozen=True, slots=True)
class _Part:
    kind: str
    text: str
    least: int = 1
    most: int | None = 1  # None: without an end

    @property
    def repeats(self) -> bool:
        return self.most is None or self.most > 1


def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern, letter case aside.

    Raises:
        Refused: it is no regular expression, too long, or could be slow.
    """
    if len(pattern) > LONGEST_PATTERN:
        raise Refused(f"regex may have {LONGEST_PATTERN} characters")
    parts = _parts(pattern)
    try:
        made = re.compile(pattern, re.IGNORECASE)
    except re.error as error:
        raise Refused(f"regex is not valid: {error.msg}") from None
    if _ways(parts) > _MOST_WAYS:
        raise Refused("regex has too many optional parts and alternatives; use any_of, or several calls")
    open_ended = [at for at, part in enumerate(parts) if part.repeats and not _is_bounded(parts, at)]
    if len(open_ended) > 1:
        text = " and ".join(f"{parts[at].text}" for at in open_ended[:2])
        raise Refused(
            f"regex could be slow: {text} are both repeated next to what they match themselves; "
            "write classes that end by themselves, such as [^ ]+ before a space, or use all_of"
        )
    return made


def _parts(pattern: str) -> list[_Part]:
    parts: list[_Part] = []
    at = 0
    while at < len(pattern):
        found = _TOKEN.match(pattern, at)
        if found is None:
            raise Refused(
                f"regex may hold characters, classes, groups, | and ?*+{{}} behind one character or class; "
                f"{pattern[at : at + 4]} is none of that"
            )
        at = found.end()
        kind, text = found.lastgroup or "", found[0]
        if kind == "atom" and _SET_LIKE.search(text):
            raise Refused("regex may not hold [ or doubled - & ~ | in a class; write a backslash before each of them")
        times = _QUANTIFIER.match(pattern, at)
        if times is None:
            parts.append(_Part(kind, text))
            continue
        at = times.end()
        least, most = _span(times)
        if kind == "close" and (most is None or most > 1):
            raise Refused("regex may not repeat a group; repeat one character or class")
        if kind in {"open", "bar", "anchor"}:
            raise Refused(f"regex may not repeat {text}")
        parts.append(_Part(kind, text, least, most))
    return parts


def _span(times: re.Match[str]) -> tuple[int, int | None]:
    sign = times[0][0]
    if sign != "{":
        return {"?": (0, 1), "*": (0, None), "+": (1, None)}[sign]
    least = int(times["least"] or 0)
    most = None if times["comma"] and not times["most"] else int(times["most"] or least)
    if max(least, most or 0) > _MOST_REPEATED:
        raise Refused(f"regex may repeat something {_MOST_REPEATED} times at most")
    return least, most


def _ways(parts: Sequence[_Part]) -> int:
    ways = 1
    branches = [1]
    for part in parts:
        if part.kind == "open":
            branches.append(1)
        elif part.kind == "bar":
            branches[-1] += 1
        elif part.kind == "close":
            ways *= branches.pop() if len(branches) > 1 else 1
        if part.least == 0 and part.most == 1:
            ways *= 2
    return ways * branches[0]


def _is_bounded(parts: Sequence[_Part], at: int) -> bool:
    """Whether a repetition can end at one place only: what follows is something that it cannot match, or nothing."""
    following = [part for part in parts[at + 1 :] if part.kind not in {"close", "open"}]
    if any(part.kind == "close" and part.least == 0 for part in parts[at + 1 :]):
        return False
    if not following:
        return True
    after = following[0]
    if after.kind == "bar" or any(part.kind == "bar" for part in parts):
        return False
    if after.kind != "atom" or after.least == 0:
        return False
    own, other = (re.compile(each.text, re.IGNORECASE) for each in (parts[at], after))
    return not any(own.match(char) and other.match(char) for char in _SAMPLE)
