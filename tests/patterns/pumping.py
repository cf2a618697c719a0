"""Makes texts that a pattern nearly matches, from its parse tree: each repeat is pumped, and the end is broken.

A pump is a text in three parts, of which the middle is repeated. Two forms find what backtracks: what precedes a
repeat, then its body again and again; and both together again and again, so that many matches begin and none ends.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any, NamedTuple

_REPEATS = frozenset({"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"})
_parse: Any = import_module("re._parser").parse  # it has no public name since sre_parse is gone
MANY = 10**9
_OFTEN = 1_000
"""What is repeated up to so many times is counted out."""
_BRANCHES = 6
"""So many alternatives are tried by themselves; the others share a pump."""
_BASIC = 'a0 \n-_A."[{<,:=x\\\t/(é\x00~'
"""What stands for all characters."""


class Pump(NamedTuple):
    head: str
    body: str
    tail: str

    def text(self, chars: int) -> str:
        """About so long."""
        return self.head + self.body * max(1, chars // len(self.body)) + self.tail


def pumps(pattern: re.Pattern[str]) -> list[Pump]:
    """Without those that would be the same text."""
    return list(dict.fromkeys(_Pumper(pattern).pumps()))


def ways(pattern: re.Pattern[str]) -> int:
    """In how many ways the parts of a pattern can be combined to a match; `MANY` if one repeats without end."""
    return _ways(_parse(pattern.pattern, pattern.flags & ~re.DEBUG))


def _ways(items: Any) -> int:
    found = 1
    for item in items:
        name, value = str(item[0]), item[1]
        if name in _REPEATS:
            low, high, body = value
            each = _ways(body)
            found *= sum(each**times for times in range(low, high + 1)) if high <= _OFTEN else MANY
        elif name == "BRANCH":
            found *= sum(map(_ways, value[1]))
        elif name == "SUBPATTERN":
            found *= _ways(value[3])
        elif name == "ATOMIC_GROUP":
            found *= _ways(value)
        elif name in ("ASSERT", "ASSERT_NOT"):
            found *= _ways(value[1])
        elif name == "GROUPREF_EXISTS":
            found = MANY
    return min(found, MANY)


class _Pumper:
    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._flags = pattern.flags
        self._tree: Any = _parse(pattern.pattern, pattern.flags & ~re.DEBUG)
        self._groups: dict[int, str] = {}
        classes = [re.compile(text, self._flags & re.IGNORECASE) for text in _classes(self._tree)]
        literals = {char for text in _literals(self._tree) for char in text}
        alphabet = [*_BASIC, *sorted(literals - set(_BASIC))]
        self._matching = {each.pattern: frozenset(filter(each.fullmatch, alphabet)) for each in classes}
        shared = Counter(char for chars in self._matching.values() for char in chars)
        # What many of the classes have in common is what they compete for.
        self._ranked = sorted(alphabet, key=lambda char: (-shared[char], alphabet.index(char)))
        self._breaks = list(dict.fromkeys(["", self._ranked[-1], "\n", "\x00"]))

    def pumps(self) -> Iterator[Pump]:
        for head, body in self._repeats(list(self._tree), ""):
            if not body:
                continue
            for tail in self._breaks:
                yield Pump(head, body, tail)
            if head:
                yield Pump("", head + body, "")
                yield Pump("", head + body * 3, "\n")
                yield Pump("", head + body * 30 + self._breaks[1], "")
        for head in self._heads(list(self._tree)):
            yield Pump("", head, "")
            yield Pump("", head + " ", "")

    def _heads(self, items: list[Any]) -> Iterator[str]:
        """What the pattern begins with: up to each of its parts."""
        text = ""
        for item in items:
            text += self._sample(item)
            if text:
                yield text

    def _repeats(self, items: list[Any], head: str) -> Iterator[tuple[str, str]]:
        """Of each repeat what precedes it, and what it may repeat."""
        for item in items:
            name, value = str(item[0]), item[1]
            if name in _REPEATS:
                low, high, body = value
                if high > 1:
                    yield from ((head, each) for each in self._bodies(list(body)))
                yield from self._repeats(list(body), head)
                head += self._all(list(body)) * min(max(low, 1 if high == 1 else 0), 50)
            elif name == "BRANCH":
                for branch in value[1]:
                    yield from self._repeats(list(branch), head)
                head += self._sample(item)
            elif name == "SUBPATTERN":
                yield from self._repeats(list(value[3]), head)
                head += self._sample(item)
            elif name == "ATOMIC_GROUP":
                yield from self._repeats(list(value), head)
                head += self._sample(item)
            elif name in ("ASSERT", "ASSERT_NOT"):
                if value[0] > 0:
                    yield from self._repeats(list(value[1]), head)
            else:
                head += self._sample(item)

    def _bodies(self, items: list[Any]) -> list[str]:
        """Texts that a body matches: of a class several characters, of alternatives each and all in a row."""
        if len(items) == 1:
            name, value = str(items[0][0]), items[0][1]
            chars = self._chars(items[0])
            if chars:
                return list(dict.fromkeys([*chars[:3], chars[-1]]))
            if name == "SUBPATTERN":
                return self._bodies(list(value[3]))
            if name == "ATOMIC_GROUP":
                return self._bodies(list(value))
            if name == "BRANCH":
                each = [text for branch in value[1] for text in self._bodies(list(branch))[:2] if text]
                return [*each[:_BRANCHES], "".join(each)]
        found = [self._all(items)]
        # The parts that may be left out are, and those that may be repeated are in their shortest and a longer form.
        least = "".join(self._sample(item, least=True) for item in items)
        found.append(least)
        for at, item in enumerate(items):
            if str(item[0]) in _REPEATS:
                inner = self._bodies(list(item[1][2]))
                before, after = self._all(items[:at]), self._all(items[at + 1 :])
                found += [before + text * max(item[1][0], 1) + after for text in inner[:3]]
        return list(dict.fromkeys(text for text in found if text))

    def _all(self, items: Iterable[Any]) -> str:
        return "".join(map(self._sample, items))

    def _sample(self, item: Any, *, least: bool = False) -> str:
        """A text that one part of the pattern matches."""
        name, value, text = str(item[0]), item[1], ""
        if chars := self._chars(item):
            text = chars[0]
        elif name in _REPEATS:
            low, high, body = value
            text = self._all(list(body)) * min(low if least else max(low, min(1, high)), 60)
        elif name == "BRANCH":
            text = next((text for branch in value[1] if (text := self._all(list(branch)))), "")
        elif name == "SUBPATTERN":
            text = self._all(list(value[3]))
            if value[0] is not None:
                self._groups[value[0]] = text
        elif name == "ATOMIC_GROUP":
            text = self._all(list(value))
        elif name == "GROUPREF":
            text = self._groups.get(value, "")
        return text

    def _chars(self, item: Any) -> list[str]:
        """The characters that one part of the pattern matches, those first that others match as well."""
        text = _class(item)
        if text is None:
            return []
        if str(item[0]) == "LITERAL":
            return [chr(item[1])]
        matching = self._matching.get(text, frozenset())
        found = [char for char in self._ranked if char in matching]
        return found or [char for code in range(0x20, 0x3000) if re.fullmatch(text, char := chr(code))][:1]


def _class(item: Any) -> str | None:
    """A pattern of the single characters that `item` stands for."""
    name, value = str(item[0]), item[1]
    if name == "LITERAL":
        return f"[{_escaped(value)}]"
    if name == "NOT_LITERAL":
        return f"[^{_escaped(value)}]"
    if name == "ANY":
        return r"[^\n]"
    if name != "IN":
        return None
    negated = str(value[0][0]) == "NEGATE"
    return f"[{'^' if negated else ''}{''.join(map(_member, value[1:] if negated else value))}]"


def _member(item: Any) -> str:
    name, value = str(item[0]), item[1]
    if name == "LITERAL":
        return _escaped(value)
    if name == "RANGE":
        return f"{_escaped(value[0])}-{_escaped(value[1])}"
    return {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w"}.get(
        str(value).removeprefix("CATEGORY_"),
        {"NOT_DIGIT": r"\D", "NOT_SPACE": r"\S", "NOT_WORD": r"\W"}.get(str(value).removeprefix("CATEGORY_"), ""),
    )


def _escaped(code: int) -> str:
    return f"\\U{code:08x}"


def _walk(tree: Any) -> Iterator[Any]:
    """All parts of a parse tree, those in groups included."""
    for item in tree:
        yield item
        name, value = str(item[0]), item[1]
        if name in _REPEATS:
            yield from _walk(value[2])
        elif name == "BRANCH":
            for branch in value[1]:
                yield from _walk(branch)
        elif name == "SUBPATTERN":
            yield from _walk(value[3])
        elif name == "ATOMIC_GROUP":
            yield from _walk(value)
        elif name in ("ASSERT", "ASSERT_NOT"):
            yield from _walk(value[1])


def _classes(tree: Any) -> list[str]:
    """Of each repeat of single characters, those; else of all parts."""
    return list(dict.fromkeys(text for item in _walk(tree) if (text := _class(item)) and str(item[0]) != "LITERAL"))


def _literals(tree: Any) -> list[str]:
    found: list[str] = []
    for item in _walk(tree):
        name, value = str(item[0]), item[1]
        if name in ("LITERAL", "NOT_LITERAL"):
            found.append(chr(value))
        elif name == "IN":
            for kind, part in value:
                if str(kind) == "LITERAL":
                    found.append(chr(part))
                elif str(kind) == "RANGE":
                    found.append(chr(part[0]))
    return found
