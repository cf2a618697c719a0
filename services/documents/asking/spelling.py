"""Typing errors in the words that steer a search: `frist`, `eror`, `how mnay`.

Only one swapped, missing or doubled letter is mended: a changed letter too often makes another word (`lost` and `last`).
What is quoted, and what may be a name, is left alone.
"""

from __future__ import annotations

import re
from functools import lru_cache

from services.documents.asking.vocabulary import STEERING

_REAL = frozenset({"fist", "thirst", "terror", "lastly"})
_SHORT = 4
"""Words up to this length have too many neighbours: only swapped letters are mended in them."""
_QUOTED = r"\"[^\"\n]*\"|`[^`\n]*`|“[^”\n]*”|(?<!\w)'[^'\n]*'(?!\w)"
_WORD = re.compile(rf"{_QUOTED}|(?<![\w./:@#$%+=-])([A-Za-z][a-z]{{2,11}})(?![\w/@=-]|[.:]\w)")


def mended(question: str) -> str:
    return _WORD.sub(lambda found: _slips().get(found[0].lower(), found[0]), question)


@lru_cache(maxsize=1)
def _slips() -> dict[str, str]:
    slips = {"lastest": "latest"} | {slip: word for word in reversed(STEERING) for slip in _slips_of(word)}
    return {slip: word for slip, word in slips.items() if slip not in _REAL.union(STEERING)}


def _slips_of(word: str) -> set[str]:
    """The first letter is seldom missed."""
    swapped = {word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in range(len(word) - 1)}
    if len(word) <= _SHORT:
        return swapped
    missing = {word[:at] + word[at + 1 :] for at in range(1, len(word))}
    return swapped | missing | {word[:at] + word[at] + word[at:] for at in range(1, len(word))}
