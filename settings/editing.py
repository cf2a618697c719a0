"""Keys put into an operator's own files, config.local.yaml and .env: what else stands there stays, comments too."""

from __future__ import annotations

import copy
import io
import json
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, cast

import yaml
from dotenv.parser import parse_stream

from settings.errors import find, variable
from settings.loading import path_of

Path = tuple[str, ...]
WIDTH = 110
INDENT = "  "
_BREAKS = {ord(each): f"\\u{ord(each):04x}" for each in "\x85\u2028\u2029"}
"""Line breaks to YAML, and letters to JSON."""
NOT_READ = (yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""What PyYAML raises for text that it cannot read."""


def with_values(text: str, changes: Mapping[Path, object]) -> str:
    """A YAML file that says what `text` says, and `changes` by the paths of their keys. Each new key gets a comment.

    `text` is a mapping of sections, or empty. What is written in a way that cannot be edited in place (a mapping in
    braces, an alias) is written anew.
    """
    for path, value in changes.items():
        wanted = _with(yaml.safe_load(text), path, value)
        edited = _edited(text, path, wanted)
        # PyYAML reads back some line breaks of Unicode otherwise than it writes them.
        escaped = yaml.safe_dump(wanted, sort_keys=False)
        ways = (edited, yaml.safe_dump(wanted, sort_keys=False, allow_unicode=True))
        text = next((each for each in ways if _says(each, wanted)), escaped)
    return text


def with_variables(text: str, changes: Mapping[Path, str | None]) -> str:
    """A .env file that says what `text` says, and `changes`. None: nothing at or below this path is set any more."""
    pieces: list[str] = []
    left = {path: value for path, value in changes.items() if value is not None}
    for binding in parse_stream(io.StringIO(text)):
        path, whole = path_of(binding.key or ""), binding.original.string
        if path is None or not (path in changes or _taken_away(path, changes)):
            pieces.append(whole)
        elif path in left:
            before = whole[: len(whole) - len(whole.lstrip())]
            pieces.append(before + _assigned(path, left.pop(path)))
    kept = "".join(pieces)
    if left and kept and not kept.endswith("\n"):
        kept += "\n"
    return kept + "".join(_assigned(path, value) for path, value in left.items())


def _taken_away(path: Path, changes: Mapping[Path, str | None]) -> bool:
    return any(value is None and path[: len(each)] == each for each, value in changes.items())


def _assigned(path: Path, value: str) -> str:
    bare = value and value[0] not in "'\"" and value.isprintable() and not any(letter.isspace() for letter in value)
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    written = value if bare else f"'{escaped}'"
    return f"{variable(path)}={written}\n"


def _with(values: Any, path: Path, value: object) -> Any:
    """A copy of `values` with `value` at `path`."""
    if not path:
        return value
    mapping = copy.deepcopy(cast("dict[Any, Any]", values)) if isinstance(values, dict) else {}
    name = next((key for key in mapping if str(key) == path[0]), path[0])
    mapping[name] = _with(mapping.get(name), path[1:], value)
    return mapping


def _says(text: str, wanted: object) -> bool:
    try:
        return bool(yaml.safe_load(text) == wanted)
    except NOT_READ:
        return False


def _edited(text: str, path: Path, wanted: Any) -> str:
    """Edit the lines of one key in place. The result is valid only where the key stands in lines of its own; the
    caller checks it.
    """
    root: yaml.Node | None = yaml.SafeLoader(text).get_single_node()
    at, depth = root, 0
    while isinstance(at, yaml.MappingNode) and at.value:
        entry = next(((name, value) for name, value in at.value if name.value == path[depth]), None)
        if entry is None:
            last = at.value[-1][1]
            indent = " " * at.value[0][0].start_mark.column
            return _inserted(text, _end(text, last), "\n".join(_lines(path[: depth + 1], wanted, indent)))
        name, at = entry
        depth += 1
        if depth == len(path) or not isinstance(at, yaml.MappingNode) or at.flow_style or not at.value:
            lines = "\n".join(_lines(path[:depth], wanted, " " * name.start_mark.column, comment=False)).lstrip()
            return text[: name.start_mark.index] + lines + text[_end(text, at) :]
    return _inserted(text, len(text), "\n".join(_lines(path[:1], wanted, "")))


def _inserted(text: str, after: int, lines: str) -> str:
    """`lines` below the line that holds the position `after`."""
    line_end = text.find("\n", after)
    if line_end < 0:
        return f"{text}\n{lines}\n" if text and not text.endswith("\n") else f"{text}{lines}\n"
    return f"{text[: line_end + 1]}{lines}\n{text[line_end + 1 :]}"


def _end(text: str, node: yaml.Node) -> int:
    """Give the position where a value ends, without the comments that PyYAML counts to it."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last: Any = node.value[-1]
        return _end(text, last[1] if isinstance(node, yaml.MappingNode) else last)
    return len(text[: node.end_mark.index].rstrip("\n"))


def _lines(path: Path, wanted: Any, indent: str, *, comment: bool = True) -> Iterator[str]:
    """The lines of the key at `path`, with what is `wanted` there."""
    value: Any = wanted
    for word in path:
        value = next(below for name, below in value.items() if str(name) == word)
    key = find(path)
    if comment and key is not None and (key.section is None or key.nullable):
        yield from (f"{indent}# {line}" for line in textwrap.wrap(key.description, WIDTH))
    below = cast("dict[object, object]", value) if isinstance(value, dict) else {}
    if not below:
        yield f"{indent}{path[-1]}: {json.dumps(value, ensure_ascii=False, default=str).translate(_BREAKS)}"
        return
    yield f"{indent}{path[-1]}:"
    for name in below:
        yield from _lines((*path, str(name)), wanted, indent + INDENT)
