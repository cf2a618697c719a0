"""Secrets in plain text that stand behind a name: `password=x`, `"token": ["x", "y"]`, `SECRET_KEY = "x"`.

A text is gone through once, from name to name, and what stands behind one is judged by itself: time stays in
proportion to the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from services.secret_labels import BREAK_CHARS, is_placeholder, labelled
from services.secret_names import NAMES, is_secret

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
_NAME = re.compile(rf"{NAMES}\Z")
_NAME_CHARS = 32
"""More than the longest has."""
_NAMED = re.compile(rf"{NAMES}{_SIGN}")

_BEFORE_CHARS = 40
_WORDS_BEFORE = re.compile(r"(?:[A-Za-z]+ )?[\w.-]*$")

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
_FEW_DIGITS = re.compile(r"[0-9]{1,4}(?![^\s,;)\]}])")


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
        at = 0
        while given := _GIVEN.search(text, at):
            behind = given.start() + 1
            name = _NAME.search(text[max(0, behind - _NAME_CHARS) : behind])
            at = behind if name is None else given.end()
            for start, end in () if name is None else self._values(text, name[0], given):
                yield start, end
                at = end

    def _values(self, text: str, name: str, given: re.Match[str]) -> Iterator[Span]:
        at = given.end()
        if inner := _VALUE_OF_OBJECT.match(text, at):
            at = inner.end()
        whole = _whole(text, name, given.start() + 1)
        if is_placeholder(text, at) or at >= len(text):
            return
        if triple := _TRIPLE.match(text, at):
            spans = [triple.span("value")]
        elif quote := _QUOTE.match(text, at):
            found = _TO_QUOTE.match(text, quote.start("quote"))
            spans = [] if found is None else [found.span("value")]
        elif text[at] == "[":
            spans = self._items(text, at)
        elif _OBJECT.match(text, at) or _NAMED.match(text, at):
            return
        else:
            spans = self._bare(text, at, given["sign"])
        for start, end in spans:
            value = text[start:end].lstrip()
            if value and not is_placeholder(value) and self._meant(whole, name, value, given):
                yield end - len(value), end

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

    def _meant(self, whole: str, name: str, value: str, given: re.Match[str]) -> bool:
        if not is_secret(whole, value):
            return False
        is_token = name.lower() == "token"
        if given["sign"].startswith("==") and self.code and is_token:
            return False  # a parser's
        if whole.lower() == "pass" and not given["close"] and _counts_passes(whole, value, given["sign"]):
            return False
        return not is_token or any(char.isalnum() for char in value)


def _counts_passes(name: str, value: str, sign: str) -> bool:
    """Whether it is said of tests that they passed."""
    return _FEW_DIGITS.fullmatch(value) is not None or (name.isupper() and sign == ":")


def _whole(text: str, name: str, end: int) -> str:
    """The whole of the name that ends there with `name`, and the word before it, if one is."""
    start = end - len(name)
    before = _WORDS_BEFORE.search(text[max(0, start - _BEFORE_CHARS) : start])
    return (before[0] if before else "") + name
