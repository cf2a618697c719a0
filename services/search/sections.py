"""Decides whether a section of the documentation is about something else than a question: an opposite, another thing,
or another version.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import NamedTuple

from services import lazy_pattern
from services.search.differences import (
    OWN,
    REHEARSING,
    are_opposite_acts,
    does_without,
    has_opposite_word,
    has_other_words,
    leads_elsewhere,
    without_shared_ends,
)
from services.search.questions import SENTENCE_END, asking_sentences
from services.search.tokenizer import terms
from services.search.wording import (
    DESTROYING,
    LIGHT_VERBS,
    NOTHING,
    WITHOUT,
    Wording,
    named_in,
    terms_of,
    wording_of,
)

# Opposites


def is_about_opposite(question: str, headings: Sequence[str], text: str) -> bool:
    """Return True if a section of the documentation is about an opposite of what is asked, or leads elsewhere, by its
    headings or by all those sentences of its `text` that have the most terms of `question`; or, in English, if its
    heading has the same act and another thing ("Reset the staging server"), stands below a heading about another thing,
    or is about destroying, and the question how to do something else ("I deleted it: how do I get it back?").
    """
    asked, section = _asked(question), _section(headings, text)
    return any(is_apart(asked.wording, section) for is_apart in _RULES) or _are_nearest_opposite(asked, section)


class _Asked(NamedTuple):
    """A question to a page.

    Attributes:
        terms: of the whole question.
        wording: of its sentences that ask; of all if none does.
        in_general: the same without what is the asker's own, which is in no contrast to what a page says to everybody;
            and without what is to be left out.
    """

    terms: frozenset[str]
    wording: Wording
    in_general: Wording


@lru_cache(maxsize=16)
def _asked(question: str) -> _Asked:
    wording = wording_of("\n".join(asking_sentences(question)[0]) or question)
    in_general = Wording(WITHOUT.sub(" ", OWN.sub(" ", wording.text)))
    return _Asked(frozenset(terms(question)), wording, in_general)


class _Section(NamedTuple):
    """A section of a page. `heading`: all of its `headings` in one."""

    headings: Sequence[Wording]
    heading: Wording
    text: Wording


_EACH = lazy_pattern(r"\b(?:each|every)\b", re.IGNORECASE)
"""Dropped before words are compared: what a page says of each thing holds for the one that is asked about."""


def _section(headings: Sequence[str], text: str) -> _Section:
    wordings = [wording_of(each) for each in headings]
    return _Section(wordings, Wording(_EACH.sub(" ", _joined(wordings).text)), wording_of(text))


_ENOUGH_SHARED = 2
"""Terms that a sentence of a page shares with a question."""
_MAX_SIDES = 5
"""Pages name acts as things, too ("shadow copies"): a group of more sides, those of acts, is not looked at."""


def _is_opposite(asked: Wording, told: Wording, text: Wording, named: AbstractSet[str]) -> bool:
    """Return True if a question is about the opposite of what a heading or sentence of a `text` tells, or leads
    elsewhere; none of the terms `named` is an opposite.
    """
    return (
        has_opposite_word(asked, told, text, named=named, most_sides=_MAX_SIDES)
        or does_without(asked, told, text)
        or leads_elsewhere(asked, told, text)
    )


def _are_nearest_opposite(asked: _Asked, section: _Section) -> bool:
    """Return True if all those sentences that have the most terms of a question are about its opposite."""
    sentences = SENTENCE_END.split(_EACH.sub(" ", section.text.text))
    shared = [len(asked.terms.intersection(terms(each))) for each in sentences]
    enough = min(_ENOUGH_SHARED, max(1, len(asked.terms) - 1))  # a word of a short question may be the opposite itself
    most = max(shared)
    nearest = [each for count, each in zip(shared, sentences, strict=True) if count == most >= enough]
    told = (Wording(f"{section.heading.text}\n{WITHOUT.sub(' ', each)}") for each in nearest)
    return bool(nearest) and all(
        _is_opposite(asked.in_general, each, section.text, section.text.meant) for each in told
    )


def _has_opposite_heading(asked: Wording, section: _Section) -> bool:
    """Return True for "how do I enable it" and *Disable it*."""
    return _is_opposite(asked, section.heading, section.text, section.text.told)


_IS_DONE = lazy_pattern(
    r"\b(?:has|have|had|was|were|is|are|got|been|i|we|they|he|she|somebody|someone|accidentally)\s+(?:\w{1,20}\s+){0,3}"
    r"(?:deleted|removed|wiped|erased|dropped|reset|lost|purged|uninstalled|revoked|gone)\b",
    re.IGNORECASE,
)


def _destroys_unasked(asked: Wording, section: _Section) -> bool:
    """Return True for "how do I get it back", or what to do after "I deleted it" and *Delete it*."""
    if not section.headings or terms_of(DESTROYING).isdisjoint(section.headings[-1].matter[:1]):
        return False
    verb, thing = asked.act
    if verb:
        return terms_of(DESTROYING).isdisjoint([verb, thing] if verb in LIGHT_VERBS else [verb])
    if not asked.kinds.isdisjoint({"reason", "person"}):
        return True
    return not asked.kinds and not asked.asks_whether and _IS_DONE.search(asked.text) is not None


def _destroys_what_is_kept(asked: Wording, section: _Section) -> bool:
    """Return True for "how do I reset it and keep my files" and a section that says nothing of keeping."""
    is_kept = section.heading.speaks_of_keeping or section.text.speaks_of_keeping
    return asked.destroys and asked.speaks_of_keeping and not is_kept


_KEEPING = "keep preserve retain"


def _has_another_act(asked: Wording, section: _Section) -> bool:
    """In English: "How do I delete it" and *Test it*, *Keep it* or *Restore it*."""
    verb = asked.act.verb
    if not (section.headings and verb and asked.is_english):
        return False
    first = terms(section.headings[-1].text.partition(" ")[0])
    if first == [verb]:
        return False
    is_rehearsal = verb not in terms_of(REHEARSING) and not terms_of(REHEARSING).isdisjoint(first)
    keeps = asked.destroys and not terms_of(_KEEPING).isdisjoint(first)
    is_opposite = keeps or are_opposite_acts({verb}, set(first))
    return is_rehearsal or (is_opposite and verb not in section.text.told)


def _has_another_thing(asked: Wording, section: _Section) -> bool:
    """In English: "How do I reset the server" and *Reset the staging server* or *Reset it if you are an admin*."""
    verb, thing = asked.act
    if not (section.headings and verb and asked.is_english):
        return False
    *above, heading = section.headings
    if terms(heading.text.partition(" ")[0]) != [verb]:
        return False
    known = asked.terms.union(*(each.terms for each in above))
    is_narrower = bool(thing) and asked.destroys and bool(set(heading.matter) - known - terms_of(DESTROYING))
    return is_narrower or bool(heading.conditions - known) or _swaps_words(asked, heading, section.text)


def _swaps_words(asked: Wording, heading: Wording, text: Wording) -> bool:
    """Return True if a heading has other words at one place, but for those of the question that the text has."""
    told = text.told_of_both if asked.is_risky else text.told
    if set(asked.matter).difference(heading.matter) <= told:
        return False
    return has_other_words(
        asked, heading, [each for each in asked.matter if each in heading.matter or each not in told]
    )


def _is_below_another(asked: Wording, section: _Section) -> bool:
    """Return True for "how do I reset the production server" and *Staging › Reset the server*.

    The question has the words of the last heading, all but one. A heading between that and the title has other words or
    numbers than the question, which in turn has some that the section has not.
    """
    between = section.headings[1:-1]
    own = set(section.headings[-1].matter) if between else set[str]()
    if not between or len(own.difference(asked.matter)) > min(1, len(own) - 1):
        return False
    wanted = asked.numbers.union(asked.matter)
    above, whole = _joined(between), _joined([*section.headings, section.text])
    return bool((above.terms | above.numbers) - wanted) and bool(wanted - whole.terms - whole.numbers)


def _joined(texts: Iterable[Wording]) -> Wording:
    return Wording("\n".join(each.text for each in texts))


_UNDOING = "undo revert reverse rollback"


def _is_not_undone(asked: Wording, section: _Section) -> bool:
    """Return True for "how do I undo a merge" and a section that says nothing of undoing."""
    undoing = terms_of(_UNDOING)
    return asked.act.verb in undoing and undoing.isdisjoint(section.heading.terms | section.text.terms)


def _destroys_fewer(asked: Wording, section: _Section) -> bool:
    """Return True for "how do I delete all logs" and *Delete a log*."""
    return asked.destroys and bool(asked.everything) and not (section.heading.everything or section.text.everything)


_RULES: tuple[Callable[[Wording, _Section], bool], ...] = (
    _has_opposite_heading,
    _destroys_unasked,
    _destroys_what_is_kept,
    _has_another_act,
    _has_another_thing,
    _is_below_another,
    _is_not_undone,
    _destroys_fewer,
)

# Other things


class Place(NamedTuple):
    """The place of a section.

    Attributes:
        path: the folders of its page, the title, and the headings down to its own.
        pages: how many of the path name pages: the folders and the title.
    """

    path: tuple[str, ...]
    pages: int


def is_for_another(question: str, place: Place, text: str, others: Iterable[Place]) -> bool:
    """Return True if a section of the documentation is for somebody or something else than the question names.

    - One of the `others`, beside it or below, has words of the question alone in its name, and the section, at the same
      level, none: *Dosage › Adults*, beside *Dosage › Children*. Of pages only those count whose places differ in one
      word: *ios › Backup*, *android › Backup*.
    - In English, a word of its headings stands beside another one than in the question: *Pro plan*, "in the Enterprise
      plan"; *Model B*, "of Model C". For a question about an act that destroys, a word of the text, too.

    What the `text` of the section has as well is no such word, and neither is what is to be done.
    """
    asked = _asked(question).wording
    wanted, held = named_in(asked.text), named_in("\n".join([*place.path, text]))
    missing = wanted - held
    if not missing:
        return False
    if any(_is_for(wanted, missing, place, other) for other in set(others) - {place}):
        return True
    if not wanted.isdisjoint(terms_of(DESTROYING)) and _has_another_behind(asked, Wording(text), held):
        return True
    if not asked.is_english:  # stop words of others stand between what they join
        return False
    headings = map(Wording, place.path[min(place.pages, len(place.path) - 1) :])
    return any(_has_another_neighbour(asked, each, held) for each in headings if not each.asks_whether)


def _is_for(wanted: AbstractSet[str], missing: AbstractSet[str], place: Place, other: Place) -> bool:
    """Return True if the name of another place has what a question wants, and that of a place nothing of it."""
    own, its = _apart_at(place, other)
    return not its.isdisjoint(missing) and its <= wanted and own.isdisjoint(wanted)


def _apart_at(place: Place, other: Place) -> tuple[AbstractSet[str], AbstractSet[str]]:
    """Return what each of two places names, and the other does not, where they part; nothing if `other` is above the
    first, or if they are pages that differ in more than one word.
    """
    at = next((at for at, pair in enumerate(zip(place.path, other.path, strict=False)) if pair[0] != pair[1]), None)
    if at is None and len(other.path) <= len(place.path):
        return NOTHING, NOTHING
    if at is None:
        return NOTHING, named_in(other.path[len(place.path)]) - named_in("\n".join(place.path))
    own, its = named_in(place.path[at]), named_in(other.path[at])
    if at < max(place.pages, other.pages):
        mine, theirs = without_shared_ends(
            _terms_of_page(place.path[: place.pages]), _terms_of_page(other.path[: other.pages])
        )
        if len(mine) != 1 or len(theirs) != 1:
            return NOTHING, NOTHING
    return own - its, its - own


@lru_cache(maxsize=512)
def _terms_of_page(path: tuple[str, ...]) -> list[str]:
    return [term for part in path for term in terms(part)]


def _has_another_neighbour(asked: Wording, heading: Wording, held: AbstractSet[str]) -> bool:
    """Return True if a question has a word of a heading behind another word than the heading, or before another
    number or letter, which the section does not hold; and not the one that the heading has.
    """
    wanted = named_in(asked.text)
    for first, second in heading.pairs:
        for before, after in asked.pairs:
            if second == after and first not in wanted and before not in {*held, *asked.act, *LIGHT_VERBS}:
                return True
            is_sign = after[:1].isdigit() or len(after) == 1
            if first == before and is_sign and second not in wanted and not _holds_number(after, held):
                return True
    return False


def _has_another_behind(asked: Wording, text: Wording, held: AbstractSet[str]) -> bool:
    """Return True if a question has a word of a text before another word, which the section does not hold; and not the
    one that the text has: "the folder data", "the folder cache".
    """
    wanted = named_in(asked.text)
    told = {first for first, second in text.pairs if second not in wanted}
    return any(first in told and second not in held for first, second in asked.pairs)


def _holds_number(number: str, held: AbstractSet[str]) -> bool:
    """Return True if a set has a number, or one that it is a part of: 2.1 of 2."""
    return any(number == each or number.startswith(f"{each}.") or each.startswith(f"{number}.") for each in held)


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


# Introductions, warnings, and what is out of date

_INTRODUCTION = lazy_pattern(
    r"(?:introduction|intro|overview|welcome\b.*|(?:table of )?contents|getting started|get started|quick ?start|about)"
    r"[\W_]*",
    re.IGNORECASE,
)
_GENERAL_QUESTION = lazy_pattern(
    r"\bwhat(?:['’]?s| is| are| does)\b|\b(?:introduction|overview|summary|begin|beginner|start(?:ed|ing)?|new to)\b",
    re.IGNORECASE,
)


def is_too_general(headings: Sequence[str], question: str) -> bool:
    """Return whether the section below `headings` is an introduction and the question asks for something particular."""
    return bool(headings and _INTRODUCTION.fullmatch(headings[-1].strip())) and not _GENERAL_QUESTION.search(question)


_CODE_BLOCK = lazy_pattern(r"```.*?(?:```|\Z)", re.DOTALL)
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
_MAX_WARNING_CHARS = 240


def advises_against(headings: Sequence[str], question: str) -> bool:
    """Return whether one of the `headings`, in English, says that what stands below is wrong, dangerous or out of date
    ("Things you must never do", "Deprecated"), and the question does not ask for such a thing.

    A heading that shares a word with the question may answer it: one that denies, whether something may be done ("Do
    not copy the folder"); any, a question about trouble, or for a reason.
    """
    if _AGAINST.search(question):
        return False
    asked, in_trouble, whether = set(terms(question)), _IN_TROUBLE.search(question), Wording(question).asks_whether
    return any(
        asked.isdisjoint(terms(each)) or not (in_trouble or (whether and _DENIES.search(each)))
        for each in headings
        if _AGAINST.search(each)
    )


def warnings_in(text: str) -> list[str]:
    """Return the sentences of a text, in English, that warn, but for very long ones. Code warns of nothing."""
    prose = _CODE_BLOCK.sub("\n", text)
    found = (each.strip() for each in SENTENCE_END.split(prose))
    return [each for each in found if len(each) <= _MAX_WARNING_CHARS and _WARNS.search(each)]


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
    found = [each.strip() for each in head.split("\n\n") if len(each) <= _MAX_WARNING_CHARS]
    return [each for each in found if (each.startswith("**") and _WARNS.search(each)) or _OF_WHOLE_PAGE.search(each)]
