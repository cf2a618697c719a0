"""The keys and values of a TOML file with their lines, which `tomllib` does not tell."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import NamedTuple

from services.documents.reading.outlines import DEEPEST, Leaf, Outline, Path, Unreadable, one_line_value, one_name

_TOKEN = re.compile(
    r'(?P<string>"""(?>(?:[^\\"]|\\[\s\S]|"(?!""))*)"{3,5}|\'\'\'(?>(?:[^\']|\'(?!\'\'))*)\'{3,5}'
    r'|"(?>(?:[^"\\\n]|\\.)*)"|\'[^\'\n]*+\')'
    r"|(?P<line>\n)|(?P<mark>[\[\]{},=])|#[^\n]*+|(?P<word>[^\s\[\]{},=\"'#]++)|(?P<wrong>\S)"
)
_PART = re.compile(r"\s*(?:\"((?>(?:[^\"\\]|\\.)*))\"|'([^']*+)'|([^\s.\"']++))\s*(?:\.|$)")

_DEEP_KEY = re.compile(rf"(?<![\w.-])(?:(?:[\w-]++|\"[^\"\n]*+\"|'[^'\n]*+')[ \t]*\.[ \t]*){{{DEEPEST}}}")


class _Token(NamedTuple):
    kind: str
    text: str
    line: int
    last: int
    start: int

    @property
    def quotes(self) -> int:
        if self.kind != "string":
            return 0
        return 3 if self.text[:3] in ('"""', "'''") else 1


def read_toml(text: str) -> Outline:
    """Its keys and values.

    Raises:
        Unreadable: it is no TOML.
    """
    try:
        if _DEEP_KEY.search(text):  # such a key takes the library time in proportion to the square of its length
            raise Unreadable("nested too deep")
        tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable(str(error)) from None
    outline = Outline()
    table: Path = ()
    tables: dict[Path, int] = {}
    for tokens in _statements(text):
        table = _statement(outline, tokens, table, tables)
    return outline


def _statements(text: str) -> Iterator[list[_Token]]:
    """What stands between line ends, those within brackets and strings aside."""
    line, depth = 1, 0
    tokens: list[_Token] = []
    for match in _TOKEN.finditer(text):
        kind, found = match.lastgroup, match.group()
        last = line + found.count("\n")
        if kind == "line":
            if depth == 0 and tokens:
                yield tokens
                tokens = []
        elif kind is not None:
            depth += (found in "[{") - (found in "]}") if kind == "mark" else 0
            tokens.append(_Token(kind, found, line, last, match.start()))
        line = last
    if tokens:
        yield tokens


def _statement(outline: Outline, tokens: list[_Token], table: Path, tables: dict[Path, int]) -> Path:
    if tokens[0].text == "[":
        name = _path("".join(token.text for token in tokens if token.kind != "mark"))
        if tokens[1].text == "[":
            tables[name] = tables.get(name, -1) + 1
            name = (*name, f"[{tables[name]}]")
        # A table below a list of tables belongs to its last one.
        for length in range(len(name), 0, -1):
            if name[:length] in tables and name[length : length + 1] != (f"[{tables[name[:length]]}]",):
                name = (*name[:length], f"[{tables[name[:length]]}]", *name[length:])
                break
        outline.add_key(name, tokens[0].line)
        return name
    equals = next(at for at, token in enumerate(tokens) if token.text == "=")
    path = (*table, *_path("".join(token.text for token in tokens[:equals])))
    outline.add_key(path, tokens[0].line)
    _values(outline, tokens[equals + 1 :], path)
    return table


def _values(outline: Outline, tokens: list[_Token], path: Path) -> None:
    """The values of one key: a plain one, or those in its lists and inline tables."""
    walk = _Walk(outline, path)
    for token in tokens:
        walk.take(token)
    walk.finish()


class _Walk:
    """Through the value of one key."""

    def __init__(self, outline: Outline, path: Path) -> None:
        self._outline = outline
        self._place = path
        self._words: list[_Token] = []
        self._open: list[tuple[Path, bool]] = []
        self._counts: list[int] = []

    def take(self, token: _Token) -> None:
        if token.kind != "mark":
            self._words.append(token)
        elif token.text in "[{":
            if len(self._open) >= DEEPEST:
                raise Unreadable("nested too deep")
            self._open.append((self._place, token.text == "["))
            self._counts.append(0)
            self._step()
        elif token.text == "=":
            self._name()
        else:
            self.finish()
            if token.text == ",":
                self._counts[-1] += 1
                self._step()
            else:
                self._place, _ = self._open.pop()
                self._counts.pop()

    def finish(self) -> None:
        """Note down the value that was read, if one was."""
        words = self._words
        if words:
            value = one_line_value(" ".join(map(_plain, words)))
            start = words[0].start + words[0].quotes
            end = words[-1].start + len(words[-1].text) - words[-1].quotes
            self._outline.add(Leaf(self._place, value, words[0].line, words[-1].last, start, end))
            self._words = []

    def _step(self) -> None:
        path, is_list = self._open[-1]
        if is_list:
            self._place = (*path, f"[{self._counts[-1]}]")

    def _name(self) -> None:
        """What was read is a key of an inline table."""
        self._place = (*self._open[-1][0], *_path("".join(word.text for word in self._words)))
        self._outline.add_key(self._place, self._words[0].line)
        self._words = []


def _path(name: str) -> Path:
    """From `a."b.c".d`: a, b.c and d."""
    return tuple(
        one_name(next(part for part in parts if part is not None))
        for parts in (found.groups() for found in _PART.finditer(name))
    )


def _plain(token: _Token) -> str:
    if token.kind != "string":
        return token.text
    return str(tomllib.loads(f"v = {token.text}")["v"])
