"""Which values of a configuration file are secrets, told by their keys."""

from __future__ import annotations

import re

from services.secret_names import is_secret

Path = tuple[str, ...]
"""`("services", "db", "ports", "[0]")`: an index in brackets is that of a list."""

_CALLED = re.compile(r"(?P<name>[^()]*)\((?P<called>[^()]*)\)?")
_JUST_VALUES = frozenset({"value", "default", "plain", "raw"})
"""Names that say nothing of what they hold: the name above them does."""


def names_secret(path: Path, value: str) -> bool:
    """Whether the names in `path` say that `value` is secret, or leave it open and it looks like one."""
    names = [part for part in reversed(path) if not part.startswith("[")][:2]
    if len(names) > 1 and names[0].lower() not in _JUST_VALUES:
        names.pop()
    return any(is_secret(form, value) for name in names for form in _forms(name))


def _forms(name: str) -> tuple[str, ...]:
    """Of an element `property(db.password)`, what it is and what it is called."""
    found = _CALLED.fullmatch(name)
    return (name,) if found is None else (found["name"], found["called"])
