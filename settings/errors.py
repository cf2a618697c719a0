"""The one error of this package, and how its line names a key without giving away what is not a key."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

# Whatever is longer, or has other signs, may be a token that slipped to where a key belongs.
PRESENTABLE = re.compile(r"[A-Za-z0-9_-]{1,36}", re.ASCII)


class SettingsError(Exception):
    """The configuration cannot be used. Its text is one line for the operator: where, which key, what to do.

    The line never holds a configured value, so that nothing secret can get into it.
    """


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong."""

    where: str
    """File and line, or the environment variable."""
    key: str
    text: str

    @property
    def line(self) -> str:
        return f"{self.where}: {self.text}"


def summary(problems: Sequence[Problem]) -> str:
    """One line: the first of `problems`, and the keys of the others."""
    first, *others = problems
    keys = list(dict.fromkeys(problem.key for problem in others if problem.key != first.key))
    if not keys:
        return first.line
    named = ", ".join(keys[:5]) + (", …" if len(keys) > 5 else "")  # noqa: PLR2004 (as many as a line bears)
    return f"{first.line} (and {len(keys)} more: {named})"


def dotted(path: Sequence[object]) -> str:
    return ".".join(_word(part) for part in path)


def variable(path: Sequence[object]) -> str:
    """The environment variable that sets the key at `path`."""
    return "__".join(["APP", *(_word(part).upper() for part in path)])


def _word(part: object) -> str:
    text = str(part)
    return text if PRESENTABLE.fullmatch(text) or text == "<id>" else "…"
