"""Finds secrets that follow their names in plain text, code and configuration."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from services import lazy_pattern

# Names, and values that are none

KeyPath = tuple[str, ...]
"""The keys that lead to a value: `("services", "db", "ports", "[0]")`. An index of a list is in brackets."""

_KEYS = "api|access|private|secret|account|signing|encryption|shared|license|client|master|session"
_OF = "[._ -]?"
NAMES = (
    rf"(?:(?i:(?:pass(?:word|wd|phrase)|pwd|credential|secret|token|connection{_OF}string|(?:{_KEYS}){_OF}key)"
    rf"(?:{_OF}(?:value|base64|b64|hash))?"
    rf"|passwords|passwds|credentials|(?:api|access|secret){_OF}keys|(?:auth|access){_OF}tokens"
    rf"|passcode|totp{_OF}(?:seed|key)|(?:recovery|backup)[_-]?codes)"
    r"|(?:(?<![A-Za-z])(?i:pass|psk|pw)|(?<=[a-z])P(?:ass|sk)))"
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
is_ambiguous = lazy_pattern(r"(?:^|\s)(?:pass|pw|credentials)$", re.IGNORECASE).search
"""Names that also stand before counts and steps, as in `pass: 12`."""

_ends_with_secret = lazy_pattern(rf"{NAMES}$").search
_is_harmless_pass = lazy_pattern(
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
    return bool(_ends_with_secret(name)) and not _is_harmless_pass(name)


def may_name_many(name: str) -> bool:
    """Return True for `secrets` and `tokens`, whose values may be secrets or the names of secrets."""
    return bool(_is_plural(name)) and not names_secret(name)


def describes_secret(name: str) -> bool:
    """Return True if a value with this name describes a secret and is none itself, like `ttl`."""
    return len(name) <= _MAX_NAME_CHARS and bool(_is_description(name)) and not names_secret(name)


def is_secret(name: str, value: str) -> bool:
    """Return True if `name` marks `value` as a secret, and `value` is not an ordinary one for such a name."""
    if may_name_many(name):
        return _looks_random(value, 16)
    ordinary = value.lower() in _SWITCH_VALUES or _is_file(value) or (value.isdecimal() and _begins_with_count(name))
    # The token that a parser reports is part of its input.
    return names_secret(name) and not ordinary and (not _is_parser_token(name) or _looks_random(value, 8))


def leads_to_secret(path: KeyPath, value: str) -> bool:
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

MAX_REPEATS = 500
"""The most repetitions in one match; see `compile_run`."""


def compile_run(pieces: str) -> re.Pattern[str]:
    """Compile a pattern for `end_of_run`: at most `MAX_REPEATS` repetitions of `pieces`, without backtracking.

    The number is bounded because `re` keeps some hundred bytes for each piece that it has matched, even where it cannot
    backtrack. `end_of_run` matches again from the end of a match.
    """
    return lazy_pattern(rf"(?>(?:{pieces}){{0,{MAX_REPEATS}}})")


def end_of_run(run: re.Pattern[str], text: str, at: int) -> int:
    """Return where the run that begins at `at` ends, however long it is; `at` itself if there is none."""
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
    r"|===?|=>|:=|[=:]|%3[Dd]|\\{1,2}u003[Dd])[ \t]{0,20}"
)
# A search for signs, which are rare; `_NAME` then reads backwards. Only the characters that a name can end with are
# tried before a sign (the 4 is of `b64`).
_ASSIGNMENT = lazy_pattern(rf"[delnghkstwyDELNGHKSTWY4]{_SIGN}")
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
"""Only so much of a value is looked at to tell whether it is a secret."""

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
    """Where a value is in the text. `key`: its key if it is inside an object, else empty."""

    start: int
    end: int
    quoted: bool
    key: str = ""


class _Assignment(NamedTuple):
    """A name in the text, and how a value is assigned to it. `before`: the text in front of the name."""

    name: str
    before: str
    sign: str
    name_is_quoted: bool

    def makes_secret(self, value: str, *, quoted: bool, key: str, code: bool) -> bool:
        """Return True if `value` is a secret. `quoted`: it is in quotes; `key`: its key, if it is in an object."""
        if not value or is_placeholder(value) or describes_secret(key):
            return False
        readable = any(map(str.isalnum, value))
        if self.name_is_quoted and may_name_many(self.name):
            return readable and not (is_word(value) or is_constant(value) or is_number(value))
        words = _WORDS_BEFORE.search(self.before)
        whole = f"{words[0] if words else ''}{self.name}"
        if not is_secret(whole, value) or (not quoted and self._is_remark(whole, value)):
            return False
        if self.name.lower() == "token":
            return readable and not (code and self.sign.startswith("=="))
        return whole != "PASS" or self.sign != ":" or self.name_is_quoted  # the result of a test

    def _is_remark(self, whole: str, value: str) -> bool:
        """Return True if an unquoted `value` is a count or a word of a sentence."""
        in_sentence = self.sign == ":" and not self.name_is_quoted and bool(is_word(value))
        if not is_ambiguous(whole):
            return in_sentence and bool(_REMARK.search(self.before + self.name))
        return in_sentence or bool(is_count(value)) or (self.name_is_quoted and bool(is_number(value)))


def named_secrets(text: str, *, code: bool) -> Iterator[Span]:
    """Yield start and end of each secret that follows a name. `code`: the text is program code, so that the value in
    `token = next(tokens)` is no secret.

    Finds the values in `password=x`, `"token": ["x", "y"]` and `SECRET_KEY = "x"`. The time is linear in the length of
    the text: patterns are bounded or possessive, and no value is read twice.
    """
    reader = _ValueReader(text, code)
    at = hidden = 0
    while match := _ASSIGNMENT.search(text, at):
        at = match.start() + 1
        name = _NAME.search(text[max(0, at - _NAME_CHARS) : at])
        if name is None:
            continue
        start = at - len(name[0])
        before = text[max(hidden, start - _BEFORE_CHARS) : start]
        assignment = _Assignment(name[0], before, match["sign"], match["close"] is not None)
        values, at = reader.values(match.end(), assignment)
        for first, end, quoted, key in values:
            value = text[first : min(end, first + _MAX_VALUE_CHARS)]
            if assignment.makes_secret(value.strip(), quoted=quoted, key=key, code=code):
                yield first + len(value) - len(value.lstrip()), end
                hidden, at = end, max(at, end)


class _ValueReader:
    """Reads the values behind the names of one text, from its begin to its end."""

    def __init__(self, text: str, code: bool) -> None:
        self._text, self._code = text, code
        self._bare_end = 0

    def values(self, at: int, assignment: _Assignment) -> tuple[list[_Value], int]:
        """Return the values that begin at `at`, and where to search for the next name."""
        text, many = self._text, assignment.name_is_quoted and may_name_many(assignment.name)
        if self._code and (inner := _VALUE_OF_OBJECT.match(text, at)):
            at = inner.end()
        char = text[at : at + 1]
        if not char or is_placeholder(text, at) or (many and (self._code or char not in "[{")):
            return [], at
        is_object = _OBJECT.match(text, at) is not None
        if char == "[" or (is_object and not self._code):
            if _LINK.match(text, at):
                return [], at
            inside = _InnerReader(text, at + 1, code=self._code, over_lines=char == "[" and not many)
            return inside.values, inside.at
        if quote := _QUOTE.match(text, at):
            mark = quote["quote"]
            end_of = _end_of_triple_quoted if mark[2:] else _end_of_quoted
            return [_Value(quote.end(), end_of(text, quote.end(), mark), quoted=True)], at
        return [] if is_object or many or _NEXT_NAME.match(text, at) else self._bare_value(at, assignment.sign), at

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


def _end_of_quoted(text: str, at: int, quote: str) -> int:
    """Return the end of the quoted text that begins at `at`: its quote, or the end of the line."""
    return end_of_run(_UNTIL_QUOTE[quote], text, at)


def _end_of_triple_quoted(text: str, at: int, quote: str) -> int:
    """Return the end of a triple-quoted text; of one that was cut off the end of the text, if near."""
    end = text.find(quote, at, at + _MAX_TRIPLE_QUOTED_CHARS)
    if end < 0 and len(text) <= at + _MAX_TRIPLE_QUOTED_CHARS:
        return len(text)
    return end if end >= 0 else _end_of_quoted(text, at, quote[0])


class _InnerReader:
    """Reads the object or list whose bracket opens before `at`, token by token: to its end, or the end of the line. A
    list of quoted texts may go `over_lines`.

    Attributes:
        values: what was read, each with the last key before it.
        at: where the reading ended.
    """

    def __init__(self, text: str, at: int, *, code: bool, over_lines: bool) -> None:
        self._text, self._code, self._over_lines = text, code, over_lines
        self._depth, self._crossed_line = 1, False
        self._key, self._awaits_value = "", False  # after a key comes its value, not the next key
        self.values: list[_Value] = []
        self.at = at
        self._read()

    def _read(self) -> None:
        while self._depth and (token := _INNER_PART.match(self._text, self.at)):
            kind, self.at = token.lastgroup, token.end()
            self._crossed_line = self._crossed_line or kind == "line"
            self._over_lines = self._over_lines and kind in _LIST_PARTS
            if (self._crossed_line and not self._over_lines) or (self._code and token[0] == "{"):
                return
            if kind in ("open", "shut", "comma"):
                self._depth += {"open": 1, "shut": -1, "comma": 0}[kind]
                self._awaits_value = False
            elif kind == "quote":
                self._read_quoted(token[0])
            elif kind == "bare":
                self._read_bare(token.start())

    def _read_quoted(self, quote: str) -> None:
        """Read a quoted key or value, whose opening quote was read."""
        start, end = self.at, _end_of_quoted(self._text, self.at, quote)
        is_closed = self._text.startswith(quote, end)
        self.at = end + len(quote) if is_closed else end
        self._over_lines = self._over_lines and is_closed
        if not self._awaits_value and (sign := _INNER_SIGN.match(self._text, self.at)):
            self._key, self.at, self._awaits_value = self._text[start:end], sign.end(), True
        else:
            self.values.append(_Value(start, end, quoted=True, key=self._key))

    def _read_bare(self, start: int) -> None:
        """Read a key or value without quotes, which begins at `start`."""
        if not self._awaits_value and (key := _INNER_NAME.match(self._text, start)):
            self._key, self.at, self._awaits_value = key[1], key.end(), True
        elif not self._code:
            self.values.append(_Value(start, self.at, quoted=False, key=self._key))
