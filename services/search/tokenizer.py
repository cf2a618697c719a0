"""Splits text into the units that search compares: `terms` for questions and documentation in any language (stems,
identifiers, pairs of characters), `tokens` for the content of uploaded files (paths, addresses, identifiers and their
parts).
"""

from __future__ import annotations

import re
import sys
import threading
import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import pairwise
from typing import cast

import Stemmer

from services import lazy_pattern
from services.search.languages import FUNCTION_WORDS, char_ranges, folded, normalised

# Terms

STOP_WORDS = FUNCTION_WORDS["en"]

_STEMMERS = {
    "en": "english",
    "de": "german",
    "es": "spanish",
    "fr": "french",
    "pt": "portuguese",
    "ru": "russian",
    "it": "italian",
    "nl": "dutch",
    "sv": "swedish",
    "tr": "turkish",
    "pl": "polish",
}


def _combining_marks() -> str:
    """Return the combining marks as ranges of a character class; word characters of `re` leave them out."""
    return char_ranges(code for code in range(0x300, 0x2100) if unicodedata.category(chr(code)) in {"Mn", "Mc"})


_MARKS = _combining_marks()
# Hangul (particles and endings are written onto words), then scripts without blanks between words: Thai, Lao, Burmese,
# Khmer, kana with its marks, Han.
_UNSPACED = (
    "\uac00-\ud7a3\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u1000-\u109f\u1780-\u17d3\u3005\u3041-\u3096\u30a1-\u30fa"
    "\u30fc\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
)
_UNSPACED_RUN = lazy_pattern(f"[{_UNSPACED}]+")
_CLUSTER = lazy_pattern(f"[^{_MARKS}][{_MARKS}]*")
_TOKEN = lazy_pattern(rf"[\w{_MARKS}]+(?:[./:-]{{1,2}}[\w{_MARKS}]+){{0,100}}(?:\+\+|#(?!\w))?")
_ASCII_TOKEN = lazy_pattern(r"[A-Za-z0-9]+(?:[./:-]{1,2}[A-Za-z0-9]+){0,100}(?:\+\+|#(?!\w))?")
_JOINT = lazy_pattern(r"[./:+#-]+")
_ASCII_PIECE = lazy_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_PIECE = lazy_pattern(rf"\d+|[^\W\d]+(?:[{_MARKS}]+[^\W\d]*)*")
_CONTRACTION = lazy_pattern(r"n['’]t\b|['’](?:s|re|ve|ll|d|m)\b", re.IGNORECASE)
_MAX_TOKEN_CHARS = 200
"""The most characters of a token that are read: longer ones are base64 or minified code."""
_MAX_CACHED_CHARS = 32
"""Longer tokens seldom come twice; nor do runs of Chinese, each character of which is a term of its own. If the cache
kept either, anybody could fill the memory.
"""

# Words that users and documentation write differently: the common form and the others.
_SYNONYMS = {
    "authentication": "auth",
    "certificate": "cert certs",
    "colour": "color",
    "configure": "cfg conf config configs",
    "database": "db",
    "directory": "dir folder folders",
    "documentation": "docs",
    "environment": "env",
    "fail": "failure failures",
    "forgot": "forgotten",
    "licence": "license",
    "log": "login logs",
    "mail": "email emails mails",
    "memory": "ram",
    "parameter": "param params",
    "password": "pwd",
    "permission": "perms",
    "picture": "pics photo photos",
    "remove": "erase uninstall delete deleted deleting",
    "repository": "repo",
    "sign": "signin",
    "two-factor": "2fa",
    "variable": "var vars",
}
_stemmers = threading.local()
_COMMON_FORMS = {alias: word for word, aliases in _SYNONYMS.items() for alias in aliases.split()}


def terms(text: str, language: str = "en") -> list[str]:
    """Return the terms of `text`, in order, with repeats, without function words. `language`: its ISO 639-1 code.

    `max_retries`, `api.example.net` and `E-1042` are a term each, and so is every word in them. Chinese, Japanese,
    Korean, Thai, Lao, Khmer and Burmese give their pairs of characters. Accents and letter case never count.
    """
    text = text.replace("_", "-")
    if "'" in text or "’" in text:
        text = _CONTRACTION.sub(" ", text)
    if text.isascii():
        tokens = _ASCII_TOKEN.findall(text)
    else:
        # NFKC turns full-width letters into the usual ones and joins accents with their letters.
        text = normalised("NFKC", text)
        tokens = _TOKEN.findall(_UNSPACED_RUN.sub(r" \g<0> ", text))
    found: list[str] = []
    for token in tokens:
        if len(token) <= _MAX_CACHED_CHARS and (token.isascii() or not _UNSPACED_RUN.match(token)):
            found += _cached_terms_of(token, language)
        else:
            found += _terms_of(token, language)
    return found


def stem(word: str, language: str = "en") -> str:
    """Return the form that the inflections of a lower-case word share: configured and configuration give one."""
    if language == "en":
        word = _COMMON_FORMS.get(word, word)
    stemmed = word
    if language in _STEMMERS and word.isalpha():
        stemmed = _stemmer_of_thread(language)(word)
    return sys.intern(folded(stemmed))


def _terms_of(token: str, language: str) -> tuple[str, ...]:
    if _UNSPACED_RUN.match(token):
        return _pairs(token, language)
    token = token[:_MAX_TOKEN_CHARS]
    whole = token.lower()
    stops = FUNCTION_WORDS.get(language, frozenset())
    if folded(whole) in stops:
        return ()
    pieces = _pieces(token)
    if len(pieces) <= 1:
        return (stem(whole, language),) if _is_term(whole) else ()
    parts = [stem(each, language) for each in pieces if _is_term(each) and folded(each) not in stops]
    whole = folded(whole)
    return (whole, *(part for part in parts if part != whole))


_cached_terms_of = lru_cache(maxsize=65_536)(_terms_of)


def _pieces(token: str) -> list[str]:
    """Split an identifier into its words, in lower case: `maxRetries` has two."""
    return [
        piece.lower()
        for field in _JOINT.split(token)
        for piece in (_ASCII_PIECE if field.isascii() else _PIECE).findall(field)
    ]


def _pairs(run: str, language: str) -> tuple[str, ...]:
    """Return neighbouring characters in pairs, each with its marks; a single one as it is."""
    clusters = _CLUSTER.findall(run)
    if len(clusters) <= 1:
        return tuple(clusters)
    stops = FUNCTION_WORDS.get(language, frozenset())
    pairs = [first + second for first, second in pairwise(clusters)]
    return tuple(pair for pair in pairs if pair not in stops)


def _is_term(word: str) -> bool:
    """Return False for a single letter of an alphabet; a single syllable is a term."""
    return len(word) > 1 or word > "\u0900"


def _stemmer_of_thread(language: str) -> Callable[[str], str]:
    """Return this thread's stemmer: threads cannot share one. It has no cache, since `_cached_terms_of` has one."""
    made: Callable[[str], str] | None = getattr(_stemmers, language, None)
    if made is None:
        made = cast("Callable[[str], str]", Stemmer.Stemmer(_STEMMERS[language], 0).stemWord)  # pyright: ignore[reportUnknownMemberType] (it has no types)
        setattr(_stemmers, language, made)
    return made


# Tokens

# Brackets and quotes end a token, as do commas and equals signs: `rhost=10.0.0.7,` is two.
_RUN = lazy_pattern(r"[\w./:\-]+")
_EDGES = "./:-_"
_FIELD_PIECE = lazy_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_a-zA-Z]+")
_SEPARATORS = lazy_pattern(r"[_./:\-]+")

QUERY_STOP_WORDS = STOP_WORDS - {"out", "off", "not", "no", "up", "down", "again", "never", "until", "without"}
"""Function words, without those that a log or a condition may hold ("timed out", "not", "until"). Dropped from
questions, never from files.
"""


def tokens(text: str) -> list[str]:
    """Return the tokens of `text`, in order, with repeats.

    `conf/app.yaml`, `blk_-6952`, `10.0.0.7:8080` and `QuorumPeer` are a token each, and so is every part of them: a
    search for the whole finds exactly that, and a search for a part finds it too. Letter case never counts.
    """
    return [token for run in _RUN.findall(text) for token in _tokens_of(run[:_MAX_TOKEN_CHARS])]


def query_tokens(text: str) -> list[str]:
    """Return the tokens to look for, each once, without stop words."""
    found = [
        token
        for run in _RUN.findall(text)
        if run.strip(_EDGES).casefold() not in QUERY_STOP_WORDS
        for token in _tokens_of(run[:_MAX_TOKEN_CHARS])
    ]
    return list(dict.fromkeys(found))


def smallest_tokens(text: str) -> list[str]:
    """Return the smallest tokens of `text`, each once: every line that holds `text` holds all of them."""
    return list(
        dict.fromkeys(token for run in _RUN.findall(text) for token in _smallest_tokens_of(run[:_MAX_TOKEN_CHARS]))
    )


def fts5_text(found: Iterable[str]) -> str:
    """Join tokens into a text that FTS5 splits into exactly these again."""
    return " ".join(found)


@lru_cache(maxsize=131_072)
def _tokens_of(run: str) -> tuple[str, ...]:
    whole = run.strip(_EDGES)
    if not whole:
        return ()
    smallest = _smallest_tokens_of(run)
    if len(smallest) <= 1 and whole.isalnum():
        return smallest
    # A signed number (`blk_-1608`) differs from the unsigned one: both are found by their parts.
    fields = tuple(
        ascii_form(field.casefold())
        for field in _SEPARATORS.split(whole)
        if field and field != whole and len(field) > 1
    )
    return tuple(dict.fromkeys((ascii_form(whole.casefold()), *fields, *smallest)))


@lru_cache(maxsize=131_072)
def _smallest_tokens_of(run: str) -> tuple[str, ...]:
    found: list[str] = []
    for field in filter(None, _SEPARATORS.split(run)):
        if field.isdigit() or not field.isascii() or _has_letters_and_digits(field):
            found.append(ascii_form(field.casefold()))
        else:
            found.extend(ascii_form(stem(piece.casefold())) for piece in _FIELD_PIECE.findall(field))
    return tuple(dict.fromkeys(found))


def _has_letters_and_digits(field: str) -> bool:
    """Return True for a field such as `0x34f1` or `e1042`, whose pieces would be noise."""
    return any(char.isdigit() for char in field) and any(char.isalpha() for char in field)


def ascii_form(token: str) -> str:
    """Write a token in ASCII: FTS5 has rules of its own for what is a word in other scripts."""
    return token if token.isascii() else "u" + token.encode("utf-8", "replace").hex()
