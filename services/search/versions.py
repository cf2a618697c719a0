"""Whether a section of the documentation is of another version than the one that a question is about."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from services import lazy_pattern
from services.search.differences import Place
from services.search.tokenizer import terms

_FOLDER = lazy_pattern(
    r"(?:(?:version|release)[-_]?|v)?(?P<number>\d{1,3}(?:\.(?:\d{1,4}|x)){0,3})(?P<early>[-_.]?(?:alpha|beta|rc|dev|pre)\w{0,9})?",
    re.IGNORECASE,
)
_HEADING = lazy_pattern(
    r"^\W{0,3}(?:v|(?:version|release)\s)?(?P<number>\d{1,3}(?:\.\d{1,4}){1,3})(?P<early>[-.]?(?:alpha|beta|rc|dev|pre)\w{0,9})?(?![\w%])"
    r"|\b(?:version|release|v(?=\d))\s?(?P<named>\d{1,3}(?:\.\d{1,4}){0,3})\b",
    re.IGNORECASE,
)
_EARLY = lazy_pattern(
    r"\W{0,3}(?:unreleased|next|nightly|dev(?:elopment)?|beta|alpha|canary|edge)\W{0,3}", re.IGNORECASE
)
_ASKED = lazy_pattern(
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
    asked = [found[1] or found[2] for found in _ASKED.finditer(question)]
    if asked:  # also of something else, such as "TLS 1.3", which then stands in the text
        is_told = any(each in text or _is_part(_numbers(each), own.number) for each in asked)
        return bool(own.number) and not is_told
    if _ABOUT_VERSIONS.search(question):
        return False
    wanted = set(terms(question))
    shared = wanted.intersection(terms("\n".join([*place.path, text])))
    for other, told in others.items():
        its = _version_of(other)
        is_instead = its is not None and _rest_of(place, own) == _rest_of(other, its) and not its.early
        is_newer = its is not None and (own.early or its.number > own.number)
        if is_instead and is_newer and shared.issubset(terms("\n".join([*other.path, told]))):
            return True
    return False


def version_folder(folders: tuple[str, ...]) -> str:
    """Return the last of the folders that names a version; empty if none does."""
    named = (each for each in reversed(folders) if _is_version_folder(each))
    return next(named, "")


def _is_version_folder(folder: str) -> bool:
    found = _FOLDER.fullmatch(folder)
    return bool(_EARLY.fullmatch(folder) or (found and (not folder.isdigit())))


def _version_of(place: Place) -> _Version | None:
    """Return the version that the last part of a place names, and only folders and what stands below the title."""
    for at in range(len(place.path) - 1, -1, -1):
        part, is_folder = place.path[at], at < place.pages - 1
        if _EARLY.fullmatch(part):
            return _Version(at, (), early=True)
        if is_folder and not _is_version_folder(part):
            continue
        found = _FOLDER.fullmatch(part) if is_folder else _HEADING.search(part)
        if found:
            number = found["number"] or found.groupdict().get("named") or ""
            return _Version(at, _numbers(number), early=bool(found["early"]))
    return None


def _rest_of(place: Place, version: _Version) -> tuple[str, ...]:
    return (*place.path[: version.at], *place.path[version.at + 1 :])


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(each) for each in version.split(".") if each.isdigit())


def _is_part(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Return True if one version is the other, or a part of it: 2.1 of 2."""
    most = min(len(one), len(other))
    return one[:most] == other[:most]
