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

from services.documents.limits import lines_of
from services.redaction import KeyPath, compile_run, end_of_run, leads_to_secret

LONGEST_VALUE = 500
LONGEST_NAME = 100
MAX_KEPT = 100_000
DEEPEST = 64  # deeper files are not written by hand; paths that grow with each level would fill the memory
_NAMES = frozenset({"name", "key", "id", "job_name"})


class ConfigKey(NamedTuple):
    path: KeyPath
    line: int


class Leaf(NamedTuple):
    """A value of a configuration file.

    Attributes:
        start: where in the text the value begins, without quotes; `end`: where it ends. Known only if `end` is behind
            `start`.
    """

    path: KeyPath
    value: str
    line_start: int
    line_end: int
    start: int = 0
    end: int = 0
    element_name: str = ""  # the name in the element around it: `<name>x</name><value>…</value>`


@dataclass
class Outline:
    """Keys and values in the order of the file. Lines count from 1.

    Attributes:
        comment_marks: what begins a comment line, which belongs to the key below it.
    """

    keys: list[ConfigKey] = field(default_factory=list[ConfigKey])
    leaves: list[Leaf] = field(default_factory=list[Leaf])
    comment_marks: tuple[str, ...] = ("#",)
    n_values: int = 0  # the number of values in the file: of very many, not all are kept

    def add_key(self, path: KeyPath, line: int) -> None:
        """Add a key. Of several keys in one line only the first is kept, since sections begin at lines."""
        if not self.keys or line > self.keys[-1].line:
            self.keys.append(ConfigKey(path, line))

    def add(self, leaf: Leaf) -> None:
        self.n_values += 1
        named_by = (leaf.element_name,) if leaf.element_name else leaf.path
        if self.n_values <= MAX_KEPT or leads_to_secret(named_by, leaf.value):
            self.leaves.append(leaf)

    @cached_property
    def secret_objects(self) -> frozenset[KeyPath]:
        """Return the paths of Kubernetes manifests of the kind Secret."""
        return frozenset(
            leaf.path[:-1] for leaf in self.leaves if leaf.path[-1:] == ("kind",) and leaf.value == "Secret"
        )

    @cached_property
    def names(self) -> dict[KeyPath, str]:
        """Return the names of list items and elements by path: `- name: PASSWORD`, `<add key="Password" value=…>`."""
        names: dict[KeyPath, str] = {}
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


def words(path: KeyPath, names: Mapping[KeyPath, str]) -> str:
    """Write a path as words, `services db ports`: a list item by its name, the index of a plain value left out."""
    said: list[str] = []
    for at, name in enumerate(path):
        if not name.startswith("["):
            said.append(name)
        elif called := names.get(path[: at + 1]):
            said.append(called)
        elif 0 < at < len(path) - 1:
            said.append(name.strip("[]"))
    return " ".join(said)


def dotted(path: KeyPath) -> str:
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
    """Read keys and values of any text with one setting a line. Prose gives an empty or a meaningless outline."""
    reader = _LineReader()
    at = 0
    for number, line in enumerate(lines_of(text), start=1):
        reader.take(line, number, at)
        at += len(line) + 1
    reader.finish()
    return reader.outline


class _LineReader:
    def __init__(self) -> None:
        self.outline = Outline(comment_marks=_COMMENTS)
        self._section: KeyPath = ()
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
        start, end = _value_span(found[2])
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
        """Read a line that opens or closes a block, as web servers have them. Returns False: it is another line."""
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


def _value_span(value: str) -> tuple[int, int]:
    """Return start and end of the value in the text behind a key, without quotes and without a trailing comment."""
    if value[:1] in ("'", '"') and (end := value.find(value[0], 1)) > 0:
        return 1, end
    remark = _REMARK.search(value)
    return 0, len(value[: remark.start() if remark else None].rstrip("; ,\t"))


_PAIR = re.compile(r"(?:-\s{1,9})?[\"']?([\w$@./-][\w$@./ -]{0,119}?)[\"']?\s{0,9}:(?:\s{1,60}(.*))?")
_ITEM = re.compile(r"-\s{1,9}(.*)")


def read_indented(text: str) -> Outline:
    """Read keys and values by their indents: of templates, fragments, and files with a mistake."""
    outline = Outline(comment_marks=("#", "//"))
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


_LONGEST_ROW = 300  # a list of plain values up to this size, in one line, is one value


@dataclass(slots=True)
class _Level:
    """A mapping or list that is still open. `key`: the parts of the last key; `plain`: it holds only plain values."""

    path: KeyPath
    is_list: bool
    line: int = 0
    start: int = 0
    first_leaf: int = 0
    count: int = 0
    key: KeyPath | None = None
    plain: bool = True


class _OutlineBuilder:
    """Builds an outline. A reader calls it with each key and value, and the begin and end of each mapping and list."""

    def __init__(self, text: str, *comment_marks: str) -> None:
        self.outline = Outline(comment_marks=comment_marks)
        self.levels: list[_Level] = []
        self.documents = 0  # values that are in no mapping or list: more than one are read like a list of them
        self._text = text

    @property
    def wants_key(self) -> bool:
        return bool(self.levels) and not self.levels[-1].is_list and self.levels[-1].key is None

    def table(self, path: KeyPath, line: int) -> None:
        """Begin a mapping that is named by its whole path, and ends where the next one begins."""
        self.levels = [_Level(path, is_list=False)]
        if path:
            self.outline.add_key(path, line)

    def key(self, names: KeyPath, line: int) -> None:
        level = self.levels[-1]
        level.key = tuple(map(one_name, names))
        self.outline.add_key((*level.path, *level.key), line)

    def value(self, value: str, line: int, last: int, start: int, end: int, name: str | None = None) -> None:
        """Add a plain value. `name`: of an item of a list that has one."""
        path = self._take_path()
        if name is not None:
            path = (*path[:-1], name)
        self.outline.add(Leaf(path, one_line_value(value), line, last, start, end))

    def open(self, line: int, start: int, *, is_list: bool) -> None:
        """Raises Unreadable: it is nested too deep."""
        if len(self.levels) >= DEEPEST:
            raise Unreadable("nested too deep")
        outer = self.levels[-1] if self.levels else None
        path = self._take_path()
        if path and (outer is None or outer.is_list):
            self.outline.add_key(path, line)
        if outer:
            outer.plain = False
        self.levels.append(_Level(path, is_list, line, start, len(self.outline.leaves)))

    def close(self, line: int, end: int) -> None:
        level = self.levels.pop()
        in_one_line = level.line == line and end - level.start <= _LONGEST_ROW
        if level.is_list and level.plain and level.count > 1 and in_one_line:
            del self.outline.leaves[level.first_leaf :]
            self.outline.n_values -= level.count
            self.outline.add(Leaf(level.path, self._text[level.start : end], line, line, level.start, end))

    def _take_path(self) -> KeyPath:
        """Return the path of the value that begins here, and count the value."""
        if not self.levels:
            self.documents += 1
            return (f"[{self.documents - 1}]",) if self.documents > 1 else ()
        level = self.levels[-1]
        if level.is_list:
            level.count += 1
            return (*level.path, f"[{level.count - 1}]")
        # Without a key, what begins here is the key: a mapping, as YAML allows. It is called `?`, and so is its value.
        key = ("?",) if level.key is None else level.key
        level.key = ("?",) if level.key is None else None
        return (*level.path, *key)


_TOKEN = re.compile(
    r'(?P<line>\n)|(?P<quote>")|(?P<mark>[{}\[\]:,])|(?P<comment>//[^\n]*+|/\*[\s\S]*?\*/)'
    r'|(?P<word>[^\s{}\[\]:,"/]++)|(?P<wrong>\S)'
)
_TO_QUOTE = compile_run(r'[^"\\\n]++|\\.')


def read_json(text: str) -> Outline:
    """Return the keys and values. Several documents in a row are read like a list of them.
    Raises Unreadable: it is no JSON.
    """
    builder = _OutlineBuilder(text, "//", "/*")
    line = 1
    for kind, found, start, end in _tokens(text):
        if kind in {"line", "comment"}:
            line += found.count("\n")
        elif kind == "wrong":
            raise Unreadable(f"line {line}: {found!r} has no place in JSON")
        elif kind == "mark":
            _read_mark(builder, found, line, start, end)
        elif builder.wants_key:
            builder.key((_plain(kind, found),), line)
        elif builder.documents and not builder.levels:
            raise Unreadable(f"line {line}: something follows the end")
        else:
            quoted = kind == "string"
            builder.value(_plain(kind, found), line, line, start + quoted, end - quoted)
    if builder.levels or not builder.documents:
        raise Unreadable("it ends too early")
    return builder.outline


def _read_mark(builder: _OutlineBuilder, mark: str, line: int, start: int, end: int) -> None:
    if mark == "," and builder.levels:
        builder.levels[-1].key = None
    elif mark in "}]":
        if not builder.levels or builder.levels[-1].is_list != (mark == "]"):
            raise Unreadable(f"line {line}: {mark!r} closes nothing")
        builder.close(line, end)
    elif mark in "{[":
        if builder.wants_key:
            raise Unreadable(f"line {line}: {mark!r} where a key should be")
        builder.open(line, start, is_list=mark == "[")


def _tokens(text: str) -> Iterator[tuple[str, str, int, int]]:
    """Yield kind, text, start and end of each token."""
    at = 0
    while token := _TOKEN.search(text, at):
        kind, at = token.lastgroup or "wrong", token.end()
        if kind == "quote":
            end = end_of_run(_TO_QUOTE, text, at)
            kind, at = ("string", end + 1) if text.startswith('"', end) else ("wrong", at)
        yield kind, text[token.start() : at], token.start(), at


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
    '"""': compile_run(r'[^\\"]++|\\[\s\S]|"(?!"")'),
    "'''": compile_run("[^']++|'(?!'')"),
    '"': compile_run(r'[^"\\\n]++|\\.'),
    "'": compile_run(r"[^'\n]++"),
}
_LAST_QUOTES = {'"""': re.compile('"{3,5}'), "'''": re.compile("'{3,5}"), '"': re.compile('"'), "'": re.compile("'")}

_DEEP_KEY = re.compile(rf"(?<![\w.-])(?:(?:[\w-]++|\"[^\"\n]*+\"|'[^'\n]*+')[ \t]*\.[ \t]*){{{DEEPEST}}}")


class _Token(NamedTuple):
    kind: str
    text: str
    line: int
    last_line: int
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
    builder = _OutlineBuilder(text, "#")
    builder.table((), 0)
    tables: dict[KeyPath, int] = {}
    for tokens in _statements(text):
        if tokens[0].text == "[":
            builder.table(_path_of_table(tokens, tables), tokens[0].line)
        else:
            _read_assignment(builder, tokens)
    return builder.outline


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


def _path_of_table(tokens: list[_Token], tables: dict[KeyPath, int]) -> KeyPath:
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


def _read_assignment(builder: _OutlineBuilder, tokens: list[_Token]) -> None:
    """Read the keys and values of one statement: a plain value, or those in its lists and inline tables."""
    waiting: list[_Token] = []
    for token in tokens:
        if token.kind != "mark":
            waiting.append(token)
            continue
        if token.text == "=":
            builder.key(_path(waiting), waiting[0].line)
        elif waiting:
            _add_value(builder, waiting)
        waiting = []
        if token.text in "[{":
            builder.open(token.line, token.start, is_list=token.text == "[")
        elif token.text in "]}":
            builder.close(token.line, token.start + 1)
    if waiting:
        _add_value(builder, waiting)


def _add_value(builder: _OutlineBuilder, tokens: list[_Token]) -> None:
    first, last = tokens[0], tokens[-1]
    value = " ".join(str(tomllib.loads(f"v = {token.text}")["v"]) if token.quotes else token.text for token in tokens)
    start, end = first.start + first.quotes, last.start + len(last.text) - last.quotes
    builder.value(value, first.line, last.last_line, start, end)


def _path(tokens: list[_Token]) -> KeyPath:
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
    return reader.builder.outline


class _YamlReader:
    def __init__(self, text: str) -> None:
        self.builder = _OutlineBuilder(text, "#")
        self._text = text
        self._lines = text.split("\n")
        self._n_lines = max(1, len(lines_of(text)))
        self._starts: list[int] = list(accumulate((len(line) + 1 for line in self._lines), initial=0))

    def take(self, event: Any) -> None:
        first, last = event.start_mark, event.end_mark
        if isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            is_list = isinstance(event, yaml.SequenceStartEvent)
            self.builder.open(first.line + 1, self._offset(first), is_list=is_list)
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self.builder.close(last.line + 1, self._offset(last))
        elif isinstance(event, yaml.ScalarEvent):
            self._scalar(event, event.value)
        elif isinstance(event, yaml.AliasEvent):
            self._scalar(event, f"*{event.anchor}")

    def _scalar(self, event: Any, value: str) -> None:
        # A value that is left out at the end of the file stands behind its last line.
        line: int = min(event.start_mark.line + 1, self._n_lines)
        if self.builder.wants_key:
            self.builder.key((value,), line)
            return
        last: int = min(event.end_mark.line + (1 if event.end_mark.column else 0), self._n_lines)
        while last > line and not self._lines[last - 1].strip():
            last -= 1
        start, end = self._span(event)
        name = None
        if self.builder.levels and self.builder.levels[-1].is_list and (found := _YAML_ASSIGNMENT.fullmatch(value)):
            name, value = found[1], found[2]
            start = self._text.find("=", start, end) + 1 or start
        self.builder.value(value, line, max(line, last), start, end, name)

    def _span(self, event: Any) -> tuple[int, int]:
        start, end = self._offset(event.start_mark), self._offset(event.end_mark)
        while end > start and self._text[end - 1].isspace():
            end -= 1
        quoted = end - start > 1 and self._text[start] in "\"'" and self._text[end - 1] == self._text[start]
        return start + quoted, end - quoted

    def _offset(self, mark: Any) -> int:
        line: int = mark.line
        column: int = mark.column
        return self._starts[line] + column


_TAG_NAME = re.compile(r"<[^\s/>\"'=]++")
_TO_END_OF_TAG = compile_run(r"[^>\"']++|\"[^\"]*+\"|'[^']*+'")
_ATTRIBUTE = re.compile(r"\s([^\s=\"'<>/]++)\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)')")
_NAMING = frozenset({"name", "key", "id"})


def read_xml(text: str) -> Outline:
    """Return elements, attributes and texts. Raises Unreadable: no XML, nested too deep, or it declares entities."""
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
    element_name: str = ""


class _XmlReader:
    def __init__(self, text: str) -> None:
        self.outline = Outline(comment_marks=("<!--",))
        self.data = text.encode("utf-8", "replace")
        self.parser = expat.ParserCreate("utf-8")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._begin
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.EntityDeclHandler = self._entity
        self._source = text
        self._path: KeyPath = ()
        self._open: list[_Element] = []
        self._at = (0, 0)
        """The position in the file: in bytes, in characters."""

    def _begin(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._path) >= DEEPEST:
            raise Unreadable("nested too deep")
        line = self.parser.CurrentLineNumber
        name = one_name(name)
        element_name = next((attributes[key] for key in ("name", "id", "key") if attributes.get(key)), "")
        self._path = (*self._path, f"{name}({one_line_value(element_name)[:60]})" if element_name else name)
        self.outline.add_key(self._path, line)
        start = self._tag_begins()
        behind_tag = self._behind_tag(start)
        self._open.append(_Element(line, behind_tag))
        spans = {
            found[1]: found.span(2 if found[2] is not None else 3)
            for found in _ATTRIBUTE.finditer(self._source, start, behind_tag)
        }
        # expat reports the line of the tag; the attribute may be further down. They come in the order of the file.
        position, line_there = start, line
        for key, value in attributes.items():
            begin, end = spans.get(key, (position, position))
            first_line = line_there + self._source.count("\n", position, begin)
            position, line_there = end, first_line + self._source.count("\n", begin, end)
            path = (*self._path, one_name(key))
            self.outline.add(Leaf(path, one_line_value(value), first_line, line_there, begin, end, element_name))

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
            element_name = "" if parent is None else parent.element_name
            self.outline.add(Leaf(self._path, one_line_value(text), element.line, last, begin, end, element_name))
            if parent is not None and self._path[-1].lower() in _NAMING:
                parent.element_name = one_line_value(text)
        self._path = self._path[:-1]

    def _text(self, text: str) -> None:
        if self._open:
            self._open[-1].texts.append(text)

    def _entity(self, *_: object) -> None:
        raise Unreadable("entities are declared")

    def _behind_tag(self, start: int) -> int:
        """Return the end of the tag that begins at `start`; `start` if there is none."""
        name = _TAG_NAME.match(self._source, start)
        end = end_of_run(_TO_END_OF_TAG, self._source, name.end()) if name else start
        return end + 1 if name and self._source.startswith(">", end) else start

    def _tag_begins(self) -> int:
        """Return the position of the current tag in the text. Must be called in the order of the file."""
        read, at = self._at
        here = self.parser.CurrentByteIndex
        self._at = here, at + len(self.data[read:here].decode("utf-8", "replace"))
        return self._at[1]
