"""Names of keys that mark their value as a secret, in every format and in plain text; and values that are none."""

from __future__ import annotations

import re

Path = tuple[str, ...]
"""The keys that lead to a value: `("services", "db", "ports", "[0]")`. An index of a list is in brackets."""

_KEYS = "api|access|private|secret|account|signing|encryption|shared|license|client|master|session"
_OF = "[._ -]?"
NAMES = (
    rf"(?:(?i:(?:pass(?:word|wd|phrase)|pwd|credential|secret|token|connection{_OF}string|(?:{_KEYS}){_OF}key)"
    rf"(?:{_OF}(?:value|base64|b64|hash))?"
    rf"|passwords|passwds|credentials|(?:api|access|secret){_OF}keys|(?:auth|access){_OF}tokens)"
    r"|(?:(?<![A-Za-z])(?i:pass)|(?<=[a-z])Pass))"
)
"""The end of such a name: `DB_PASSWORD`, `secretKey`, `db.pass`. It has no capturing groups."""
PLACEHOLDER = (
    r"(?:<[^<>\n]{0,60}>|\$\{|\{\{|\[redacted: "
    r"|(?:\$[A-Z_]++|\*++|(?i:null|none|true|false|replace_me))(?![^\s,;)\]}\"'`]))"
)
"""What documentation writes in the place of a value: hiding it would spoil answers."""

is_placeholder = re.compile(PLACEHOLDER).match
is_count = re.compile(
    r"[+-]?(?:[0-9]{1,4}|[0-9]{1,3}(?:,[0-9]{3}){1,3})(?:[./][0-9]{1,4})?(?:%|(?:ns|[uµm]?s|min|h|x|[kKMGT]?i?B)(?!\w))?"
    # Nothing more, or the next name, as in `12,failed=3`.
    r"[.,;:!?)\]}]{0,20}(?:$|(?<=[,;])[A-Za-z_]{1,40}[=:])"
).match
"""`12,`, `1,204`, `98.5%`: at most four digits in a row."""
is_number = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?[,}\]]*").fullmatch
is_word = re.compile(
    r"(?![^aeiouy]*$)(?![a-z]*[^aeiouy\W_]{5})(?:a|i|[a-z]{2,16})(?:[-_'][a-z]{1,16}){0,2}[.,;:!?)\]}]{0,20}"
).fullmatch
"""In lower case, up to three joined: `granted.`, `dead-code`."""
is_constant = re.compile(r"[A-Z]{2,20}(?:_[A-Z]{2,20}){1,5}").fullmatch
is_ambiguous = re.compile(r"(?:^|\s)(?:pass|credentials)$", re.IGNORECASE).search
"""Of a name: counts and steps are called so as well."""

_secret = re.compile(rf"{NAMES}$").search
_no_pass = re.compile(
    r"(?:proxy|fastcgi|uwsgi|scgi|grpc|memcached|low|high|band|all|first|second|last|multi|single|one|two|num|test|by)"
    r"[._ -]?pass$",
    re.IGNORECASE,
).search
_plural = re.compile(r"(?:secrets|tokens)$", re.IGNORECASE).search
_counted = re.compile(r"(?i:max|min|num|total|limit|count)(?i:imum|ber)?(?:[._ -]|(?=[A-Z][a-z]))").match
_parsed = re.compile(
    r"(?:^|[^a-z])(?:unexpected|invalid|illegal|unknown|unrecogni[sz]ed|missing|expected|bad|wrong|unmatched|stray"
    r"|unterminated|reserved|next|current|previous|first|last)[ _]token$",
    re.IGNORECASE,
).search
_describes = re.compile(
    r"(?:secret[._ -]?name|type|kind|format|title|description|enabled|required|optional"
    r"|(?:default)?[._ -]?mode|algorithm|count"
    r"|(?:min|max)[\w.-]*|[\w.-]*(?:length|ttl|lifetime|expir[a-z]*(?:[._ -]?(?:in|at|on))?|rotation[\w.-]*))",
    re.IGNORECASE,
).fullmatch
_NAMELESS = frozenset({"value", "default", "plain", "raw"})
"""Keys that do not say what they hold: the key above them does."""
_element = re.compile(r"([^()]*)\(([^()]*)\)?").fullmatch
_SWITCHES = frozenset({"", "true", "false", "yes", "no", "on", "off", "none", "null", "~", "include", "omit"})
_file = re.compile(
    r"(?:file:|[A-Za-z]:[\\/]|~?\.{0,2}/)?(?:[\w.@-]+[\\/])*[\w@-][\w.@-]*"
    r"\.(?:pem|key|crt|cer|p12|pfx|jks|jwk|gpg|asc|pub|json|txt|ya?ml|env|conf)"
    r"|(?:/(?:etc|run|var|home|usr|opt|mnt|root|secrets|vault)/)[\w./@-]+"
).fullmatch
_random = re.compile(r"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])[\w+=.-]+").fullmatch
_LONG_WORD_CHARS = 20
_LONGEST_NAME = 200


def names_secret(name: str) -> bool:
    return bool(_secret(name)) and not _no_pass(name)


def names_many(name: str) -> bool:
    """True if `name` is that of a list of secrets, or of a list of their names."""
    return bool(_plural(name)) and not names_secret(name)


def describes(name: str) -> bool:
    """True if a value with this name describes a secret and is none itself, like `ttl`."""
    return len(name) <= _LONGEST_NAME and bool(_describes(name)) and not names_secret(name)


def is_secret(name: str, value: str) -> bool:
    """True if `name` marks `value` as a secret, and `value` is not an ordinary one for such a name."""
    if names_many(name):
        return _looks_random(value, 16)
    ordinary = value.lower() in _SWITCHES or _file(value) or (value.isdecimal() and _counted(name))
    # The token that a parser reports is part of its input.
    return names_secret(name) and not ordinary and (not _parsed(name) or _looks_random(value, 8))


def leads_to_secret(path: Path, value: str) -> bool:
    """True if a key in `path` marks `value` as a secret. Everything below such a key is one, except descriptions."""
    names = [part for part in reversed(path) if not part.startswith("[")]
    near = 2 if names and names[0].lower() in _NAMELESS else 1
    forms = [form for name in names[:near] for form in _forms(name)]
    if names and not describes(names[0]):
        forms += [form for name in names[near:] for form in _forms(name) if names_secret(form) and form != value]
    return any(is_secret(form, value) and not (is_ambiguous(form) and is_number(value)) for form in forms)


def _forms(name: str) -> tuple[str, ...]:
    """Return both names in an element like `property(db.password)`."""
    found = _element(name)
    return found.groups() if found else (name,)


def _looks_random(value: str, chars: int) -> bool:
    """True if `value` has at least `chars` characters and looks generated, not chosen as a name."""
    mixed = value.isascii() and value.isalnum() and not value.islower() and not value.isupper()
    return (len(value) >= chars and bool(_random(value))) or (len(value) >= _LONG_WORD_CHARS and mixed)
