"""What stands inside of an object or a list within one line, as logs have it: `{"v": "x", "w": [1, {"u": "y"}]}`."""

from __future__ import annotations

import re
from typing import NamedTuple

from services.redaction.labels import BREAK_CHARS

_PART = re.compile(
    r"(?P<label>\[redacted: [a-z ]{1,20}\])|(?P<open>[{\[])|(?P<shut>[}\]])|(?P<comma>,)|(?P<space>[ \t]+)"
    rf"|(?P<quote>\\?[\"'`])(?P<quoted>(?>(?:(?!(?P=quote))(?:\\[^{BREAK_CHARS}]|[^\\{BREAK_CHARS}]))*))(?:(?P=quote))?"
    rf"|(?P<bare>[^\s,{{}}\[\]\"'`\\]+)|(?P<other>[^{BREAK_CHARS}])"
)
_BARE_NAME = re.compile(r"(?P<name>[\w.-]{1,60})[ \t]{0,9}(?:=>|[:=])")
_SIGN = re.compile(r"[ \t]{0,9}(?:=>|[:=])")


class Inner(NamedTuple):
    """A value and the name it has inside of the object: that of a list, if it is part of one."""

    name: str
    start: int
    end: int


def inner_values(text: str, at: int) -> tuple[list[Inner], int]:
    """The values of what opens there, and where it ends: with its line, if it is not closed in it."""
    found: list[Inner] = []
    depth, name, given = 0, "", False
    while part := _PART.match(text, at):
        kind = part.lastgroup
        bare = None if given or kind != "bare" else _BARE_NAME.match(text, at)
        at = part.end()
        if kind == "open":
            depth, given = depth + 1, False
        elif kind == "shut":
            depth, given = depth - 1, False
            if not depth:
                break
        elif kind == "comma":
            given = False
        elif bare:
            name, at, given = bare["name"], bare.end(), True
        elif kind == "quoted" and not given and (sign := _SIGN.match(text, at)):
            name, at, given = part["quoted"], sign.end(), True
        elif kind in ("quoted", "bare"):
            found.append(Inner(name, *part.span(kind)))
    return found, at
