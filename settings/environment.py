"""Environment variables and .env: `APP__A__B=…` sets the key `a.b`, in any case of letters."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dotenv.parser import parse_stream

from settings.complaints import unknown
from settings.draft import Draft
from settings.errors import Problem, SettingsError, dotted, variable
from settings.keys import SettingKey, find
from settings.yaml_file import read_text

PREFIX = "app__"


@dataclass(frozen=True, slots=True)
class Variable:
    path: tuple[str, ...]
    name: str
    text: str
    origin: str


def from_environment(environ: Mapping[str, str]) -> list[Variable]:
    """The variables that set a key, in an order that does not depend on the environment's."""
    return [
        Variable(path, name, text, f"environment variable {variable(path)}")
        for name, text in sorted(environ.items())
        if (path := _path(name)) is not None
    ]


def from_dotenv(file: Path) -> list[Variable]:
    """The same out of a .env file, which need not exist. Values are literal: `$` has no meaning in them.

    Raises:
        SettingsError: the file cannot be read, or a line in it.
    """
    if not file.exists():
        return []
    found: dict[str, Variable] = {}
    for binding in parse_stream(io.StringIO(read_text(file, missing="create it"))):
        where = f"{file}:{binding.original.line}"
        if binding.error:
            raise SettingsError(f"{where}: this line is not NAME=value; correct it, or begin it with #")
        path = _path(binding.key or "")
        if binding.key is None or path is None:
            continue
        if binding.value is None:
            raise SettingsError(f"{where}: {variable(path)} has no value; write {variable(path)}=…")
        # As in a shell, the last of several lines holds.
        found[binding.key] = Variable(path, binding.key, binding.value, f"{where}: {variable(path)}")
    return list(found.values())


def lay_over(draft: Draft, variables: Iterable[Variable]) -> list[Problem]:
    """Put `variables` over what the draft says, those for whole sections first. Gives those that name no key."""
    problems: list[Problem] = []
    names: dict[tuple[str, ...], str] = {}
    for each in sorted(variables, key=lambda each: len(each.path)):
        key = find(each.path)
        if key is None:
            problems.append(unknown(each.path, each.origin, as_variable=True))
        elif each.path in names:
            text = f"{dotted(each.path)} is set twice, in names that differ only in case; keep one of the two"
            problems.append(Problem(each.origin, dotted(each.path), text))
        else:
            names[each.path] = each.name
            draft.put(each.path, _value(key, each.text), each.origin)
    return problems


def _path(name: str) -> tuple[str, ...] | None:
    lower = name.lower()
    return tuple(lower.removeprefix(PREFIX).split("__")) if lower.startswith(PREFIX) else None


def _value(key: SettingKey, text: str) -> Any:
    """JSON where the key takes no text; what is not JSON stays text, for the models to refuse."""
    if key.as_text:
        return text
    try:
        return json.loads(text, object_pairs_hook=_mapping)
    except (ValueError, RecursionError):
        return text


def _mapping(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise ValueError("a name occurs twice")
    return mapping
