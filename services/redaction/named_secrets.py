"""Secrets in plain text that stand behind a name: `password=x`, `"token": ["x", "y"]`, `SECRET_KEY = "x"`.

A text is gone through once, from name to name, and what stands behind one is judged by itself: time stays in
proportion to the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from services.redaction.labels import BREAK_CHARS, is_placeholder, labelled
from services.redaction.names import NAMES, describes, is_secret, names_many, perhaps_names_secret
from services.redaction.objects import inner_values
from services.redaction.values import is_count, is_name, is_number, is_word

Span = tuple[int, int]

_HINT = re.compile(
    r"(?:pass(?:w(?:or)?d|phrase)?|pwd|credential|secret|token|key|string|value|b(?:ase)?64|hash)s?"
    r"(?:\\?[\"'`]\]?)?[ \t]{0,20}(?:[=:]|string\b)"
)
_MARKERS = ("pass", "pwd", "credential", "secret", "token", "key", "string")

_SIGN = (
    r"(?P<close>\\?[\"'`]\]?)?[ \t]{0,20}"
    r"(?P<sign>(?::[ \t]{0,9}&?(?:'static[ \t])?|(?<=[ \t]))(?:(?:typing\.)?(?:Optional|Final)\[)?"
    r"(?i:str|string|bytes|SecretStr|Final)\]?(?:[ \t]?\|[ \t]?(?:None|null|undefined))?[ \t]{0,9}=(?!=)"
    r"|===?|=>|:=|[=:])"
    r"[ \t]{0,20}"
)
"""What gives a value to a name; between them may stand the name of a type."""

_GIVEN = re.compile(rf"[delnghstyDELNGHSTY4]{_SIGN}")
"""Behind the last character of a name. Signs are rarer than characters that a name could begin with."""
_NAME = re.compile(rf"(?:{NAMES}|(?i:secrets|tokens))\Z")
_NAME_CHARS = 32
"""More than the longest has."""
_NAMED = re.compile(rf"{NAMES}{_SIGN}")

_BEFORE_CHARS = 40
_SAID_CHARS = 80
_WORDS_BEFORE = re.compile(r"(?:[A-Za-z]+ )?[\w.-]*$")

_QUOTES = ('"', "'", "`")
_QUOTE = re.compile(r"(?:[bBrRuUfF]{1,2}|[@$])?(?P<quote>\\?[\"'`])")
_TRIPLE = re.compile(r"(?:[bBrRuUfF]{1,2})?(?P<quote>\"{3}|'{3})(?P<value>[\s\S]{1,20000}?)(?P=quote)")
_ESCAPED = rf"\\[^{BREAK_CHARS}]|[^\\{BREAK_CHARS}]"
_TO_QUOTE = re.compile(rf"(?P<quote>\\?[\"'`])(?P<value>(?>(?:(?!(?P=quote))(?:{_ESCAPED}))*))")
_ITEM = (
    rf"(?:\\?\"(?P<double>(?>(?:(?!\\?\")(?:{_ESCAPED}))*))(?:\\?\")?"
    rf"|\\?'(?P<single>(?>(?:(?!\\?')(?:{_ESCAPED}))*))(?:\\?')?|(?P<bare>[^\s,\[\]{{}}\"'`]++))"
)
_ITEMS = re.compile(_ITEM)
_UNNAMED_ITEM = re.sub(r"\?P<[a-z]+>", "?:", _ITEM)
_NEXT_ITEM = r"(?>(?:[ \t,]|\][ \t]{0,9},[ \t]{0,9}\[){0,40})"
_ROW = re.compile(rf"\[[ \t\[]{{0,20}}(?>(?:{_UNNAMED_ITEM}{_NEXT_ITEM})*)(?:\]\()?")
_QUOTED = rf"(?:\"(?>(?:[^\"\\{BREAK_CHARS}]|\\.)*)\"|'(?>(?:[^'\\{BREAK_CHARS}]|\\.)*)')"
_COLUMN = re.compile(rf"\[\s{{0,99}}(?>(?:{_QUOTED}\s{{0,99}}(?:,\s{{0,99}}|(?=\])))+)\]")

_OBJECT = re.compile(r"\{[ \t]{0,20}(?:\\?[\"'}]|[\w.-]{1,60}[ \t]{0,9}[:=]|$)", re.MULTILINE)
_VALUE_OF_OBJECT = re.compile(r"\{[ \t]{0,20}\\?[\"']?(?:value|default|plain|raw)\\?[\"']?[ \t]{0,9}[:=][ \t]{0,20}")
_BARE = re.compile(r"[^\s\"'`&]+")
_BARE_IN_CODE = re.compile(r"(?=[^\s\"'`&]{0,99}[0-9])[\w!@#$%^*+/=~-]{6,200}(?=[\s;,]|$)")
"""Without quotes it is a value in a comment or a script only when no name looks like it."""
_SCHEME = re.compile(r"(?i:bearer|basic|bot|token)[ \t]{1,20}([\w.~+/=-]{8,})")

_STATUS = re.compile(
    r"(?i:[0-9]{1,3}[ \t]{1,3}(?:more[ \t])?"
    r"(?:attempts?|tries|times?|chars?|characters?|failures?|errors?|retries|left)"
    r"|(?:must|too|expired|invalid|missing|required|incorrect|wrong|empty|not|cannot|denied|unset|undefined|disabled"
    r"|enabled|changed|rejected|accepted|mismatch|failed|please|try)(?=[\s.,;!)]|$))"
)
"""What is said about a secret behind a colon."""
_JUDGED = re.compile(
    r"\b(?:wrong|invalid|incorrect|bad|expired|unexpected|access|missing|unknown|illegal|revoked|rejected|refused|denied"
    r"|malformed|mismatched|unsupported|weak|old|stale|outdated|duplicate|empty|blocked|forgotten|failed)"
    r"[ ](?:[a-z]{1,20}[ ])?[a-z]+(?:[ ]key)?$",
    re.IGNORECASE,
)
"""What is said of a secret before its name, in a sentence."""


class _Given(NamedTuple):
    """A name, and how a value is given to it."""

    whole: str
    name: str
    said: str
    """The name with the words before it that stay."""
    sign: str
    closed: bool
    """Whether the name stands in quotes."""
    end: int

    @property
    def many(self) -> bool:
        """Whether it is a list of secrets, or of what they are called."""
        return self.closed and names_many(self.name)

    def only_sounds_so(self, value: str) -> bool:
        """Whether a `value` without quotes is a count or a word of a sentence."""
        in_sentence = self.sign == ":" and not self.closed and is_word(value)
        if not perhaps_names_secret(self.whole):
            return in_sentence and _JUDGED.search(self.said) is not None
        return in_sentence or is_count(value) or (self.closed and is_number(value))


@dataclass(frozen=True, slots=True)
class NamedSecrets:
    """What stands behind names. In `code`, `token: str` and `token = next(tokens)` are no secrets."""

    label: str
    code: bool = False

    def possible(self, lowered: str) -> bool:
        """Whether a text that is `lowered` in lower case may hold any."""
        for marker in _MARKERS:  # a loop: any() costs as much again
            if marker in lowered:
                return _HINT.search(lowered) is not None
        return False

    def replaced(self, text: str) -> tuple[str, int]:
        """`text` with labels, and how many."""
        parts: list[str] = []
        at = 0
        for start, end in self._spans(text):
            parts += [text[at:start], labelled(text[start:end], self.label)]
            at = end
        return "".join([*parts, text[at:]]), len(parts) // 2

    def _spans(self, text: str) -> Iterator[Span]:
        at = hidden = 0
        while given := _GIVEN.search(text, at):
            behind = given.start() + 1
            name = _NAME.search(text[max(0, behind - _NAME_CHARS) : behind])
            if name is None:
                at = behind
                continue
            said = text[max(hidden, behind - _SAID_CHARS) : behind]
            whole = _whole(text, name[0], behind)
            named = _Given(whole, name[0], said, given["sign"], given["close"] is not None, given.end())
            spans, at = self._values(text, named)
            if spans:
                hidden = spans[-1][1]
                yield from spans

    def _values(self, text: str, given: _Given) -> tuple[list[Span], int]:
        """What is secret of what is given there, and where to go on."""
        at = given.end
        if is_placeholder(text, at) or at >= len(text):
            return [], at
        if not self.code and ((given.many and text[at] == "[") or _opens(text, at)):
            return self._inner(text, at, given)
        if given.many:
            return [], at
        if inner := _VALUE_OF_OBJECT.match(text, at):
            at = inner.end()
            if is_placeholder(text, at) or at >= len(text):
                return [], at
        spans = [
            (end - len(value), end)
            for start, end in self._candidates(text, at, given.sign)
            if self._meant(given, value := text[start:end].lstrip(), text[start - 1])
        ]
        return spans, max(given.end, spans[-1][1] if spans else 0)

    def _inner(self, text: str, at: int, given: _Given) -> tuple[list[Span], int]:
        found, end = inner_values(text, at)
        return [
            (value.start, value.end)
            for value in found
            if self._meant(given, text[value.start : value.end].strip(), text[value.start - 1], value.name)
        ], max(end, given.end)

    def _candidates(self, text: str, at: int, sign: str) -> list[Span]:
        if triple := _TRIPLE.match(text, at):
            return [triple.span("value")]
        if quote := _QUOTE.match(text, at):
            found = _TO_QUOTE.match(text, quote.start("quote"))
            return [] if found is None else [found.span("value")]
        if text[at] == "[":
            return self._items(text, at)
        if _OBJECT.match(text, at) or _NAMED.match(text, at):
            return []
        return self._bare(text, at, sign)

    def _items(self, text: str, at: int) -> list[Span]:
        row = _COLUMN.match(text, at) or _ROW.match(text, at)
        if row is None or row[0].endswith("]("):
            return []
        found = [
            (item.lastgroup, item.span(item.lastgroup))
            for item in _ITEMS.finditer(text, at + 1, row.end())
            if item.lastgroup is not None
        ]
        return [span for kind, span in found if kind != "bare" or not self.code]

    def _bare(self, text: str, at: int, sign: str) -> list[Span]:
        if self.code:
            found = _BARE_IN_CODE.match(text, at)
        elif sign == ":" and _STATUS.match(text, at):
            return []
        else:
            found = _BARE.match(text, at)
            scheme = _SCHEME.match(text, at)
            if scheme and not scheme[1].islower():
                found = scheme
        return [] if found is None else [found.span()]

    def _meant(self, given: _Given, value: str, before: str, inner: str = "") -> bool:
        """`before`: the character in front of it. `inner`: the name of the value inside of what is given."""
        if not value or is_placeholder(value) or describes(inner):
            return False
        readable = any(char.isalnum() for char in value)
        if given.many:
            return readable and not is_name(value) and not is_number(value)
        if not is_secret(given.whole, value) or (before not in _QUOTES and given.only_sounds_so(value)):
            return False
        of_tests = given.whole == "PASS" and given.sign == ":" and not given.closed
        if given.name.lower() != "token":
            return not of_tests
        of_parser = given.sign.startswith("==") and self.code
        return readable and not of_parser


def _opens(text: str, at: int) -> bool:
    """Whether an object begins there, or a list within one line that is no link."""
    if text[at] != "[":
        return _OBJECT.match(text, at) is not None
    row = _ROW.match(text, at)
    return not (row and row[0].endswith("](")) and not _COLUMN.match(text, at)


def _whole(text: str, name: str, end: int) -> str:
    """The whole of the name that ends there with `name`, and the word before it, if one is."""
    start = end - len(name)
    before = _WORDS_BEFORE.search(text[max(0, start - _BEFORE_CHARS) : start])
    return (before[0] if before else "") + name
