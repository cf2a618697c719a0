"""Which names say that what is given to them is a secret: one notion for keys in every format and in plain text."""

from __future__ import annotations

import re

_KEYS = "api|access|private|secret|account|signing|encryption|shared|license|client|master|session"
_OF = "[._ -]?"

NAMES = (
    rf"(?:(?i:(?:pass(?:word|wd|phrase)|pwd|credential|secret|token|connection{_OF}string|(?:{_KEYS}){_OF}key)"
    rf"(?:{_OF}(?:value|base64|b64|hash))?"
    rf"|passwords|passwds|credentials|(?:api|access|secret){_OF}keys|(?:auth|access){_OF}tokens)"
    r"|(?:(?<![A-Za-z])(?i:pass)|(?<=[a-z])Pass))"
)
"""What such a name ends with: `DB_PASSWORD`, `secretKey`, `db.pass`; none of its groups is captured."""

_SECRET = re.compile(rf"{NAMES}$")
_PERHAPS_SECRETS = re.compile(r"(?:secrets|tokens)$", re.IGNORECASE)
_NO_PASS = re.compile(
    r"(?:proxy|fastcgi|uwsgi|scgi|grpc|memcached|low|high|band|all|first|second|last|multi|single|one|two|num|test|by)"
    r"[._ -]?pass$",
    re.IGNORECASE,
)
_COUNTED = re.compile(r"(?i:max|min|num|total|limit|count)(?i:imum|ber)?(?:[._ -]|(?=[A-Z][a-z]))")
_PARSED = re.compile(
    r"(?:^|[^a-z])(?:unexpected|invalid|illegal|unknown|unrecogni[sz]ed|missing|expected|bad|wrong|unmatched|stray"
    r"|unterminated|reserved|next|current|previous|first|last)[ _]token$",
    re.IGNORECASE,
)
_SWITCHES = frozenset({"", "true", "false", "yes", "no", "on", "off", "none", "null", "~", "include", "omit"})
_PERHAPS_NAMES = re.compile(r"(?:^|\s)(?:pass|credentials)$", re.IGNORECASE)
_DESCRIBES = re.compile(
    r"(?:secret[._ -]?name|type|kind|format|title|description|enabled|required|optional"
    r"|(?:default)?[._ -]?mode|algorithm|count"
    r"|(?:min|max)[\w.-]*|[\w.-]*(?:length|ttl|lifetime|expir[a-z]*(?:[._ -]?(?:in|at|on))?|rotation[\w.-]*))",
    re.IGNORECASE,
)
_FILE = re.compile(
    r"(?:file:|[A-Za-z]:[\\/]|~?\.{0,2}/)?(?:[\w.@-]+[\\/])*[\w@-][\w.@-]*"
    r"\.(?:pem|key|crt|cer|p12|pfx|jks|jwk|gpg|asc|pub|json|txt|ya?ml|env|conf)"
    r"|(?:/(?:etc|run|var|home|usr|opt|mnt|root|secrets|vault)/)[\w./@-]+"
)
_RANDOM = re.compile(r"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])[\w+=.-]+")
_RANDOM_CHARS = 16
_PERHAPS_RANDOM_CHARS = 8
_LONG_WORD_CHARS = 20


def names_secret(name: str) -> bool:
    """Whether `name` says that its value is secret, whatever that is."""
    return _SECRET.search(name) is not None and not _NO_PASS.search(name)


def perhaps_names_secret(name: str) -> bool:
    """Whether `name` is all of `pass` or `credentials`, or ends with that word: counts and steps are called so too."""
    return _PERHAPS_NAMES.search(name) is not None


def names_many(name: str) -> bool:
    """Whether it is a list of secrets, or of what they are called."""
    return _PERHAPS_SECRETS.search(name) is not None and not names_secret(name)


def describes(name: str) -> bool:
    """Whether something of this name, said of a secret, tells about it instead of giving it away."""
    return _DESCRIBES.fullmatch(name) is not None and not names_secret(name)


def is_secret(name: str, value: str) -> bool:
    """Whether `value` is a secret: `name` says so and it is not one of the values that such names have besides, or
    `name` leaves it open and `value` looks like one.
    """
    if names_many(name):  # it may be what they are called
        return looks_random(value, _RANDOM_CHARS)
    if not names_secret(name) or value.lower() in _SWITCHES or _FILE.fullmatch(value):
        return False
    if value.isdecimal() and _COUNTED.match(name):
        return False
    # Of the reader of a language: what it stumbled upon.
    return not _PARSED.search(name) or looks_random(value, _PERHAPS_RANDOM_CHARS)


def looks_random(value: str, chars: int) -> bool:
    """Whether `value`, of at least as many `chars`, is none that people would have chosen as a name."""
    if len(value) >= chars and _RANDOM.fullmatch(value):
        return True
    mixed = not value.islower() and not value.isupper()
    return len(value) >= _LONG_WORD_CHARS and value.isascii() and value.isalnum() and mixed
