"""Which keys of a configuration file say that their value is a secret."""

from __future__ import annotations

import re

Path = tuple[str, ...]
"""`("services", "db", "ports", "[0]")`: an index in brackets is that of a list."""

_SECRET = re.compile(
    r"(?:pass(?:word|wd|phrase)|pwd|credential|secret|token|connection[._ -]?string"
    r"|(?:api|access|private|secret|account|signing|encryption|shared|license|client|master|session)[._ -]?key)"
    r"(?:[._ -]?(?:value|base64|b64|hash))?$",
    re.IGNORECASE,
)
_SECRETS = re.compile(
    r"passwords|passwds|credentials|(?:api|access|secret)[._-]?keys|(?:auth|access)[._-]?tokens", re.IGNORECASE
)
_PERHAPS_SECRETS = re.compile(r"(?:secrets|tokens)$", re.IGNORECASE)
_COUNTED = re.compile(r"max|min|num|total|limit|count", re.IGNORECASE)
_RANDOM = re.compile(r"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])[\w+=.-]+")
_RANDOM_CHARS = 16


def names_secret(path: Path, value: str) -> bool:
    """Whether the last name in `path` says so, or leaves it open and `value` looks like one."""
    name = next((part for part in reversed(path) if not part.startswith("[")), "")
    if _COUNTED.match(name):
        return False
    if _SECRETS.fullmatch(name):
        return True
    if _PERHAPS_SECRETS.search(name):  # of a list of secrets or tokens, it may be their names
        return len(value) >= _RANDOM_CHARS and _RANDOM.fullmatch(value) is not None
    return bool(path) and not path[-1].startswith("[") and _SECRET.search(name) is not None
