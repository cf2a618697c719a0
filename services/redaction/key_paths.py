"""Which values of a configuration file are secrets, told by their keys."""

from __future__ import annotations

import re

from services.redaction.names import describes, is_secret, names_secret, perhaps_names_secret
from services.redaction.values import is_number

Path = tuple[str, ...]
"""`("services", "db", "ports", "[0]")`: an index in brackets is that of a list."""

_CALLED = re.compile(r"(?P<name>[^()]*)\((?P<called>[^()]*)\)?")
_JUST_VALUES = frozenset({"value", "default", "plain", "raw"})
"""Names that say nothing of what they hold: the name above them does."""


def leads_to_secret(path: Path, value: str) -> bool:
    """Whether the names in `path` say that `value` is secret, or leave it open and it looks like one.

    Whatever stands below a name that says so is secret, but for what tells about it.
    """
    names = [part for part in reversed(path) if not part.startswith("[")]
    near = 2 if names and names[0].lower() in _JUST_VALUES else 1
    if any(_is_secret(form, value) for name in names[:near] for form in _forms(name)):
        return True
    above = [form for name in names[near:] for form in _forms(name) if names_secret(form) and form != value]
    return bool(above) and not describes(names[0]) and any(_is_secret(form, value) for form in above)


def _is_secret(name: str, value: str) -> bool:
    return is_secret(name, value) and not (perhaps_names_secret(name) and is_number(value))


def _forms(name: str) -> tuple[str, ...]:
    """Of an element `property(db.password)`, what it is and what it is called."""
    found = _CALLED.fullmatch(name)
    return (name,) if found is None else (found["name"], found["called"])
