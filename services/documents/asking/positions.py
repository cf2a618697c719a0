"""Where a question starts from: the first, the last, the next five lines, the one before (DOCUMENT_QA 5.1)."""

from __future__ import annotations

import re
from enum import StrEnum

from services.documents.asking.levels import ENTRY, LEVEL

_FIRST = re.compile(r"\b(?:first|1st|earliest|initial(?:ly)?|oldest|(?:start|begin(?:s|ning)?) of)\b", re.IGNORECASE)
_LAST = re.compile(r"\b(?:last|latest|most recent(?:ly)?|newest|final(?:ly)?|end of)\b", re.IGNORECASE)
_HOW_IT_ENDS = re.compile(
    r"^\W*how (?:does|do|did)\b.{0,40}?\b(?P<end>ends?|finish(?:es)?|starts?|begins?)\W*$", re.IGNORECASE
)
# What starts or stops has been taken out of the question already: a level, or a name.
_WHEN_IT_BEGAN = re.compile(
    r"\b(?:when|where|at what time|since when) (?:did|do|does|have)\s+(?:(?:the|all|these|those|our|my|this)\s+)*"
    r"(?:(?P<first>start|begin|set in|started)|(?P<last>stop|end|cease))\b",
    re.IGNORECASE,
)
# "What did it say before?"; "has that happened before?" asks for any time.
_ENDS_BESIDE = re.compile(
    r"^(?!.*\b(?:has|have|had|ever)\b).*\b(?:(?P<previous>before(?:hand)?|earlier|prior)|(?P<next>after(?:wards?)?))\W*$",
    re.IGNORECASE | re.DOTALL,
)
_NOT_LAST = re.compile(
    r"\b(?:at last|last(?:ed|s|ing)|how long did .{0,40}\blast\b|at first|first of all|first name)\b", re.IGNORECASE
)
_ONE = r"(?:entry|line|message|one|record|log|row|event|thing)"
_IT = rf"(?:it|that|this|there|them|those|line|{_ONE})"
_CLOSELY = r"(?:right|just|immediately|directly|straight|shortly|moments?|seconds)"
_HAPPENED = (
    r"(?:came|comes?|happen(?:s|ed)?|logged|written|recorded|printed|stands?|is|was|were|goes|went|occur(?:s|red)?)"
)
_NEXT = re.compile(
    rf"\b(?:{_CLOSELY}\s+(?:after|behind|below|following|afterwards|next)|{_HAPPENED}\s+(?:{_ONE}\s+)?(?:after|afterwards|next|below)\b"
    rf"|{_HAPPENED}\s+{_CLOSELY}\s+(?:after|next)|next\s+{_ONE}|(?:what|anything|something)(?:'s| is| was| came| comes)? next"
    rf"|(?:the )?{_ONE}\s+(?:right |just |directly |immediately )?(?:after|following|below|behind)"
    rf"|follow(?:s|ed|ing)?\s+(?:directly\s+|right\s+|immediately\s+)?(?:(?:on |after |the |to )*{_IT}\b|\?|$|directly|immediately|next)"
    rf"|(?:what|which {_ONE})\s+follow(?:s|ed)|after\s+(?:that|this|it|line|wards?)\b|(?:and )?then\s*\?|afterwards|subsequent(?:ly)?"
    r"|what (?:came|happened|was logged) after|succeed(?:s|ed|ing)\s+(?:it|that|this|line|entry))",
    re.IGNORECASE,
)
_PREVIOUS = re.compile(
    rf"\b(?:{_CLOSELY}\s+(?:before|above|prior|ahead|preceding|beforehand)|{_HAPPENED}\s+(?:{_ONE}\s+)?(?:before(?:hand)?|earlier|previously|above)\b"
    rf"|{_HAPPENED}\s+{_CLOSELY}\s+before|(?:previous|preceding|prior)\s+{_ONE}"
    rf"|(?:the )?{_ONE}\s+(?:right |just |directly |immediately )?(?:before|preceding|above|prior|ahead)"
    r"|preced(?:es?|ed|ing)\s+(?:it|that|this|line|the entry|entry)|(?:what|which \w+|anything) preced(?:es|ed)"
    r"|led (?:up )?to (?:it|that|this)|before\s+(?:that|this|it|line)\b|beforehand|what (?:came|happened|was logged) before"
    r"|prior to (?:it|that|this|line))",
    re.IGNORECASE,
)
_NUMBER = r"(?P<{}>\d{{1,3}}|a couple of|a few|two|three|four|five|six|seven|eight|nine|ten)"
_NUMBERS = dict(
    zip(("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"), range(2, 11), strict=True)
) | {"a couple of": 2, "a few": 3}
_N_OF = re.compile(
    rf"\b(?:first|last|latest|earliest|oldest|newest|most recent)\s+{_NUMBER.format('number')}\b", re.IGNORECASE
)
_SEVERAL = r"(?:entries|lines?|messages|records|rows|events|logs|ones)"
_STEP = _NUMBER.format("n") + r"\s+" + _SEVERAL
_RIGHT = r"(?:right |just |directly |immediately |that )?"
# Steps from a place, and the same without their number.
_STEPS = tuple(
    (re.compile(rf"\b{pattern}", re.IGNORECASE), plain)
    for pattern, plain in (
        (rf"(?:next|following)\s+{_NUMBER.format('n')}(?:\s+{_SEVERAL}|(?=\W*$))", "next line"),
        (rf"(?:previous|preceding|prior)\s+{_NUMBER.format('n')}(?:\s+{_SEVERAL}|(?=\W*$))", "previous line"),
        (rf"{_NUMBER.format('n')}\s+(?:more|further|other)\s+{_SEVERAL}\b", "next line"),
        (rf"{_STEP}\s+{_RIGHT}(?:after|follow(?:ing|ed)?|below|behind)\b", "right after"),
        (rf"{_STEP}\s+(?:later|on|further(?: down| on)?|down)\b", "right after it"),
        (rf"{_STEP}\s+{_RIGHT}(?:before|preced(?:ing|ed)|above|prior to|ahead of)\b", "right before"),
        (rf"{_STEP}\s+(?:earlier|back|up|further up|previously)\b", "right before it"),
    )
)
_AROUND = re.compile(
    rf"\b{_STEP}\s+(?:around|before and after|after and before|above and below|(?:on|to) (?:either|each|both) sides?)\b",
    re.IGNORECASE,
)
_ORDINALS = {"second": 2, "third": 3, "fourth": 4, "fifth": 5}
_NTH = re.compile(
    rf"\b(second|third|fourth|fifth|[2-9](?:nd|rd|th)|penultimate)(?:[- ](?:to[- ])?(last|latest|newest))?\s+"
    rf"(?!line|row|entry)(?:{LEVEL}s?|{ENTRY}|time|occurrence|mention|hit)\b",
    re.IGNORECASE,
)
_BY_TIME = re.compile(r"\b(?:earliest|oldest|latest|newest|most recent(?:ly)?)\b", re.IGNORECASE)
_MOST_STEPS = 50


class Position(StrEnum):
    FIRST = "first"
    LAST = "last"
    NEXT = "next"
    PREVIOUS = "previous"


def position(question: str) -> Position | None:
    if _PREVIOUS.search(question):
        return Position.PREVIOUS
    if _NEXT.search(question):
        return Position.NEXT
    beside = _ENDS_BESIDE.match(question)
    if beside:
        return Position.PREVIOUS if beside["previous"] else Position.NEXT
    return first_or_last(question)


def first_or_last(question: str) -> Position | None:
    """Also of "what came after the first error": where that starts from."""
    plain = _NOT_LAST.sub(" ", question)
    began = _WHEN_IT_BEGAN.search(plain)
    if began:
        return Position.FIRST if began["first"] else Position.LAST
    how = _HOW_IT_ENDS.search(plain)
    if how:
        return Position.LAST if how["end"].lower().startswith(("end", "finish")) else Position.FIRST
    first, last = _FIRST.search(plain), _LAST.search(plain)
    if first and (not last or first.start() < last.start()):
        return Position.FIRST
    return Position.LAST if last else None


def without_position(question: str) -> str:
    return _FIRST.sub(" ", _LAST.sub(" ", question))


def without_steps(question: str) -> tuple[int, str]:
    """Of "the 5 lines after that": 5, and "the right after that"."""
    for pattern, plain in _STEPS:
        found = pattern.search(question)
        if found:
            text = f"{question[: found.start()]}{plain}{question[found.end() :]}"
            return min(_read(found["n"]), _MOST_STEPS), text
    return 1, question


def around(question: str) -> int:
    """Of "2 lines before and after it": 2; 0 where one side or none is asked for."""
    found = _AROUND.search(question)
    return min(_read(found["n"]), _MOST_STEPS) if found else 0


def how_many_wanted(question: str) -> int:
    """Of "the last three errors": 3."""
    found = _N_OF.search(question)
    return _read(found["number"]) if found else 1


def without_wanted(question: str) -> str:
    """Of "the last 30 errors": "the last errors"."""
    return _N_OF.sub(lambda found: question[found.start() : found.start("number")], question)


def which_of_them(question: str) -> int | None:
    """Of "the second error": 2; of "the second to last error": -2."""
    found = _NTH.search(question)
    if not found:
        return None
    word = found[1].lower()
    number = 2 if word == "penultimate" else _ORDINALS.get(word) or int(word[:-2])
    return -number if found[2] or word == "penultimate" else number


def without_beginning(question: str) -> str:
    """Without "when did it start"."""
    return _WHEN_IT_BEGAN.sub(" ", question)


def by_time(question: str) -> bool:
    """The earliest is told by its time; the first may be the one that stands first."""
    return _BY_TIME.search(question) is not None


def how_it_ends(question: str) -> bool:
    return _HOW_IT_ENDS.search(question) is not None


def _read(number: str) -> int:
    return max(1, int(number)) if number.isdigit() else _NUMBERS[number.lower()]
