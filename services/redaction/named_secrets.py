"""Finds secrets that follow their names in plain text, code and configuration."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from services import lazy_pattern

# Names, and values that are none

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
"""The end of a name that marks a secret: `DB_PASSWORD`, `secretKey`, `db.pass`. It has no capturing groups."""
PLACEHOLDER = (
    r"(?:<[^<>\n]{0,60}>|\$\{|\{\{|\[redacted: "
    r"|(?:\$[A-Z_]++|\*++|(?i:null|none|true|false|replace_me))(?![^\s,;)\]}\"'`]))"
)
"""Written in the place of a value, in documentation: hiding it would spoil answers."""

is_placeholder = lazy_pattern(PLACEHOLDER).match
is_count = lazy_pattern(
    r"[+-]?(?:[0-9]{1,4}|[0-9]{1,3}(?:,[0-9]{3}){1,3})(?:[./][0-9]{1,4})?(?:%|(?:ns|[uµm]?s|min|h|x|[kKMGT]?i?B)(?!\w))?"
    # Nothing more, or the next name, as in `12,failed=3`.
    r"[.,;:!?)\]}]{0,20}(?:$|(?<=[,;])[A-Za-z_]{1,40}[=:])"
).match
"""`12,`, `1,204`, `98.5%`: at most four digits in a row."""
is_number = lazy_pattern(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?[,}\]]*").fullmatch
is_word = lazy_pattern(
    r"(?![^aeiouy]*$)(?![a-z]*[^aeiouy\W_]{5})(?:a|i|[a-z]{2,16})(?:[-_'][a-z]{1,16}){0,2}[.,;:!?)\]}]{0,20}"
).fullmatch
"""In lower case, up to three joined: `granted.`, `dead-code`."""
is_constant = lazy_pattern(r"[A-Z]{2,20}(?:_[A-Z]{2,20}){1,5}").fullmatch
is_ambiguous = lazy_pattern(r"(?:^|\s)(?:pass|credentials)$", re.IGNORECASE).search
"""Counts and steps have such names as well."""

_ends_with_secret = lazy_pattern(rf"{NAMES}$").search
_is_other_pass = lazy_pattern(
    r"(?:proxy|fastcgi|uwsgi|scgi|grpc|memcached|low|high|band|all|first|second|last|multi|single|one|two|num|test|by)"
    r"[._ -]?pass$",
    re.IGNORECASE,
).search
_is_plural = lazy_pattern(r"(?:secrets|tokens)$", re.IGNORECASE).search
_begins_with_count = lazy_pattern(r"(?i:max|min|num|total|limit|count)(?i:imum|ber)?(?:[._ -]|(?=[A-Z][a-z]))").match
_is_parser_token = lazy_pattern(
    r"(?:^|[^a-z])(?:unexpected|invalid|illegal|unknown|unrecogni[sz]ed|missing|expected|bad|wrong|unmatched|stray"
    r"|unterminated|reserved|next|current|previous|first|last)[ _]token$",
    re.IGNORECASE,
).search
_is_description = lazy_pattern(
    r"(?:secret[._ -]?name|type|kind|format|title|description|enabled|required|optional"
    r"|(?:default)?[._ -]?mode|algorithm|count"
    r"|(?:min|max)[\w.-]*|[\w.-]*(?:length|ttl|lifetime|expir[a-z]*(?:[._ -]?(?:in|at|on))?|rotation[\w.-]*))",
    re.IGNORECASE,
).fullmatch
_NEUTRAL_NAMES = frozenset({"value", "default", "plain", "raw"})
"""Keys whose values are named by the key above."""
_split_element = lazy_pattern(r"([^()]*)\(([^()]*)\)?").fullmatch
_SWITCH_VALUES = frozenset({"", "true", "false", "yes", "no", "on", "off", "none", "null", "~", "include", "omit"})
_is_file = lazy_pattern(
    r"(?:file:|[A-Za-z]:[\\/]|~?\.{0,2}/)?(?:[\w.@-]+[\\/])*[\w@-][\w.@-]*"
    r"\.(?:pem|key|crt|cer|p12|pfx|jks|jwk|gpg|asc|pub|json|txt|ya?ml|env|conf)"
    r"|(?:/(?:etc|run|var|home|usr|opt|mnt|root|secrets|vault)/)[\w./@-]+"
).fullmatch
_has_letters_and_digits = lazy_pattern(r"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])[\w+=.-]+").fullmatch
_LONG_WORD_CHARS = 20
_MAX_NAME_CHARS = 200


def names_secret(name: str) -> bool:
    return bool(_ends_with_secret(name)) and not _is_other_pass(name)


def names_many(name: str) -> bool:
    """Return True for the name of a list of secrets, or of a list of their names."""
    return bool(_is_plural(name)) and not names_secret(name)


def describes_secret(name: str) -> bool:
    """Return True if a value with this name describes a secret and is none itself, like `ttl`."""
    return len(name) <= _MAX_NAME_CHARS and bool(_is_description(name)) and not names_secret(name)


def is_secret(name: str, value: str) -> bool:
    """Return True if `name` marks `value` as a secret, and `value` is not an ordinary one for such a name."""
    if names_many(name):
        return _looks_random(value, 16)
    ordinary = value.lower() in _SWITCH_VALUES or _is_file(value) or (value.isdecimal() and _begins_with_count(name))
    # The token that a parser reports is part of its input.
    return names_secret(name) and not ordinary and (not _is_parser_token(name) or _looks_random(value, 8))


def leads_to_secret(path: Path, value: str) -> bool:
    """Return True if a key in `path` marks `value` as a secret: everything below such a key, but descriptions."""
    names = [part for part in reversed(path) if not part.startswith("[")]
    near = 2 if names and names[0].lower() in _NEUTRAL_NAMES else 1
    forms = [form for name in names[:near] for form in _names_in(name)]
    if names and not describes_secret(names[0]):
        forms += [form for name in names[near:] for form in _names_in(name) if names_secret(form) and form != value]
    return any(is_secret(form, value) and not (is_ambiguous(form) and is_number(value)) for form in forms)


def _names_in(name: str) -> tuple[str, ...]:
    """Return both names in an element like `property(db.password)`."""
    found = _split_element(name)
    return found.groups() if found else (name,)


def _looks_random(value: str, chars: int) -> bool:
    """Return True if `value` has at least `chars` characters and looks generated, not chosen as a name."""
    mixed = value.isascii() and value.isalnum() and not value.islower() and not value.isupper()
    return (len(value) >= chars and bool(_has_letters_and_digits(value))) or (len(value) >= _LONG_WORD_CHARS and mixed)


# Long runs of alternatives

PIECES = 500
"""Repetitions in one match of a run's pattern."""


def compile_run(pieces: str) -> re.Pattern[str]:
    """Compile a pattern that matches at most `PIECES` repetitions of `pieces`, without backtracking; for `end_of_run`.

    The number is bounded because `re` keeps some hundred bytes for each piece that it has matched, even where it cannot
    backtrack. `end_of_run` matches again from the end of a match.
    """
    return lazy_pattern(rf"(?>(?:{pieces}){{0,{PIECES}}})")


def end_of_run(run: re.Pattern[str], text: str, at: int) -> int:
    """Return where the repetition that begins at `at` ends; `at` itself if there is none."""
    while (found := run.match(text, at)) and found.end() > at:
        at = found.end()
    return at


# Secrets behind their names

BREAK_CHARS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
"""The characters at which `str.splitlines` breaks lines."""
Span = tuple[int, int]

_SIGN = (
    r"(?P<close>\\?[\"'`]\]?)?[ \t]{0,20}"
    # Perhaps with a type between name and value.
    r"(?P<sign>(?::[ \t]{0,9}&?(?:'static[ \t])?|(?<=[ \t]))(?:(?:typing\.)?(?:Optional|Final)\[)?"
    r"(?i:str|string|bytes|SecretStr|Final)\]?(?:[ \t]?\|[ \t]?(?:None|null|undefined))?[ \t]{0,9}=(?!=)"
    r"|===?|=>|:=|[=:])[ \t]{0,20}"
)
# Begins with the last character of a name: signs are rarer than characters that a name could begin with.
_ASSIGNMENT = lazy_pattern(rf"[delnghstyDELNGHSTY4]{_SIGN}")
_NAME = lazy_pattern(rf"(?:{NAMES}|(?i:secrets|tokens))\Z")
_NAME_CHARS = 32
"""More than the longest of `NAMES` has."""
_NEXT_NAME = lazy_pattern(rf"{NAMES}{_SIGN}")
_WORDS_BEFORE = lazy_pattern(r"(?:[A-Za-z]+ )?[\w.-]*$")
_BEFORE_CHARS = 40

# Remarks in front of a name and behind its colon, as in `Wrong password: 3 attempts left`, where no secret follows.
_REMARK = lazy_pattern(
    r"\b(?:wrong|invalid|incorrect|bad|expired|unexpected|access|missing|unknown|illegal|revoked|rejected|refused|denied"
    r"|malformed|mismatched|unsupported|weak|old|stale|outdated|duplicate|empty|blocked|forgotten|failed)"
    r"[ ](?:[a-z]{1,20}[ ])?[a-z]+(?:[ ]key)?$",
    re.IGNORECASE,
)
_STATUS = lazy_pattern(
    r"(?i:[0-9]{1,3}[ \t]{1,3}(?:more[ \t])?"
    r"(?:attempts?|tries|times?|chars?|characters?|failures?|errors?|retries|left)"
    r"|(?:must|too|expired|invalid|missing|required|incorrect|wrong|empty|not|cannot|denied|unset|undefined|disabled"
    r"|enabled|changed|rejected|accepted|mismatch|failed|please|try)(?=[\s.,;!)]|$))"
)

_QUOTE = lazy_pattern(r"(?:[bBrRuUfF]{1,2}|[@$])?(?P<quote>\"{3}|'{3}|\\?[\"'`])")
_UNTIL_QUOTE = {
    **{quote: compile_run(rf"[^\\{quote}{BREAK_CHARS}]++|\\[^{BREAK_CHARS}]") for quote in "\"'`"},
    **{f"\\{quote}": compile_run(rf"[^\\{BREAK_CHARS}]++|\\[^{quote}{BREAK_CHARS}]") for quote in "\"'`"},
}
_MAX_TRIPLE_QUOTED_CHARS = 20_000
_BARE = lazy_pattern(r"[^\s\"'`&]+")
# In a comment or a script.
_BARE_IN_CODE = lazy_pattern(r"(?=[^\s\"'`&]{0,99}[0-9])[\w!@#$%^*+/=~-]{6,200}(?=[\s;,]|$)")
_SCHEME = lazy_pattern(r"(?i:bearer|basic|bot|token)[ \t]{1,20}([\w.~+/=-]{8,})")
_MAX_VALUE_CHARS = 1000
"""The rest of a value is not looked at."""

_OBJECT = lazy_pattern(r"\{[ \t]{0,20}(?:\\?[\"'}]|[\w.-]{1,60}[ \t]{0,9}[:=]|$)", re.MULTILINE)
_VALUE_OF_OBJECT = lazy_pattern(r"\{[ \t]{0,20}\\?[\"']?(?:value|default|plain|raw)\\?[\"']?[ \t]{0,9}[:=][ \t]{0,20}")
_LINK = lazy_pattern(r"\[[^\[\]\n]{0,200}\]\(")
_INNER_PART = lazy_pattern(
    r"(?P<label>\[redacted: [a-z ]{1,20}\])|(?P<open>[{\[])|(?P<shut>[}\]])|(?P<comma>,)|(?P<space>[ \t]+)"
    rf"|(?P<quote>\\?[\"'`])|(?P<bare>[^\s,{{}}\[\]\"'`\\]+)|(?P<other>[^{BREAK_CHARS}])|(?P<line>\s)"
)
_LIST_PARTS = ("quote", "comma", "space", "line")
_INNER_NAME = lazy_pattern(r"([\w.-]{1,60})[ \t]{0,9}(?:=>|[:=])")
_INNER_SIGN = lazy_pattern(r"[ \t]{0,9}(?:=>|[:=])")


class _Value(NamedTuple):
    """`name`: the key of the value if it is inside an object, else empty."""

    start: int
    end: int
    quoted: bool
    name: str = ""


class _Named(NamedTuple):
    """A name in the text, and how a value is assigned to it."""

    name: str
    before: str
    sign: str
    quoted: bool

    def makes_secret(self, value: str, *, quoted: bool, inner: str, code: bool) -> bool:
        """Return True if `value` is a secret. `inner`: its own name, if it is in an object."""
        if not value or is_placeholder(value) or describes_secret(inner):
            return False
        readable = any(map(str.isalnum, value))
        if self.quoted and names_many(self.name):
            return readable and not (is_word(value) or is_constant(value) or is_number(value))
        words = _WORDS_BEFORE.search(self.before)
        whole = f"{words[0] if words else ''}{self.name}"
        if not is_secret(whole, value) or (not quoted and self._is_remark(whole, value)):
            return False
        if self.name.lower() == "token":
            return readable and not (code and self.sign.startswith("=="))
        return whole != "PASS" or self.sign != ":" or self.quoted  # the result of a test

    def _is_remark(self, whole: str, value: str) -> bool:
        """Return True if an unquoted `value` is a count or a word of a sentence."""
        in_sentence = self.sign == ":" and not self.quoted and bool(is_word(value))
        if not is_ambiguous(whole):
            return in_sentence and bool(_REMARK.search(self.before + self.name))
        return in_sentence or bool(is_count(value)) or (self.quoted and bool(is_number(value)))


def named_secrets(text: str, *, code: bool) -> Iterator[Span]:
    """Yield start and end of each secret that follows a name. With `code`, `token = next(tokens)` is no secret.

    Finds the values in `password=x`, `"token": ["x", "y"]` and `SECRET_KEY = "x"`. The time is linear in the length of
    the text: patterns are bounded or possessive, and no value is read twice.
    """
    scan = _Scan(text, code)
    at = hidden = 0
    while given := _ASSIGNMENT.search(text, at):
        at = given.start() + 1
        name = _NAME.search(text[max(0, at - _NAME_CHARS) : at])
        if name is None:
            continue
        start = at - len(name[0])
        before = text[max(hidden, start - _BEFORE_CHARS) : start]
        named = _Named(name[0], before, given["sign"], given["close"] is not None)
        values, at = scan.values(given.end(), named)
        for first, end, quoted, inner in values:
            value = text[first : min(end, first + _MAX_VALUE_CHARS)]
            if named.makes_secret(value.strip(), quoted=quoted, inner=inner, code=code):
                yield first + len(value) - len(value.lstrip()), end
                hidden, at = end, max(at, end)


class _Scan:
    def __init__(self, text: str, code: bool) -> None:
        self._text, self._code = text, code
        self._bare_end = 0

    def values(self, at: int, named: _Named) -> tuple[list[_Value], int]:
        """Return the values that begin at `at`, and where to search for the next name."""
        text, many = self._text, named.quoted and names_many(named.name)
        if self._code and (inner := _VALUE_OF_OBJECT.match(text, at)):
            at = inner.end()
        char = text[at : at + 1]
        if not char or is_placeholder(text, at) or (many and (self._code or char not in "[{")):
            return [], at
        is_object = _OBJECT.match(text, at) is not None
        if char == "[" or (is_object and not self._code):
            return ([], at) if _LINK.match(text, at) else self._inner_values(at, over_lines=char == "[" and not many)
        if quote := _QUOTE.match(text, at):
            mark = quote["quote"]
            closed = self._end_of_triple_quoted if mark[2:] else self._end_of_quoted
            return [_Value(quote.end(), closed(quote.end(), mark), quoted=True)], at
        return [] if is_object or many or _NEXT_NAME.match(text, at) else self._bare_value(at, named.sign), at

    def _bare_value(self, at: int, sign: str) -> list[_Value]:
        if self._code:
            found = _BARE_IN_CODE.match(self._text, at)
            return [_Value(at, found.end(), quoted=False)] if found else []
        if sign == ":" and _STATUS.match(self._text, at):
            return []
        scheme = _SCHEME.match(self._text, at)
        if scheme and not scheme[1].islower():
            return [_Value(at, scheme.end(), quoted=False)]
        if at >= self._bare_end:  # else it ends where the one before did
            found = _BARE.match(self._text, at)
            self._bare_end = found.end() if found else at
        return [_Value(at, self._bare_end, quoted=False)]

    def _end_of_quoted(self, at: int, quote: str) -> int:
        """Return the end of the quoted text that begins at `at`: its quote, or the end of the line."""
        return end_of_run(_UNTIL_QUOTE[quote], self._text, at)

    def _end_of_triple_quoted(self, at: int, quote: str) -> int:
        """Return the end of a triple-quoted text; of one that was cut off the end of the text, if near."""
        end = self._text.find(quote, at, at + _MAX_TRIPLE_QUOTED_CHARS)
        if end < 0 and len(self._text) <= at + _MAX_TRIPLE_QUOTED_CHARS:
            return len(self._text)
        return end if end >= 0 else self._end_of_quoted(at, quote[0])

    def _inner_values(self, at: int, *, over_lines: bool) -> tuple[list[_Value], int]:
        """Return the values of the object or list that opens at `at`, and its end: at most the end of the line, unless
        it is a list of quoted texts and may go `over_lines`.
        """
        found: list[_Value] = []
        depth, name, named, crossed = 1, "", False, False
        at += 1
        while depth and (part := _INNER_PART.match(self._text, at)):
            kind, start, at = part.lastgroup, part.start(), part.end()
            crossed, over_lines = crossed or kind == "line", over_lines and kind in _LIST_PARTS
            if (crossed and not over_lines) or (self._code and part[0] == "{"):
                break
            if kind in ("open", "shut"):
                depth, named = depth + (1 if kind == "open" else -1), False
            elif kind == "comma":
                named = False
            elif kind == "quote":
                end = self._end_of_quoted(at, part[0])
                value, at = _Value(at, end, quoted=True, name=name), end
                if self._text.startswith(part[0], end):
                    at += len(part[0])
                else:
                    over_lines = False
                if not named and (sign := _INNER_SIGN.match(self._text, at)):
                    name, at, named = self._text[value.start : end], sign.end(), True
                else:
                    found.append(value)
            elif kind == "bare" and not named and (key := _INNER_NAME.match(self._text, start)):
                name, at, named = key[1], key.end(), True
            elif kind == "bare" and not self._code:
                found.append(_Value(start, at, quoted=False, name=name))
        return found, at
