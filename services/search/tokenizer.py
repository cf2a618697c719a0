"""Tokens for keyword search in uploaded files.

`conf/app.yaml`, `blk_-6952`, `10.0.0.7:8080` and `QuorumPeer` are a token each, and so is every part of them: a search
for the whole finds exactly that, and a search for a part finds it too. Letter case never counts.
"""

from __future__ import annotations

import re
from functools import lru_cache

from services.search.words import STOP_WORDS, stem

MAX_TOKEN_CHARS = 200
"""Longer runs (base64, minified code) are found by their beginning."""

# Brackets and quotes end a token, as do commas and equals signs: `rhost=10.0.0.7,` is two.
_RUN = re.compile(r"[\w./:\-]+")
_EDGE = "./:-_"
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_a-zA-Z]+")
_SPLIT = re.compile(r"[_./:\-]+")

# Dropped from questions only: question words, and verbs that say nothing about the content of a file.
_KEPT_STOP_WORDS = frozenset({"out", "off", "not", "no", "up", "down", "again", "never", "until", "without"})
QUERY_STOP_WORDS = STOP_WORDS - _KEPT_STOP_WORDS


def tokens(text: str) -> list[str]:
    """The tokens of `text`, in order, with repeats."""
    return [token for run in _RUN.findall(text) for token in _tokens_of(run[:MAX_TOKEN_CHARS])]


def query_tokens(text: str) -> list[str]:
    """The tokens to look for, each once, without stop words."""
    kept = [
        token
        for run in _RUN.findall(text)
        if run.strip(_EDGE).casefold() not in QUERY_STOP_WORDS
        for token in _tokens_of(run[:MAX_TOKEN_CHARS])
    ]
    return list(dict.fromkeys(kept))


def parts(text: str) -> list[str]:
    """Return the smallest tokens of `text`, each once: every line that holds `text` holds all of them."""
    return list(dict.fromkeys(part for run in _RUN.findall(text) for part in _parts_of(run[:MAX_TOKEN_CHARS])))


def rendered(found: list[str]) -> str:
    """Join tokens into a text that FTS5 splits into exactly these again."""
    return " ".join(found)


@lru_cache(maxsize=131_072)
def _tokens_of(run: str) -> tuple[str, ...]:
    whole = run.strip(_EDGE)
    if not whole:
        return ()
    small = _parts_of(run)
    if len(small) <= 1 and whole.isalnum():
        return small
    # A signed number (`blk_-1608`) differs from the unsigned one: both are found by their parts.
    fields = tuple(
        _coded(field.casefold()) for field in _SPLIT.split(whole) if field and field != whole and len(field) > 1
    )
    return tuple(dict.fromkeys((_coded(whole.casefold()), *fields, *small)))


@lru_cache(maxsize=131_072)
def _parts_of(run: str) -> tuple[str, ...]:
    found: list[str] = []
    for field in filter(None, _SPLIT.split(run)):
        if field.isdigit() or not field.isascii() or _mixed(field):
            found.append(_coded(field.casefold()))
        else:
            found.extend(_coded(stem(piece.casefold())) for piece in _PART.findall(field))
    return tuple(dict.fromkeys(found))


def _mixed(field: str) -> bool:
    """Letters and digits in one: `0x34f1`, `e1042`; its pieces would be noise."""
    return any(char.isdigit() for char in field) and any(char.isalpha() for char in field)


def _coded(token: str) -> str:
    """In ASCII, because FTS5 has its own rules for what is a word in other scripts."""
    return token if token.isascii() else "u" + token.encode().hex()
