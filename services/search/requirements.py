"""Requirements of an answer: figures, names and versions that it must contain, and reasons for which it is none."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from services import lazy_pattern
from services.search.differences import Place
from services.search.questions import AUXILIARY, SENTENCE_END
from services.search.tokenizer import terms

_UNITS = r"(?:milli|micro)?(?:sec(?:ond)?|minute|min|hour|day|week|month|year)s?"
_NUMBER_WORDS = "one|two|three|four|five|ten|no|unlimited|any"
_FIGURES = (
    (
        lazy_pattern(
            r"\bhow\s+(?:long|often|old)\b|\b(?:time-?out|interval|lifetime)\b.{0,40}\bdefault", re.IGNORECASE
        ),
        lazy_pattern(
            rf"\d\s*(?:ms|s|m|h|d|{_UNITS})\b|\b(?:a|an|one|two|three|every|each|per|in)\s+{_UNITS}\b"
            rf"|\b(?:daily|weekly|hourly|monthly|forever|never|immediately|{_UNITS})\b|\b(?:timedelta|until|till|(?:19|20)\d\d\b)",
            re.IGNORECASE,
        ),
    ),
    (
        lazy_pattern(
            r"\b(?:which|what|minimum|min|lowest|latest|newest|oldest)\s+(?:\w+\s+){0,2}(?:versions?|numbers?|limits?)"
            r"|\bhow\s+(?:many|much)\b|\bmax(?:imum)?\s+(?:number|length)|\bsince\s+which\b",
            re.IGNORECASE,
        ),
        lazy_pattern(rf"\d|\b(?:{_NUMBER_WORDS})\b", re.IGNORECASE),
    ),
    (
        lazy_pattern(r"\bhow\s+(?:large|big)\b|\bmax(?:imum)?\s+size\b", re.IGNORECASE),
        lazy_pattern(
            r"\d\s*(?:[kmgt]i?b?|b|bytes?|(?:kilo|mega|giga|tera)bytes?|char(?:acter)?s?|lines|pixels|px|%)(?!\w)"
            r"|\d\s*\*\s*\d|\b(?:no|any|unlimited)\b",
            re.IGNORECASE,
        ),
    ),
    (
        lazy_pattern(r"\b(?:which|what)(?:['’]s|\s+(?:is|are))?\s+(?:the\s+)?(?:\w+\s+){0,2}ports?\b", re.IGNORECASE),
        lazy_pattern(r"(?<![\w.])\d{2,5}(?!\w|\.\d)"),
    ),
    (
        lazy_pattern(
            r"\bwhen\s+(?:will|is|does|do|can)\b.{0,80}\b(?:come|comes|coming|out|released?|land|ship|available|expected|planned)\b"
            r"|\brelease\s+date\b",
            re.IGNORECASE,
        ),
        lazy_pattern(
            r"\b(?:19|20)\d\d\b|\b(?:january|february|march|april|may|june|july|august|september|october|november|december)\s+\d",
            re.IGNORECASE,
        ),
    ),
)
"""Pairs of patterns: a question for a figure, and a text that has such a figure."""
_NAMES = lazy_pattern(
    r"(?<![\w.-])(?:--[a-z][\w-]+|[A-Z]{1,8}[-_]?\d{2,}|v?\d+\.\d+(?:\.\d+)*|[A-Za-z]\w*_\w+|\w+::\w+|\w[\w.]{2,}\(\))"
)
"""In a question: options, error codes, versions, identifiers and calls."""
_VERSION_OF = lazy_pattern(
    r"\bversions?\s+of\s+(?:the\s+)?([\w.+#-]{2,40})"
    r"|\b(?:which|what|minimum|min|lowest|latest|newest|oldest)\s+([\w.+#-]{2,40})\s+versions?\b",
    re.IGNORECASE,
)
_NO_PRODUCT = frozenset({"the", "this", "that", "it", "its", "your", "minimum", "lowest", "latest", "newest", "oldest"})
_HOW_MANY = lazy_pattern(r"\bhow\s+many\s+((?:[a-z]{2,40}\s+){0,4}[a-z]{2,40})", re.IGNORECASE)
_NOT_COUNTED = frozenset(
    [
        *("of", "the", "an", "my", "our", "your", "more", "other", "different", "times", "in", "on", "per", "at", "to"),
        *("do", "does", "did", "can", "could", "is", "are", "was", "were", "should", "will", "would", "may", "must"),
        *("has", "have", "you", "we", "they", "there", "that"),
    ]
)
"""Words behind "how many" that name nothing: "how many of my folders", "how many can I have"."""
_NUMBER_WITHIN = 48
"""Characters between a thing and its number: "at most 40 agents", "Agents: 40"."""
_NUMBER = lazy_pattern(rf"(?<![\d.])\d+(?!\.?\d)|\b(?:{_NUMBER_WORDS})\b", re.IGNORECASE)
_DIGIT_WITHIN = 24
"""Characters from the name of a product to its version: "Python >= 3.9", "Node.js, version 20"."""
_CODE_BLOCK = lazy_pattern(r"```.*?(?:```|\Z)", re.DOTALL)
_INTRODUCTION = lazy_pattern(
    r"(?:introduction|intro|overview|welcome\b.*|(?:table of )?contents|getting started|get started|quick ?start|about)"
    r"[\W_]*",
    re.IGNORECASE,
)
_GENERAL_QUESTION = lazy_pattern(
    r"\bwhat(?:['’]?s| is| are| does)\b|\b(?:introduction|overview|summary|begin|beginner|start(?:ed|ing)?|new to)\b",
    re.IGNORECASE,
)


class Requirements(NamedTuple):
    """The contents that a text needs to answer a question.

    Attributes:
        figures: patterns of a time, a version, a port or a limit, each of which has to match.
        names: options, error codes and identifiers in the question, in lower case; one of them is enough.
        versions_of: products whose version is asked for, in lower case; each needs one.
        counted: beginnings of the words for the things that are counted; one of them needs a number.
    """

    figures: tuple[re.Pattern[str], ...]
    names: frozenset[str]
    versions_of: frozenset[str]
    counted: frozenset[str]


def requirements_of(question: str) -> Requirements:
    figures = tuple(figure for asks, figure in _FIGURES if asks.search(question))
    found = {(after or before).strip(".+#-").lower() for after, before in _VERSION_OF.findall(question)}
    products = found - _NO_PRODUCT - {""}
    versions_of = frozenset(products) if figures else frozenset[str]()
    names = frozenset(each.lower() for each in _NAMES.findall(question))
    return Requirements(figures, names, versions_of, _counted_things(question))


def _counted_things(question: str) -> frozenset[str]:
    found: set[str] = set()
    for words in _HOW_MANY.findall(question.lower()):
        from_thing = itertools.dropwhile(lambda word: word in _NOT_COUNTED, words.split())
        thing = itertools.takewhile(lambda word: word not in _NOT_COUNTED, from_thing)
        found |= {word.removesuffix("s").removesuffix("ie") for word in thing}
    return frozenset(found - {""})


def is_too_general(headings: Sequence[str], question: str) -> bool:
    """Return whether the section below `headings` is an introduction and the question asks for something particular."""
    return bool(headings and _INTRODUCTION.fullmatch(headings[-1].strip())) and not _GENERAL_QUESTION.search(question)


_AGAINST = lazy_pattern(
    r"\b(?:never|do(?:es)?\s+not|do(?:es)?n['’]?t|(?:how|what|when)\s+not\s+to|not\s+(?:supported|recommended|allowed)|deprecated|obsolete"
    r"|outdated|superseded|archived|discontinued|retired|no\s+longer|legacy|mistakes?|myths?|pitfalls|attacks?|anti-?patterns?|discouraged"
    r"|dangerous|wrong(?:ly)?|avoid|forbidden|prohibited|bad\s+(?:practices?|ways?|ideas?)|unsupported|rejected|withdrawn"
    r"|(?:old|former|previous|earlier)\s+(?:\w+\s+)?(?:instructions?|ways?|versions?|docs|guide))\b|~~",
    re.IGNORECASE,
)
_DENIES = lazy_pattern(
    r"\b(?:never|do(?:es)?\s+not|do(?:es)?n['’]?t|no\s+longer|unsupported|forbidden|prohibited)\b", re.IGNORECASE
)
"""In a heading: an answer to whether something may be done."""
_WHETHER = lazy_pattern(AUXILIARY, re.IGNORECASE | re.MULTILINE)
_IN_TROUBLE = lazy_pattern(
    r"\b(?:not|no|cannot|can['’]?t|won['’]?t|[a-z]{2,6}n['’]t|without|why|error|fail\w{0,4}|problem|trouble|stuck)\b",
    re.IGNORECASE,
)
_WARNS = lazy_pattern(
    r"\b(?:never|do\s+not|don['’]t|must\s+not|mustn['’]t|should\s+not|shouldn['’]t|warning|danger(?:ous)?|caution|irreversibl[ey]|data\s+loss"
    r"|cannot\s+be\s+(?:undone|restored|recovered)|(?:be|is|are|gets?)\s+(?:permanently\s+)?(?:lost|gone|deleted|destroyed|erased|overwritten)"
    r"|explod\w{1,3}|deadly|lethal|fatal|nobody\s+surviv\w{1,3}|important(?=\W{0,3}:)|prerequisites?(?=\W{0,3}:)|make\s+sure|avoid)\b|[\u26a0\u2620\u2757]",
    re.IGNORECASE,
)
_MOST_WARNING_CHARS = 240


def advises_against(headings: Sequence[str], question: str) -> bool:
    """Return whether one of the `headings`, in English, says that what stands below is wrong, dangerous or out of date
    ("Things you must never do", "Deprecated"), and the question does not ask for such a thing.

    A heading that shares a word with the question may answer it: one that denies, whether something may be done ("Do
    not copy the folder"); any, a question about trouble, or for a reason.
    """
    if _AGAINST.search(question):
        return False
    asked, in_trouble, whether = set(terms(question)), _IN_TROUBLE.search(question), _WHETHER.search(question)
    return any(
        asked.isdisjoint(terms(each)) or not (in_trouble or (whether and _DENIES.search(each)))
        for each in headings
        if _AGAINST.search(each)
    )


def warnings_in(text: str) -> list[str]:
    """Return the sentences of a text, in English, that warn, but for very long ones. Code warns of nothing."""
    prose = _CODE_BLOCK.sub("\n", text)
    found = (each.strip() for each in SENTENCE_END.split(prose))
    return [each for each in found if len(each) <= _MOST_WARNING_CHARS and _WARNS.search(each)]


_OUTDATED_WORDS = r"(?:deprecated|obsolete|outdated|out\s+of\s+date|superseded|archived|rejected|withdrawn|retired)\b"
_OUTDATED = lazy_pattern(
    rf"^\W{{0,9}}(?:status\W{{1,4}})?{_OUTDATED_WORDS}"
    r"|\bth(?:is|e)\s+(?:page|document|documentation|guide|manual|article|chapter|post|proposal)\s+(?:is|was|has\s+been)\s+(?:now\s+)?"
    rf"(?:{_OUTDATED_WORDS}|no\s+longer\b)",
    re.IGNORECASE | re.MULTILINE,
)


def is_outdated(head: str) -> bool:
    """Return whether the beginning of a page, in English, says that the page is out of date ("Status: rejected")."""
    return bool(_OUTDATED.search(head))


_OF_WHOLE_PAGE = lazy_pattern(
    r"\b(?:on|of|in|throughout)\s+this\s+(?:page|guide|document|chapter|manual)\s+(?:is|are|holds?|appl(?:y|ies))\b"
    r"|\bthis\s+(?:page|guide|document|chapter|manual)\s+(?:is\s+only|holds|applies)\b",
    re.IGNORECASE,
)


def notices_in(head: str) -> list[str]:
    """Return the paragraphs of the beginning of a page, in English, that begin in bold, as admonitions do, and warn;
    and those that say for what all that is on the page holds.
    """
    found = [each.strip() for each in head.split("\n\n") if len(each) <= _MOST_WARNING_CHARS]
    return [each for each in found if (each.startswith("**") and _WARNS.search(each)) or _OF_WHOLE_PAGE.search(each)]


def meets(text: str, required: Requirements) -> bool:
    if not all(figure.search(text) for figure in required.figures):
        return False
    lower = text.lower()
    if not all(_has_version_after(product, lower) for product in required.versions_of):
        return False
    if required.counted and not any(_has_number_near(thing, lower) for thing in required.counted):
        return False
    return not required.names or any(name.removesuffix("()") in lower for name in required.names)


def _has_number_near(thing: str, text: str) -> bool:
    return any(
        not text[at - 1 : at].isalpha() and _NUMBER.search(text[max(0, at - _NUMBER_WITHIN) : end + _NUMBER_WITHIN])
        for at, end in _spans_of(thing, text)
    )


def _has_version_after(product: str, text: str) -> bool:
    return any(
        not (text[at - 1 : at].isalnum() or text[end : end + 1].isalpha())
        and any(char.isdigit() for char in text[end : end + _DIGIT_WITHIN])
        for at, end in _spans_of(product, text)
    )


def _spans_of(word: str, text: str) -> Iterator[tuple[int, int]]:
    at = text.find(word)
    while at >= 0:
        yield at, at + len(word)
        at = text.find(word, at + max(len(word), 1))


# Versions

_VERSION_FOLDER = lazy_pattern(
    r"(?:(?:version|release)[-_]?|v)?(?P<number>\d{1,3}(?:\.(?:\d{1,4}|x)){0,3})(?P<early>[-_.]?(?:alpha|beta|rc|dev|pre)\w{0,9})?",
    re.IGNORECASE,
)
_VERSION_IN_HEADING = lazy_pattern(
    r"^\W{0,3}(?:v|(?:version|release)\s)?(?P<number>\d{1,3}(?:\.\d{1,4}){1,3})(?P<early>[-.]?(?:alpha|beta|rc|dev|pre)\w{0,9})?(?![\w%])"
    r"|\b(?:version|release|v(?=\d))\s?(?P<named>\d{1,3}(?:\.\d{1,4}){0,3})\b",
    re.IGNORECASE,
)
_EARLY = lazy_pattern(
    r"\W{0,3}(?:unreleased|next|nightly|dev(?:elopment)?|beta|alpha|canary|edge)\W{0,3}", re.IGNORECASE
)
_VERSION_ASKED = lazy_pattern(
    r"\b(?:v|versions?\s|releases?\s)(\d{1,3}(?:\.\d{1,4}){0,3})\b|(?<![\w.])(\d{1,3}(?:\.\d{1,4}){1,3})\b",
    re.IGNORECASE,
)
_ABOUT_VERSIONS = lazy_pattern(
    r"\b(?:versions?|releases?|released|since|when|chang\w{1,4}|new|introduced|added|removed|history|beta|alpha|nightly|unreleased|next|upgrad\w{1,4}|updat\w{1,4})\b",
    re.IGNORECASE,
)


class _Version(NamedTuple):
    """`at`: the part of the place that names it; `number`: empty if it has none; `early`: it is not released."""

    at: int
    number: tuple[int, ...]
    early: bool


def is_of_another_version(question: str, place: Place, text: str, others: Mapping[Place, str]) -> bool:
    """Return True if the folder or a heading of a section is of a version that the question does not name; or, where
    it names none and does not ask about versions, if one of the `others`, a section or page of a newer version with the
    words of the question that this one has (or of a released one, if this is not), stands in its place.
    """
    own = _version_of(place)
    if own is None:
        return False
    asked = [found[1] or found[2] for found in _VERSION_ASKED.finditer(question)]
    if asked:  # also of something else, such as "TLS 1.3", which then stands in the text
        is_told = any(each in text or _is_part(_version_numbers(each), own.number) for each in asked)
        return bool(own.number) and not is_told
    if _ABOUT_VERSIONS.search(question):
        return False
    wanted = set(terms(question))
    shared = wanted.intersection(terms("\n".join([*place.path, text])))
    for other, told in others.items():
        its = _version_of(other)
        is_instead = its is not None and _without_version(place, own) == _without_version(other, its) and not its.early
        is_newer = its is not None and (own.early or its.number > own.number)
        if is_instead and is_newer and shared.issubset(terms("\n".join([*other.path, told]))):
            return True
    return False


def version_folder(folders: tuple[str, ...]) -> str:
    """Return the last of the folders that names a version; empty if none does."""
    named = (each for each in reversed(folders) if _is_version_folder(each))
    return next(named, "")


def _is_version_folder(folder: str) -> bool:
    found = _VERSION_FOLDER.fullmatch(folder)
    return bool(_EARLY.fullmatch(folder) or (found and not folder.isdigit()))


def _version_of(place: Place) -> _Version | None:
    """Return the version that the last part of a place names, and only folders and what stands below the title."""
    for at in range(len(place.path) - 1, -1, -1):
        part, is_folder = place.path[at], at < place.pages - 1
        if _EARLY.fullmatch(part):
            return _Version(at, (), early=True)
        if is_folder and not _is_version_folder(part):
            continue
        found = _VERSION_FOLDER.fullmatch(part) if is_folder else _VERSION_IN_HEADING.search(part)
        if found:
            number = found["number"] or found.groupdict().get("named") or ""
            return _Version(at, _version_numbers(number), early=bool(found["early"]))
    return None


def _without_version(place: Place, version: _Version) -> tuple[str, ...]:
    return (*place.path[: version.at], *place.path[version.at + 1 :])


def _version_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(each) for each in version.split(".") if each.isdigit())


def _is_part(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Return True if one version is the other, or a part of it: 2.1 of 2."""
    most = min(len(one), len(other))
    return one[:most] == other[:most]
