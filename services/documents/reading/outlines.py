"""Outlines of configuration files: each value with the path of its keys and its line, for JSON, TOML, YAML, XML, INI,
env files and logs of properties. Linear in the size of the text, and nothing is executed.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple, cast
from xml.parsers import expat

import yaml

from services.documents.reading.decoding import lines_of
from services.redaction import Path, end_of_run, leads_to_secret, run_of

LONGEST_VALUE = 500
LONGEST_NAME = 100
MOST_KEPT = 100_000
DEEPEST = 64  # what is nested deeper was not written by hand; paths that grow with each level would fill the memory
_NAMES = frozenset({"name", "key", "id", "job_name"})


class ConfigKey(NamedTuple):
    path: Path
    line: int


class Leaf(NamedTuple):
    """A value of a configuration file.

    Attributes:
        start: where in the text the value begins, without quotes; `end`: where it ends. Known only if `end` is behind
            `start`.
    """

    path: Path
    value: str
    line_start: int
    line_end: int
    start: int = 0
    end: int = 0
    called: str = ""  # the name of the element that it is in: `<name>x</name><value>…</value>`


@dataclass
class Outline:
    """Keys and values in the order of the file. Lines count from 1.

    Attributes:
        comments: marks that begin a comment line, which belongs to the key below it.
    """

    keys: list[ConfigKey] = field(default_factory=list[ConfigKey])
    leaves: list[Leaf] = field(default_factory=list[Leaf])
    comments: tuple[str, ...] = ("#",)
    n_values: int = 0  # how many values the file has: of very many, not all are kept

    def add_key(self, path: Path, line: int) -> None:
        """Add a key. Of several keys in one line only the first is kept, since sections begin at lines."""
        if not self.keys or line > self.keys[-1].line:
            self.keys.append(ConfigKey(path, line))

    def add(self, leaf: Leaf) -> None:
        self.n_values += 1
        if self.n_values <= MOST_KEPT or leads_to_secret((leaf.called,) if leaf.called else leaf.path, leaf.value):
            self.leaves.append(leaf)

    @cached_property
    def secret_objects(self) -> frozenset[Path]:
        """Return the paths of Kubernetes manifests of the kind Secret."""
        return frozenset(
            leaf.path[:-1] for leaf in self.leaves if leaf.path[-1:] == ("kind",) and leaf.value == "Secret"
        )

    @cached_property
    def names(self) -> dict[Path, str]:
        """Return the names of list items and elements by their paths: `- name: DB_PASSWORD`, `<add key="DbPassword"
        value=…>`.
        """
        names: dict[Path, str] = {}
        for leaf in self.leaves:
            if leaf.path and leaf.path[-1] in _NAMES:
                names.setdefault(leaf.path[:-1], leaf.value)
        return names


class Unreadable(Exception):
    """The file is not of the format that was tried."""


def one_line_value(value: str) -> str:
    """Return `value` in one line, cut at 500 characters."""
    return " ".join(value.split())[:LONGEST_VALUE] if "\n" in value else value.strip()[:LONGEST_VALUE]


def one_name(key: str) -> str:
    """Return `key` in one line, cut at 100 characters: it is repeated for each value below it."""
    return " ".join(key.split())[:LONGEST_NAME] if len(key) > LONGEST_NAME or "\n" in key else key


def words(path: Path, names: Mapping[Path, str]) -> str:
    """Write a path as words: `services db ports`. A list item goes by its name, if it has one; the index of a plain
    value is left out.
    """
    said: list[str] = []
    for at, name in enumerate(path):
        if not name.startswith("["):
            said.append(name)
        elif called := names.get(path[: at + 1]):
            said.append(called)
        elif 0 < at < len(path) - 1:
            said.append(name.strip("[]"))
    return " ".join(said)


def dotted(path: Path) -> str:
    """Write a path with dots: `services.db.ports[0]`."""
    text = ""
    for name in path:
        text += name if name.startswith("[") or not text else f".{name}"
    return text


_COMMENTS = ("#", ";", "!", "//", "--")
_SECTION = re.compile(r"\[{1,2}\s{0,9}([^\[\]\n]{1,200})\]{1,2}\s*(?:[#;].*)?")
_ASSIGNMENT = re.compile(
    r"(?:export\s{1,9}|set\s{1,9})?([A-Za-z_$\"'][^\s=:{}<>;#]{0,199}(?: [\w.-]{1,60}){0,4}?)"
    r"\s{0,60}(?:=>|:=|\+=|[=:](?!//))\s{0,60}(.*)"
)
_OPENING = re.compile(r"([^{}#;]{1,300}?)\s{0,9}\{\s{0,9}(?:#.*)?")
_TAG = re.compile(r"<(/?)\s{0,9}([A-Za-z][^<>]{0,300})>")
_DIRECTIVE = re.compile(r"([A-Za-z_][\w.-]{0,99})\s{1,60}([^\s].*)")
_REMARK = re.compile(r"\s{1,60}[#;]\s")


def read_ini(text: str) -> Outline:
    """Read keys and values of any text that is built of lines. Prose gives an empty or a meaningless outline."""
    reader = _Reader()
    at = 0
    for number, line in enumerate(lines_of(text), start=1):
        reader.take(line, number, at)
        at += len(line) + 1
    reader.finish()
    return reader.outline


class _Reader:
    def __init__(self) -> None:
        self.outline = Outline(comments=_COMMENTS)
        self._section: Path = ()
        self._blocks: list[str] = []
        self._unfinished: Leaf | None = None
        """A value that continues in the next line."""

    def take(self, line: str, number: int, at: int) -> None:
        """Read line `number`, which begins at `at`."""
        bare = line.strip()
        at += len(line) - len(line.lstrip())
        if self._unfinished:
            self._go_on(self._unfinished, bare, number, at)
        elif not bare or bare.startswith(_COMMENTS):
            return
        elif found := _SECTION.fullmatch(bare):
            self._section, self._blocks = (found[1].strip(),), []
            self.outline.add_key(self._section, number)
        elif not self._nested(bare, number):
            self._pair(bare, number, at)

    def finish(self) -> None:
        if self._unfinished:
            self.outline.add(self._unfinished)

    def _pair(self, bare: str, number: int, at: int) -> None:
        found = _ASSIGNMENT.fullmatch(bare) or _DIRECTIVE.fullmatch(bare)
        if found is None:
            return
        path = (*self._section, *self._blocks, found[1].strip().strip("\"'"))
        self.outline.add_key(path, number)
        start, end = _value(found[2])
        value, start, end = found[2][start:end], at + found.start(2) + start, at + found.start(2) + end
        leaf = Leaf(path, one_line_value(value), number, number, start, end)
        if value.endswith("\\") and not value.endswith("\\\\"):
            self._unfinished = leaf._replace(value=leaf.value.rstrip("\\").strip())
        else:
            self.outline.add(leaf)

    def _go_on(self, leaf: Leaf, bare: str, number: int, at: int) -> None:
        more = bare.rstrip("\\").strip()
        value = one_line_value(f"{leaf.value} {more}")
        leaf = leaf._replace(value=value, line_end=number, end=at + len(more))
        self._unfinished = leaf if bare.endswith("\\") else None
        if self._unfinished is None:
            self.outline.add(leaf)

    def _nested(self, bare: str, number: int) -> bool:
        """Read a line that opens or closes a block in braces or tags, as web servers have them. Returns whether it
        did.
        """
        if bare in ("}", "};", "},"):
            del self._blocks[-1:]
            return True
        if found := _OPENING.fullmatch(bare):
            name = found[1].strip().rstrip("=:").strip()
        elif tag := _TAG.fullmatch(bare):
            if tag[1]:
                del self._blocks[-1:]
                return True
            name = tag[2].strip()
        else:
            return False
        if len(self._blocks) == DEEPEST:
            del self._blocks[-1]
        self._blocks.append(name)
        self.outline.add_key((*self._section, *self._blocks), number)
        return True


def _value(value: str) -> tuple[int, int]:
    """Return start and end of the value in the text behind a key, without quotes and without a trailing comment."""
    if value[:1] in ("'", '"') and (end := value.find(value[0], 1)) > 0:
        return 1, end
    remark = _REMARK.search(value)
    return 0, len(value[: remark.start() if remark else None].rstrip("; ,\t"))


_PAIR = re.compile(r"(?:-\s{1,9})?[\"']?([\w$@./-][\w$@./ -]{0,119}?)[\"']?\s{0,9}:(?:\s{1,60}(.*))?")
_ITEM = re.compile(r"-\s{1,9}(.*)")


def read_indented(text: str) -> Outline:
    """Read keys and values by their indents: of templates, fragments, and files with a mistake."""
    outline = Outline(comments=("#", "//"))
    open_keys: list[tuple[int, str]] = []
    after = 0
    for number, line in enumerate(text.split("\n"), start=1):
        at, after = after, after + len(line) + 1
        bare = line.strip()
        if not bare or bare.startswith(("#", "//")):
            continue
        indent = len(line) - len(line.lstrip())
        while open_keys and open_keys[-1][0] >= indent:
            open_keys.pop()
        path = tuple(name for _, name in open_keys)
        if found := _PAIR.fullmatch(bare):
            value = (found[2] or "").rstrip(",").strip()
            outline.add_key((*path, found[1]), number)
            if value and value not in ("{", "[", "|", ">", "|-", ">-"):
                start = at + indent + found.start(2)
                plain = one_line_value(value.strip("\"'"))
                leaf = Leaf((*path, found[1]), plain, number, number, start, start + len(value))
                outline.add(leaf)
            else:
                del open_keys[DEEPEST - 1 :]
                open_keys.append((indent, found[1]))
        elif path and (item := _ITEM.fullmatch(bare)):
            start, end = at + indent + item.start(1), at + indent + item.end(1)
            outline.add(Leaf(path, one_line_value(item[1].strip("\"'")), number, number, start, end))
    return outline


_TOKEN = re.compile(
    r'(?P<line>\n)|(?P<quote>")|(?P<mark>[{}\[\]:,])|(?P<comment>//[^\n]*+|/\*[\s\S]*?\*/)'
    r'|(?P<word>[^\s{}\[\]:,"/]++)|(?P<wrong>\S)'
)
_TO_QUOTE = run_of(r'[^"\\\n]++|\\.')
_LONGEST_ROW = 300


@dataclass(slots=True)
class _Level:
    """An object or list that is still open. `plain`: it holds nothing but plain values."""

    path: Path
    line: int
    start: int
    first_leaf: int
    is_list: bool
    count: int = 0
    key: str | None = None
    plain: bool = True


def read_json(text: str) -> Outline:
    """Return the keys and values. Several documents in a row are read like a list of them.
    Raises Unreadable: it is no JSON.
    """
    reader = _JsonReader(text)
    for token in _tokens(text):
        reader.take(*token)
    if reader.open or not reader.documents:
        raise Unreadable("it ends too early")
    return reader.outline


def _tokens(text: str) -> Iterator[tuple[str, str, int, int]]:
    """Yield kind, text, start and end of each token."""
    at = 0
    while token := _TOKEN.search(text, at):
        kind, at = token.lastgroup or "wrong", token.end()
        if kind == "quote":
            end = end_of_run(_TO_QUOTE, text, at)
            kind, at = ("string", end + 1) if text.startswith('"', end) else ("wrong", at)
        yield kind, text[token.start() : at], token.start(), at


class _JsonReader:
    def __init__(self, text: str) -> None:
        self.outline = Outline(comments=("//", "/*"))
        self.open: list[_Level] = []
        self.documents = 0
        self._text = text
        self._line = 1

    def take(self, kind: str, found: str, start: int, end: int) -> None:
        if kind == "line":
            self._line += 1
        elif kind == "comment":
            self._line += found.count("\n")
        elif kind == "wrong":
            raise Unreadable(f"line {self._line}: {found!r} has no place in JSON")
        elif found == ",":
            if self.open:
                self.open[-1].key = None
        elif kind == "mark" and found in "}]":
            self._close(found, end)
        elif found != ":":
            self._value(kind, found, start, end)

    def _value(self, kind: str, found: str, start: int, end: int) -> None:
        level = self.open[-1] if self.open else None
        if level and not level.is_list and level.key is None:
            if kind == "mark":
                raise Unreadable(f"line {self._line}: {found!r} where a key should be")
            level.key = one_name(_plain(kind, found))
            self.outline.add_key((*level.path, level.key), self._line)
            return
        if level is None and self.documents and kind != "mark":
            raise Unreadable(f"line {self._line}: something follows the end")
        path = self._place(level)
        if kind != "mark":
            quoted = kind == "string"
            leaf = Leaf(path, one_line_value(_plain(kind, found)), self._line, self._line, start + quoted, end - quoted)
            self.outline.add(leaf)
            return
        if level:
            level.plain = False
        if len(self.open) >= DEEPEST:
            raise Unreadable("nested too deep")
        if path and (not level or level.is_list):
            self.outline.add_key(path, self._line)
        self.open.append(_Level(path, self._line, start, len(self.outline.leaves), is_list=found == "["))

    def _place(self, level: _Level | None) -> Path:
        if level is None:
            self.documents += 1
            return (f"[{self.documents - 1}]",) if self.documents > 1 else ()
        if not level.is_list:
            return (*level.path, level.key or "")
        level.count += 1
        return (*level.path, f"[{level.count - 1}]")

    def _close(self, mark: str, end: int) -> None:
        if not self.open or self.open[-1].is_list != (mark == "]"):
            raise Unreadable(f"line {self._line}: {mark!r} closes nothing")
        level = self.open.pop()
        in_one_line = level.line == self._line and end - level.start <= _LONGEST_ROW
        if level.is_list and level.plain and level.count > 1 and in_one_line:  # its values are one value
            del self.outline.leaves[level.first_leaf :]
            row = Leaf(level.path, self._text[level.start : end], level.line, level.line, level.start, end)
            self.outline.add(row)


def _plain(kind: str, found: str) -> str:
    if kind != "string":
        return found
    try:
        return str(json.loads(found, strict=False))
    except ValueError:
        return found[1:-1]


_TOML_TOKEN = re.compile(
    r"(?P<quote>\"{3}|'{3}|[\"'])|(?P<line>\n)|(?P<mark>[\[\]{},=])|#[^\n]*+|(?P<word>[^\s\[\]{},=\"'#]++)|(?P<wrong>\S)"
)
_TOML_TO_QUOTE = {
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
    """Return the keys and values. Raises Unreadable: it is no TOML."""
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
    """Yield the tokens of each statement: up to a line end that is not within brackets."""
    line, depth = 1, 0
    tokens: list[_Token] = []
    at = 0
    while match := _TOML_TOKEN.search(text, at):
        kind, at = match.lastgroup, match.end()
        if kind == "quote":
            closed = _LAST_QUOTES[match[0]].match(text, end_of_run(_TOML_TO_QUOTE[match[0]], text, at))
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
    """Return the path of the table that a header begins. `tables` counts the tables of each list."""
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
    """Add the values of one key: a plain value, or those in its lists and inline tables."""
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
    """Split a dotted key: `a."b.c".d` gives a, b.c and d."""
    parts: list[str] = []
    for token in tokens:
        if token.kind == "string":
            parts.append(token.text[1:-1])
        elif token.kind == "word":
            parts += filter(None, token.text.split("."))
    return tuple(map(one_name, parts))


# The C parser is ten times faster; wheels bring it.
_LOADER = cast("type[yaml.SafeLoader]", getattr(yaml, "CSafeLoader", yaml.SafeLoader))
_YAML_ASSIGNMENT = re.compile(r"([A-Za-z_][\w.-]{0,99})=(.*)", re.DOTALL)
_LONGEST_FLOW = 300
_BREAKS = dict.fromkeys(map(ord, "\x85\u2028\u2029"), " ")  # lines end here for YAML, and for nobody else


def read_yaml(text: str) -> Outline:
    """Return the keys and values. Raises Unreadable: it is no YAML."""
    text = text.translate(_BREAKS)
    reader = _YamlReader(text)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            reader.take(event)
    except (yaml.YAMLError, RecursionError) as error:
        raise Unreadable(str(error)) from None
    return reader.outline


@dataclass(slots=True)
class _YamlLevel:
    """A mapping or list that is still open."""

    path: Path
    is_list: bool
    count: int = 0
    key: str | None = None


class _YamlReader:
    def __init__(self, text: str) -> None:
        self.outline = Outline()
        self._text = text
        self._lines = text.split("\n")
        self._n_lines = max(1, len(lines_of(text)))
        self._starts: list[int] = list(accumulate((len(line) + 1 for line in self._lines), initial=0))
        self._levels: list[_YamlLevel] = []
        self._documents = 0
        self._flow: tuple[int, list[Leaf], Any] | None = None

    def take(self, event: Any) -> None:
        if isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            self._open(event)
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self._close(event)
        elif isinstance(event, yaml.ScalarEvent):
            self._scalar(event, event.value)
        elif isinstance(event, yaml.AliasEvent):
            self._scalar(event, f"*{event.anchor}")

    def _open(self, event: Any) -> None:
        if len(self._levels) >= DEEPEST:
            raise Unreadable("nested too deep")
        path = self._place(event)
        is_list = isinstance(event, yaml.SequenceStartEvent)
        if is_list and event.flow_style and self._flow is None:
            self._flow = len(self._levels), [], event
        self._levels.append(_YamlLevel(path, is_list=is_list))

    def _close(self, event: Any) -> None:
        level = self._levels.pop()
        if self._flow is None or self._flow[0] != len(self._levels):
            return
        _, leaves, start = self._flow
        self._flow = None
        first, last = start.start_mark, event.end_mark
        shown = self._text[self._offset(first) : self._offset(last)] if first.line == last.line else ""
        plain = leaves and all(leaf.path[:-1] == level.path for leaf in leaves)
        if plain and 0 < len(shown) <= _LONGEST_FLOW and len(leaves) > 1:
            leaves = [Leaf(level.path, shown, first.line + 1, first.line + 1, *self._span(start, event))]
        for leaf in leaves:
            self.outline.add(leaf)

    def _scalar(self, event: Any, value: str) -> None:
        level = self._levels[-1] if self._levels else None
        # A value that is left out at the end of the file stands behind its last line.
        line: int = min(event.start_mark.line + 1, self._n_lines)
        if level and not level.is_list and level.key is None:
            level.key = one_name(value)
            self.outline.add_key((*level.path, level.key), line)
            return
        path = self._place(event)
        last: int = min(event.end_mark.line + (1 if event.end_mark.column else 0), self._n_lines)
        while last > line and not self._lines[last - 1].strip():
            last -= 1
        start, end = self._span(event, event)
        if level and level.is_list and (found := _YAML_ASSIGNMENT.fullmatch(value)):
            path, value = (*level.path, found[1]), found[2]
            start = self._text.find("=", start, end) + 1 or start
        leaf = Leaf(path, one_line_value(value), line, max(line, last), start, end)
        if self._flow is None:
            self.outline.add(leaf)
        elif len(self._flow[1]) < _LONGEST_FLOW:
            self._flow[1].append(leaf)
        else:  # too long to be shown as one value
            for waiting in (*self._flow[1], leaf):
                self.outline.add(waiting)
            self._flow = None

    def _span(self, first: Any, last: Any) -> tuple[int, int]:
        start, end = self._offset(first.start_mark), self._offset(last.end_mark)
        while end > start and self._text[end - 1].isspace():
            end -= 1
        quoted = end - start > 1 and self._text[start] in "\"'" and self._text[end - 1] == self._text[start]
        return start + quoted, end - quoted

    def _offset(self, mark: Any) -> int:
        line: int = mark.line
        column: int = mark.column
        return self._starts[line] + column

    def _place(self, event: Any) -> Path:
        """Return the path of the value that begins here."""
        if not self._levels:
            return (f"[{self._documents - 1}]",) if self._documents > 1 else ()
        level = self._levels[-1]
        if level.is_list:
            level.count += 1
            path = (*level.path, f"[{level.count - 1}]")
            line: int = event.start_mark.line + 1
            if isinstance(event, yaml.CollectionStartEvent) and not self._flow:
                self.outline.add_key(path, line)
            return path
        # A mapping as the key of a mapping: named by its place.
        path = (*level.path, level.key if level.key is not None else "?")
        level.key = None if level.key is not None else "?"
        return path


_TAG_NAME = re.compile(r"<[^\s/>\"'=]++")
_TO_END_OF_TAG = run_of(r"[^>\"']++|\"[^\"]*+\"|'[^']*+'")
_ATTRIBUTE = re.compile(r"\s([^\s=\"'<>/]++)\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)')")
_NAMING = frozenset({"name", "key", "id"})


def read_xml(text: str) -> Outline:
    """Return elements, attributes and texts. Raises Unreadable: it is no XML, is nested too deep, or declares
    entities.
    """
    reader = _XmlReader(text)
    try:
        reader.parser.Parse(reader.data, True)
    except expat.ExpatError as error:
        raise Unreadable(str(error)) from None
    return reader.outline


@dataclass(slots=True)
class _Element:
    """An element that is still open: its line, where its text begins, and the name that an element inside gives it."""

    line: int
    begin: int
    texts: list[str] = field(default_factory=list[str])
    called: str = ""


class _XmlReader:
    def __init__(self, text: str) -> None:
        self.outline = Outline(comments=("<!--",))
        self.data = text.encode("utf-8", "replace")
        self.parser = expat.ParserCreate("utf-8")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._begin
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.EntityDeclHandler = self._entity
        self._source = text
        self._path: Path = ()
        self._open: list[_Element] = []
        self._at = (0, 0)
        """How far the file was read: in bytes, in characters."""

    def _begin(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._path) >= DEEPEST:
            raise Unreadable("nested too deep")
        line = self.parser.CurrentLineNumber
        name = one_name(name)
        called = next((attributes[key] for key in ("name", "id", "key") if attributes.get(key)), "")
        self._path = (*self._path, f"{name}({one_line_value(called)[:60]})" if called else name)
        self.outline.add_key(self._path, line)
        start = self._tag_begins()
        behind_tag = self._behind_tag(start)
        self._open.append(_Element(line, behind_tag))
        spans = {
            found[1]: found.span(2 if found[2] is not None else 3)
            for found in _ATTRIBUTE.finditer(self._source, start, behind_tag)
        }
        # expat reports the line of the tag; the attribute may be further down. They come in the order of the file.
        read, below = start, line
        for key, value in attributes.items():
            begin, end = spans.get(key, (read, read))
            first = below + self._source.count("\n", read, begin)
            read, below = end, first + self._source.count("\n", begin, end)
            leaf = Leaf((*self._path, one_name(key)), one_line_value(value), first, below, begin, end, called)
            self.outline.add(leaf)

    def _end(self, _: str) -> None:
        start = self._tag_begins()
        element = self._open.pop()
        text = "".join(element.texts)
        if text.strip():
            last = self.parser.CurrentLineNumber
            # An empty `<a/>` has no text; its end is reported where it begins.
            begin, end = element.begin, max(element.begin, start)
            begin += len(self._source[begin:end]) - len(self._source[begin:end].lstrip())
            parent = self._open[-1] if self._open else None
            called = "" if parent is None else parent.called
            self.outline.add(Leaf(self._path, one_line_value(text), element.line, last, begin, end, called))
            if parent is not None and self._path[-1].lower() in _NAMING:
                parent.called = one_line_value(text)
        self._path = self._path[:-1]

    def _text(self, text: str) -> None:
        if self._open:
            self._open[-1].texts.append(text)

    def _entity(self, *_: object) -> None:
        raise Unreadable("entities are declared")

    def _behind_tag(self, start: int) -> int:
        """Return where the tag that begins at `start` ends; `start` if there is none."""
        name = _TAG_NAME.match(self._source, start)
        end = end_of_run(_TO_END_OF_TAG, self._source, name.end()) if name else start
        return end + 1 if name and self._source.startswith(">", end) else start

    def _tag_begins(self) -> int:
        """Return where in the text the current tag begins. Must be called in the order of the file."""
        read, at = self._at
        here = self.parser.CurrentByteIndex
        self._at = here, at + len(self.data[read:here].decode("utf-8", "replace"))
        return self._at[1]
