"""What configuration files say, unchecked: their values, and where each was written."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import yaml

from settings.errors import SettingsError, dotted, find

DEEPEST = 8
"""More names than any key has: aliases in YAML can make mappings without end."""


@dataclass(slots=True)
class ConfigDraft:
    """The unchecked values of one configuration file, or of several laid over each other, with the place of each."""

    file: str  # the configuration file, as the operator named it
    values: dict[Any, Any] = field(default_factory=dict[Any, Any])
    origins: dict[tuple[str, ...], str] = field(default_factory=dict[tuple[str, ...], str])
    """File and line, or environment variable, by path."""

    def where(self, path: Sequence[object]) -> str:
        """Give the file and line where the value at `path`, or the nearest section around it, was written."""
        words = tuple(map(str, path))
        while words and words not in self.origins:
            words = words[:-1]
        return self.origins.get(words, self.file)

    def at(self, path: Sequence[str]) -> object:
        """Give the value at `path`; None where there is none."""
        return _at(self.values, path)

    def put(self, path: Sequence[str], value: object, origin: str) -> None:
        """Set the value at `path` and make the mappings on the way there where they are missing or null.

        What stands in the way and is no mapping stays, for the models to refuse.
        """
        words = tuple(path)
        at = self.values
        for depth, word in enumerate(words[:-1], start=1):
            name = _name_in(at, word)
            below: object = at.get(name)
            if below is None or _gives_way(words[:depth], below):
                below = None
                self.origins[words[:depth]] = origin
            elif not isinstance(below, dict):
                return
            # A copy: YAML lets two keys share one mapping.
            at[name] = dict(cast("dict[Any, Any]", below)) if below else {}
            at = at[name]
        at[_name_in(at, words[-1])] = value
        for old in [known for known in self.origins if known[: len(words)] == words]:
            del self.origins[old]
        self.origins[words] = origin

    def lay(self, other: ConfigDraft, path: tuple[str, ...] = ()) -> None:
        """Put what `other` says at `path` over this, key by key; what is no mapping, such as a list, as a whole."""
        given: Mapping[Any, Any] = _at(other.values, path)
        for name, value in given.items():
            words = (*path, str(name))
            if value is None and _is_section(words):
                continue  # its every line is a comment
            if len(words) < DEEPEST and all(isinstance(_at(each.values, words), dict) for each in (self, other)):
                self.lay(other, words)
                continue
            self.put(words, value, other.where(words))
            self.origins |= {known: where for known, where in other.origins.items() if known[: len(words)] == words}


def _at(values: Any, path: Sequence[str]) -> Any:
    """What stands at `path`; None: nothing."""
    for word in path:
        if not isinstance(values, dict):
            return None
        mapping = cast("dict[Any, Any]", values)
        values = mapping.get(_name_in(mapping, word))
    return values


def _is_section(path: tuple[str, ...]) -> bool:
    key = find(path)
    return key is not None and key.section is not None and not key.nullable


def _gives_way(path: tuple[str, ...], value: object) -> bool:
    """Whether a word stands where a mapping may stand as well, as in `search.embeddings: packaged`."""
    key = find(path)
    return isinstance(value, str) and key is not None and key.section is not None and key.nullable


def _name_in(mapping: dict[Any, Any], word: str) -> Any:
    """The key of `mapping` that reads like `word`: YAML makes numbers of ids."""
    return next((key for key in mapping if str(key) == word), word)


MERGE = "tag:yaml.org,2002:merge"
QUOTES = "check indentation and colons, and put quotes around text with special signs"


def read_yaml(path: Path, *, option: str = "--config", top: str = "discord", as_text: bool = False) -> ConfigDraft:
    """What the file says, unchecked. `option`: of the command line, which names the file; `top`: a name that may stand
    at its top level; `as_text`: what is no list or mapping is the text that stands there, such as `yes` or `1.10`.

    Raises:
        SettingsError: it is missing, unreadable, not YAML, no mapping, or names a key twice.
    """
    text = read_text(path, missing=f"create it, go to its folder, or name another with {option} FILE")
    draft = ConfigDraft(str(path))
    try:
        loader = (yaml.BaseLoader if as_text else yaml.SafeLoader)(text)
        node: yaml.Node | None = loader.get_single_node()
        if node is None:
            return draft
        _note(node, (), draft, set())
        values: object = loader.construct_document(node)  # pyright: ignore[reportUnknownMemberType] (the stub leaves the node out)
    except (yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        # What PyYAML says of `!!bool x`, `!!int ""` and `!!timestamp x` is none of its own errors.
        # Without the original, which quotes the line.
        raise SettingsError(_not_yaml(path, error)) from None
    if values is None:
        return draft
    if not isinstance(values, dict):
        raise SettingsError(f"{path}: the top level must be a mapping of sections, such as `{top}:`")
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


def _note(node: yaml.Node, path: tuple[str, ...], draft: ConfigDraft, seen: set[int]) -> None:
    """Write down the line of each key and item, and refuse the second of two keys."""
    if id(node) in seen:  # an alias
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            draft.origins[*path, str(number)] = f"{draft.file}:{item.start_mark.line + 1}"
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
    """Describe where and why a file is not YAML, without quoting from it."""
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


def local_file(path: Path) -> Path:
    """Give the operator's own file beside a configuration, which updates of the program never touch: config.local.yaml
    for config.yaml.
    """
    return path.with_name(f"{path.stem}.local{path.suffix}")


def files_of(path: Path) -> list[Path]:
    """The files that a configuration is read from, in this order; those after the first need not exist."""
    return [path, local_file(path), path.with_name(".env")]


def drafted(path: Path) -> ConfigDraft:
    """Read a configuration and its local file, unchecked. Raises SettingsError."""
    draft, local = read_yaml(path), local_file(path)
    if os.path.lexists(local):
        draft.lay(read_yaml(local))
    return draft
