"""What of a message is asked, and what is only told along the way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from services.search.questions import asking_sentences
from services.search.words import terms

BEFORE = "Before: "
"""Opens a line of a query that was asked earlier, and that the rest goes on from."""

_MAX_TERMS = 48
"""A pasted log is read no further: what it is about stands at its beginning."""
_FEW = 3
"""Words of what is asked. "How do I fix it?" has none of its own: what it asks about was told before it."""
_TOLD = 0.3
_TOLD_TO_FEW = 0.7
_EARLIER = 0.3
_NOISE = re.compile(r"\[(?:image|file): [^\]\n]*\]|(?<!\S)@[\w.-]+(?!\S*/)")
"""Placeholders of attachments, and the names of people."""


@dataclass(frozen=True, slots=True)
class Query:
    """Words to look for."""

    weights: dict[str, float]
    counted: frozenset[str]
    """Those whose absence counts against a passage. The rest of a story can only speak for one."""


@lru_cache(maxsize=256)
def read_query(text: str) -> Query:
    """Words of the sentences that ask weigh most; where nothing asks, all do."""
    now, earlier = _split(_NOISE.sub(" ", text))
    asking, told = asking_sentences(now)
    main = list(dict.fromkeys(_terms(asking)))
    if not main:
        main, told = list(dict.fromkeys(_terms(told))), []
    weights = dict.fromkeys(main, 1.0)
    counted = set(main)
    aside = [term for term in dict.fromkeys(_terms(told)) if term not in weights]
    few = len(main) < _FEW
    weights |= dict.fromkeys(aside, _TOLD_TO_FEW if few else _TOLD)
    if few:
        counted.update(aside)
    for term in _terms(earlier):
        weights.setdefault(term, _EARLIER)
    kept = dict(list(weights.items())[:_MAX_TERMS])
    return Query(kept, frozenset(counted & kept.keys()))


def asked_now(text: str) -> str:
    """Without what was asked earlier, the placeholders of attachments and the names of people."""
    return _NOISE.sub(" ", _split(text)[0]).strip()


def _split(text: str) -> tuple[str, list[str]]:
    lines = text.split("\n")
    now = "\n".join(line for line in lines if not line.startswith(BEFORE))
    return now, [line.removeprefix(BEFORE) for line in lines if line.startswith(BEFORE)]


def _terms(sentences: list[str]) -> Iterator[str]:
    for sentence in sentences:
        yield from terms(sentence)
