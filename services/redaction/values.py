"""What values look like that no secret would: counts, and words of a sentence."""

from __future__ import annotations

import re

_UNIT = r"(?:%|(?:ns|[uµm]?s|min|h|x|[kKMGT]?i?B)(?![\w]))"
_END = r"[.,;:!?)\]}]{0,20}(?:$|(?<=[,;])[A-Za-z_]{1,40}[=:])"
"""Behind it nothing more, or the next name as in `12,failed=3`."""
_COUNT = re.compile(rf"[+-]?(?:[0-9]{{1,4}}|[0-9]{{1,3}}(?:,[0-9]{{3}}){{1,3}})(?:[./][0-9]{{1,4}})?{_UNIT}?{_END}")
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?[,}\]]*")
_WORD = re.compile(
    r"(?![^aeiouy]*$)(?![a-z]*[^aeiouy\W_]{5})(?:a|i|[a-z]{2,16})(?:[-_'][a-z]{1,16}){0,2}[.,;:!?)\]}]{0,20}"
)
_CONSTANT = re.compile(r"[A-Z]{2,20}(?:_[A-Z]{2,20}){1,5}")


def is_count(value: str) -> bool:
    """Whether it is a number as things are counted, of no more than four digits in a row: `12,`, `1,204`, `98.5%`."""
    return _COUNT.match(value) is not None


def is_number(value: str) -> bool:
    """Whether it is a number, of any length."""
    return _NUMBER.fullmatch(value) is not None


def is_word(value: str) -> bool:
    """Whether it looks like a word of a sentence in lower case, or a few that are joined: `granted.`, `dead-code`."""
    return _WORD.fullmatch(value) is not None


def is_name(value: str) -> bool:
    """Whether it is what something is called: `db-password`, `DB_PASSWORD`."""
    return is_word(value) or _CONSTANT.fullmatch(value) is not None
