"""config.yaml, then .env beside it, then the environment: later ones win."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import yaml
from dotenv.parser import parse_stream
from pydantic import ValidationError

from settings.errors import Problem, SettingKey, SettingsError, complaints, dotted, find, summary, unknown, variable
from settings.kinds import fits_header
from settings.sections import Settings


@dataclass(slots=True)
class Draft:
    file: str  # the configuration file, as the operator named it
    values: dict[Any, Any] = field(default_factory=dict[Any, Any])
    origins: dict[tuple[str, ...], str] = field(default_factory=dict[tuple[str, ...], str])
    """File and line, or environment variable, by path."""

    def where(self, path: Sequence[object]) -> str:
        """Where the value at `path`, or else the nearest thing around it, was written."""
        words = tuple(map(str, path))
        while words and words not in self.origins:
            words = words[:-1]
        return self.origins.get(words, self.file)

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


def _gives_way(path: tuple[str, ...], value: object) -> bool:
    """Whether a word stands where a mapping may stand as well, as in `search.embeddings: packaged`."""
    key = find(path)
    return isinstance(value, str) and key is not None and key.section is not None and key.nullable


def _name_in(mapping: dict[Any, Any], word: str) -> Any:
    """The key of `mapping` that reads like `word`: YAML makes numbers of ids."""
    return next((key for key in mapping if str(key) == word), word)


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
        loader = yaml.SafeLoader(text)
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


def load(path: Path, environ: Mapping[str, str] | None = None) -> Settings:
    """The configuration in `path` and around it, checked, with absolute paths.

    `environ` takes the place of the process's environment.

    Raises:
        SettingsError: something is missing or wrong.
    """
    draft = read_yaml(path)
    problems = lay_over(draft, from_dotenv(path.with_name(".env")))
    problems += lay_over(draft, from_environment(os.environ if environ is None else environ))
    settings = None
    try:
        settings = Settings.model_validate(draft.values)
    except ValidationError as error:
        problems += complaints(error, draft.where)
    # Raised out here, so that it does not carry Pydantic's error, which holds every value.
    if settings is None or problems:
        raise SettingsError(summary(problems))
    return settings.placed(path.absolute().parent)


PLACEHOLDER = "REPLACE_ME"


def usable_token(settings: Settings) -> str:
    """The token to log in with.

    Raises:
        SettingsError: it is missing, a placeholder, or no token by its form.
    """
    token = settings.discord.token.get_secret_value()
    remedy = "copy the bot's token from Discord's developer portal into .env as APP__DISCORD__TOKEN=…"
    if not token or PLACEHOLDER in token:
        raise SettingsError(f"discord.token is not set: {remedy}")
    if not fits_header(token):
        raise SettingsError(f"discord.token holds blanks or letters that no token has: {remedy}")
    return token
