"""config.yaml → plain values with their line numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import yaml

from settings.draft import Draft
from settings.errors import SettingsError, dotted

MERGE = "tag:yaml.org,2002:merge"
QUOTES = "check indentation and colons, and put quotes around text with special signs"


def read_yaml(path: Path) -> Draft:
    """What the file says, unchecked.

    Raises:
        SettingsError: it is missing, unreadable, not YAML, no mapping, or names a key twice.
    """
    text = read_text(path, missing="create it, or name another with --config FILE")
    draft = Draft(str(path))
    try:
        node: yaml.Node | None = yaml.SafeLoader(text).get_single_node()
        if node is not None:
            _note(node, (), draft, set())
        values: object = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # Without the original, which quotes the line.
        raise SettingsError(_not_yaml(path, error)) from None
    if values is None:
        return draft
    if not isinstance(values, dict):
        raise SettingsError(f"{path}: the top level must be a mapping of sections, such as `discord:`")
    draft.values = cast("dict[Any, Any]", values)
    return draft


def read_text(path: Path, *, missing: str) -> str:
    """The text of a UTF-8 file; `missing` is the remedy where there is none.

    Raises:
        SettingsError: it is missing or unreadable.
    """
    try:
        return path.read_text("utf-8-sig")
    except FileNotFoundError:
        raise SettingsError(f"{path}: there is no such file; {missing}") from None
    except IsADirectoryError:
        raise SettingsError(f"{path}: is a folder; name a file") from None
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read ({error.strerror}); check its permissions") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{path}: is not UTF-8 text; save it in that encoding") from None


def _note(node: yaml.Node, path: tuple[str, ...], draft: Draft, seen: set[int]) -> None:
    """Write down the line of each key, and refuse the second of two."""
    if id(node) in seen:  # an alias
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            _note(item, (*path, str(number)), draft, seen)
    if not isinstance(node, yaml.MappingNode):
        return
    lines: dict[str, int] = {}
    for name, value in node.value:
        line = name.start_mark.line + 1
        if isinstance(name, yaml.ScalarNode) and name.tag != MERGE:
            word: str = name.value
            if word in lines:
                key = dotted((*path, word))
                raise SettingsError(
                    f"{draft.file}:{line}: {key} stands here again, after line {lines[word]}; keep one of the two"
                )
            lines[word] = line
            draft.origins[*path, word] = f"{draft.file}:{line}"
            _note(value, (*path, word), draft, seen)


def _not_yaml(path: Path, error: Exception) -> str:
    """Where and what, as far as it can be told without quoting from the file."""
    where, what = str(path), "not valid YAML"
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        if mark is not None:
            where = f"{path}:{mark.line + 1}:{mark.column + 1}"
        # What the parser found stands in quotes, and may be part of a secret.
        problem = (error.problem or "").split("'")[0].split('"')[0].removesuffix("but found ").strip(" ,")
        if "'\\t'" in (error.problem or ""):
            return f"{where}: {what} (a tab stands here); indent with blanks"
        # Cut short, it says nothing: what was being read says more.
        said = problem if " " in problem else error.context
        what = f"{what} ({said})" if said else what
    return f"{where}: {what}; {QUOTES}"
