"""The keys and values of a TOML file with their lines, which `tomllib` does not give."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import NamedTuple

from services.documents.reading.outlines import DEEPEST, Leaf, Outline, Path, Unreadable, one_line_value, one_name
from services.redaction import end_of_run, run_of

_TOKEN = re.compile(
    r"(?P<quote>\"{3}|'{3}|[\"'])|(?P<line>\n)|(?P<mark>[\[\]{},=])|#[^\n]*+|(?P<word>[^\s\[\]{},=\"'#]++)|(?P<wrong>\S)"
)
_TO_QUOTE = {
    '"""': run_of(r'[^\\"]++|\\[\s\S]|"(?!"")'),
    "'''": run_of("[^']++|'(?!'')"),
    '"': run_of(r'[^"\\\n]++|\\.'),
    "'": run_of(r"[^'\n]++"),
}
_LAST_QUOTES = {'"""': re.compile('"{3,5}'), "'''": re.compile("'{3,5}"), '"': re.compile('"'), "'": re.compile("'")}

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
    """Its keys and values. Raises Unreadable: it is no TOML."""
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
        if tokens[0].text == "[":
            table = _table(tokens, tables)
            outline.add_key(table, tokens[0].line)
        else:
            equals = next(at for at, token in enumerate(tokens) if token.text == "=")
            path = (*table, *_path(tokens[:equals]))
            outline.add_key(path, tokens[0].line)
            _values(outline, tokens[equals + 1 :], path)
    return outline


def _statements(text: str) -> Iterator[list[_Token]]:
    """The tokens between line ends, except for those within brackets."""
    line, depth = 1, 0
    tokens: list[_Token] = []
    at = 0
    while match := _TOKEN.search(text, at):
        kind, at = match.lastgroup, match.end()
        if kind == "quote":
            closed = _LAST_QUOTES[match[0]].match(text, end_of_run(_TO_QUOTE[match[0]], text, at))
            kind, at = ("string", closed.end()) if closed else ("wrong", at)
        found = text[match.start() : at]
        last = line + found.count("\n")
        if kind == "line":
            if depth == 0 and tokens:
                yield tokens
                tokens = []
        elif kind is not None:
            depth += (found in "[{") - (found in "]}") if kind == "mark" else 0
            if depth > DEEPEST:
                raise Unreadable("nested too deep")
            tokens.append(_Token(kind, found, line, last, match.start()))
        line = last
    if tokens:
        yield tokens


def _table(tokens: list[_Token], tables: dict[Path, int]) -> Path:
    """The path of the table that begins. `tables` counts the tables of each list."""
    name = _path(tokens)
    if tokens[1].text == "[":
        tables[name] = tables.get(name, -1) + 1
        name = (*name, f"[{tables[name]}]")
    # A table below a list of tables belongs to its last one.
    for length in range(len(name), 0, -1):
        if name[:length] in tables and name[length : length + 1] != (f"[{tables[name[:length]]}]",):
            return (*name[:length], f"[{tables[name[:length]]}]", *name[length:])
    return name


def _values(outline: Outline, tokens: list[_Token], path: Path) -> None:
    """Adds the values of one key: a plain one, or those in its lists and inline tables."""
    # Of each that is open its path and, of a list, how many values were read; of a table -1.
    levels: list[tuple[Path, int]] = []
    value: list[_Token] = []
    for token in tokens:
        if token.kind != "mark":
            value.append(token)
            continue
        if token.text == "=":
            path = (*levels[-1][0], *_path(value))
            outline.add_key(path, value[0].line)
        elif value:
            outline.add(_leaf(path, value))
        value = []
        if token.text in "[{":
            levels.append((path, 0 if token.text == "[" else -1))
        elif token.text in "]}":
            path, _ = levels.pop()
        elif token.text == "," and levels[-1][1] >= 0:
            levels[-1] = (levels[-1][0], levels[-1][1] + 1)
        if token.text in "[," and levels[-1][1] >= 0:
            path = (*levels[-1][0], f"[{levels[-1][1]}]")
    if value:
        outline.add(_leaf(path, value))


def _leaf(path: Path, tokens: list[_Token]) -> Leaf:
    first, last = tokens[0], tokens[-1]
    value = " ".join(str(tomllib.loads(f"v = {token.text}")["v"]) if token.quotes else token.text for token in tokens)
    start, end = first.start + first.quotes, last.start + len(last.text) - last.quotes
    return Leaf(path, one_line_value(value), first.line, last.last, start, end)


def _path(tokens: list[_Token]) -> Path:
    """From `a."b.c".d`: a, b.c and d."""
    parts: list[str] = []
    for token in tokens:
        if token.kind == "string":
            parts.append(token.text[1:-1])
        elif token.kind == "word":
            parts += filter(None, token.text.split("."))
    return tuple(map(one_name, parts))
