"""Names of topic files that are safe as file names.

A topic that has grown too long is continued in further files: `gpu`, `gpu-2`, `gpu-3`.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Collection, Container, Iterator
from itertools import chain, count, takewhile

MOST_BYTES = 64
_MOST_BYTES_OF_A_FIRST = 60
"""So that `-999` still fits behind it."""

_FOLLOWS = re.compile(r"(.+)-([1-9][0-9]{0,2})", re.ASCII)
_LATER = re.compile(r"(.+)-(?:[2-9]|[1-9][0-9]+)", re.ASCII)
_RESERVED = frozenset(
    ["con", "prn", "aux", "nul", "conin", "conout", "clock"]
    + [f"{port}{number}" for port in ("com", "lpt") for number in range(10)]
)
"""Devices of Windows, with any ending."""


def topic_name(text: str) -> str:
    """Return a name given by a model or a person in its safe form: lower-case letters and digits of any script, with
    single hyphens between them. Empty if `text` is; `topic-<hash>` if no letter of it is allowed. Idempotent.

    An identifier of the index (`team:gpu.txt`) gives the topic it names.
    """
    if not text.strip():
        return ""
    bare = text.strip().removeprefix("team:").removesuffix(".txt")
    lowered = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", bare).lower())
    # Combining accents are dropped, everything else separates words.
    kept = "".join(letter if _allowed(letter) else "-" for letter in lowered if unicodedata.category(letter)[0] != "M")
    name = _cut("-".join(filter(None, kept.split("-"))), _MOST_BYTES_OF_A_FIRST)
    if not name:
        return f"topic-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:12]}"
    return f"topic-{name}" if name in _RESERVED else name


def is_topic_name(name: str) -> bool:
    """Return whether `name` is a valid name of a topic file."""
    words = name.split("-")
    return (
        all(words)
        and all(_allowed(letter) for word in words for letter in word)
        and len(name.encode()) <= MOST_BYTES
        and name not in _RESERVED
        and unicodedata.is_normalized("NFKC", name)
    )


def first_of(name: str, there: Container[str]) -> str:
    """Return the topic in `there` that `name` continues, or `name` itself.

    `gpu-3` continues `gpu` only when `gpu` and `gpu-2` are there: `windows-11` stays a topic of its own.
    """
    found = _FOLLOWS.fullmatch(name)
    if found is None or int(found[2]) < 2:  # noqa: PLR2004 (the first continuation)
        return name
    before = [found[1], *(f"{found[1]}-{number}" for number in range(2, int(found[2])))]
    return found[1] if all(each in there for each in before) else name


def belongs_to(name: str, topics: Collection[str]) -> bool:
    """Return whether a topic file is one of `topics`, or by its name a continuation of one.

    Unlike `first_of` it does not ask which files there are: what is hidden must stay so when an earlier file of its
    topic is deleted.
    """
    found = _LATER.fullmatch(name)
    return name in topics or (found is not None and found[1] in topics)


def files_of(first: str, there: Container[str]) -> list[str]:
    """Return the topic `first` and its continuations, up to the first gap."""
    return list(takewhile(there.__contains__, _names(first)))


def next_file(first: str, there: Container[str]) -> str:
    """Return the name of the next continuation of the topic `first`."""
    return next(name for name in _names(first) if name not in there)


def _names(first: str) -> Iterator[str]:
    return chain([first], (f"{first}-{number}" for number in count(2)))


def _allowed(letter: str) -> bool:
    return unicodedata.category(letter) in {"Ll", "Lo", "Lm", "Nd"}


def _cut(name: str, most_bytes: int) -> str:
    data = name.encode("utf-8", "replace")
    return data[:most_bytes].decode("utf-8", "ignore").strip("-") if len(data) > most_bytes else name
