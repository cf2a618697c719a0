"""Slips of the fingers in the words that steer a search: `frist`, `eror`, `how mnay`.

Only what is one swapped, missing or doubled letter away is mended: a changed letter too often makes another word
(`lost` and `last`). What stands in quotes, and whatever may be a name, is left alone.
"""

from __future__ import annotations

import re
from functools import lru_cache

_STEERING = """
    first last latest earliest oldest newest final recent initial many number count often error errors warning warnings
    fatal critical entry entries message messages line lines before after between previous next following when which
    what where""".split()  # noqa: SIM905
_REAL = frozenset({"fist", "thirst", "terror", "lastly"})
_SHORT = 4
"""Words up to this length have too many neighbours: only swapped letters are mended in them."""
_WORD = re.compile(r"(?<![\w./:@#$%+=-])[A-Za-z][a-z]{2,11}(?![\w/@=-]|[.:]\w)")
_QUOTED = re.compile(r"\"[^\"\n]*\"|`[^`\n]*`|“[^”\n]*”|(?<!\w)'[^'\n]*'(?!\w)")


def mended(question: str) -> str:
    """`question` with such slips put right."""
    quoted = [found.span() for found in _QUOTED.finditer(question)]

    def put_right(found: re.Match[str]) -> str:
        if any(start <= found.start() < end for start, end in quoted):
            return found[0]
        return _slips().get(found[0].lower(), found[0])

    return _WORD.sub(put_right, question)


@lru_cache(maxsize=1)
def _slips() -> dict[str, str]:
    slips = {"lastest": "latest"}
    for word in _STEERING:
        for slip in _slips_of(word):
            slips.setdefault(slip, word)
    for word in (*_STEERING, *_REAL):
        slips.pop(word, None)
    return slips


def _slips_of(word: str) -> set[str]:
    """The first letter is seldom missed."""
    swapped = {word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in range(len(word) - 1)}
    if len(word) <= _SHORT:
        return swapped
    missing = {word[:at] + word[at + 1 :] for at in range(1, len(word))}
    doubled = {word[:at] + word[at] + word[at:] for at in range(1, len(word))}
    return swapped | missing | doubled
