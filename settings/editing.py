"""Edits of the operator's files, config.local.yaml and .env, that leave the rest of them as it is."""

from __future__ import annotations

import io
import json
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, cast

import yaml
from dotenv.parser import parse_stream

from settings.errors import find_key, variable_name
from settings.loading import YAML_ERRORS, find_name, path_of, value_at

KeyPath = tuple[str, ...]
WIDTH = 110
INDENT = "  "
_BREAKS = {ord(each): f"\\u{ord(each):04x}" for each in "\x85\u2028\u2029"}
"""Escapes of characters that are line breaks in YAML, but not in JSON."""


def edit_yaml(text: str, changes: Mapping[KeyPath, object]) -> str:
    """Return the text of a YAML file with changed values, by the paths of their keys. Each new key gets a comment.

    `text`: a mapping of sections, or empty. A file that cannot be edited in place (a mapping in braces, an alias) is
    written anew.
    """
    for path, value in changes.items():
        wanted = _set_value(yaml.safe_load(text), path, value)
        edited = _edit_lines(text, path, wanted)
        # PyYAML does not read some Unicode line breaks as it writes them.
        escaped = yaml.safe_dump(wanted, sort_keys=False)
        forms = (edited, yaml.safe_dump(wanted, sort_keys=False, allow_unicode=True))
        text = next((each for each in forms if _parses_to(each, wanted)), escaped)
    return text


def edit_dotenv(text: str, changes: Mapping[KeyPath, str | None]) -> str:
    """Return the text of a .env file with changed values. None: remove the variables at and below this path."""
    pieces: list[str] = []
    left = {path: value for path, value in changes.items() if value is not None}
    for binding in parse_stream(io.StringIO(text)):
        path, whole = path_of(binding.key or ""), binding.original.string
        if path is None or not (path in changes or _is_unset(path, changes)):
            pieces.append(whole)
        elif path in left:
            before = whole[: len(whole) - len(whole.lstrip())]
            pieces.append(before + _assignment(path, left.pop(path)))
    kept = "".join(pieces)
    if left and kept and not kept.endswith("\n"):
        kept += "\n"
    return kept + "".join(_assignment(path, value) for path, value in left.items())


def _is_unset(path: KeyPath, changes: Mapping[KeyPath, str | None]) -> bool:
    return any(value is None and path[: len(each)] == each for each, value in changes.items())


def _assignment(path: KeyPath, value: str) -> str:
    bare = value and value[0] not in "'\"" and value.isprintable() and not any(letter.isspace() for letter in value)
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    written = value if bare else f"'{escaped}'"
    return f"{variable_name(path)}={written}\n"


def _set_value(values: Any, path: KeyPath, value: object) -> Any:
    """Return a copy of `values` with `value` at `path`."""
    if not path:
        return value
    mapping = dict(cast("dict[Any, Any]", values)) if isinstance(values, dict) else {}
    name = find_name(mapping, path[0])
    mapping[name] = _set_value(mapping.get(name), path[1:], value)
    return mapping


def _parses_to(text: str, wanted: object) -> bool:
    try:
        return bool(yaml.safe_load(text) == wanted)
    except YAML_ERRORS:
        return False


def _edit_lines(text: str, path: KeyPath, wanted: Any) -> str:
    """Edit the lines of one key in place. Valid only if the key has separate lines, which the caller checks."""
    root: yaml.Node | None = yaml.SafeLoader(text).get_single_node()
    at, depth = root, 0
    while isinstance(at, yaml.MappingNode) and at.value:
        entry = next(((name, value) for name, value in at.value if name.value == path[depth]), None)
        if entry is None:
            last = at.value[-1][1]
            indent = " " * at.value[0][0].start_mark.column
            return _insert_below(text, _value_end(text, last), "\n".join(_key_lines(path[: depth + 1], wanted, indent)))
        name, at = entry
        depth += 1
        if depth == len(path) or not isinstance(at, yaml.MappingNode) or at.flow_style or not at.value:
            lines = "\n".join(_key_lines(path[:depth], wanted, " " * name.start_mark.column, comment=False)).lstrip()
            return text[: name.start_mark.index] + lines + text[_value_end(text, at) :]
    return _insert_below(text, len(text), "\n".join(_key_lines(path[:1], wanted, "")))


def _insert_below(text: str, after: int, lines: str) -> str:
    """Insert `lines` below the line at the position `after`."""
    line_end = text.find("\n", after)
    if line_end < 0:
        return f"{text}\n{lines}\n" if text and not text.endswith("\n") else f"{text}{lines}\n"
    return f"{text[: line_end + 1]}{lines}\n{text[line_end + 1 :]}"


def _value_end(text: str, node: yaml.Node) -> int:
    """Return the position of the end of a value, without the comments that PyYAML includes."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last: Any = node.value[-1]
        return _value_end(text, last[1] if isinstance(node, yaml.MappingNode) else last)
    return len(text[: node.end_mark.index].rstrip("\n"))


def _key_lines(path: KeyPath, wanted: Any, indent: str, *, comment: bool = True) -> Iterator[str]:
    """Yield the lines of the key at `path`, with its value in `wanted`."""
    value, key = value_at(wanted, path), find_key(path)
    if comment and key is not None and (key.section is None or key.nullable):
        yield from (f"{indent}# {line}" for line in textwrap.wrap(key.description, WIDTH))
    below = cast("dict[object, object]", value) if isinstance(value, dict) else {}
    if not below:
        yield f"{indent}{path[-1]}: {json.dumps(value, ensure_ascii=False, default=str).translate(_BREAKS)}"
        return
    yield f"{indent}{path[-1]}:"
    for name in below:
        yield from _key_lines((*path, str(name)), wanted, indent + INDENT)
